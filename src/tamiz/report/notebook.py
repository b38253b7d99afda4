"""Summary of a selection for notebooks: the kept columns with bars and small histograms, in both themes."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from tamiz.report.columns import effect_bar, effect_range
from tamiz.report.data import KeptFeature, SelectReport
from tamiz.report.kept_view import direction, effect_colour
from tamiz.report.marks import distribution_chart
from tamiz.report.text import clean_text, format_column, format_score
from tamiz.report.write import select_report

#: Rows of the summary; the report has all.
MOST_SUMMARY_ROWS = 20
# Scoped to the summary; for cells more specific than the rules of JupyterLab (two classes and an element). Notebooks say their
# theme by a class or attribute of the page, browsers by a preference.
_DARK = "--ink:#e7eaee;--soft:#a7b0bb;--rule:#313a44;--s0:#54c0b5;--s1:#e8945f;--s2:#9aa5f2;"
_STYLE = (
    ".tamiz-summary{--ink:#1b2430;--soft:#545e6b;--rule:#dedad3;--s0:#0b6e70;--s1:#b5511d;--s2:#4a55a8;color:var(--ink)}"
    f"@media(prefers-color-scheme:dark){{.tamiz-summary{{{_DARK}}}}}"
    "[data-jp-theme-light=true] .tamiz-summary,.vscode-light .tamiz-summary"
    "{--ink:#1b2430;--soft:#545e6b;--rule:#dedad3;--s0:#0b6e70;--s1:#b5511d;--s2:#4a55a8}"
    f"[data-jp-theme-light=false] .tamiz-summary,.vscode-dark .tamiz-summary{{{_DARK}}}"
    ".tamiz-summary table{border-collapse:collapse;font-size:13px}"
    ".tamiz-summary table:not(.other) td,.tamiz-summary table:not(.other) th{padding:2px 10px 2px 0;text-align:left;"
    "border-bottom:1px solid var(--rule);"
    "background:none;color:var(--ink)}"
    ".tamiz-summary svg{display:block;width:150px;height:auto}.tamiz-summary .chart{width:120px}"
    ".tamiz-summary .s0{--c:var(--s0)}.tamiz-summary .s1{--c:var(--s1)}.tamiz-summary .s2{--c:var(--s2)}"
    ".tamiz-summary .column{fill:var(--c)}.tamiz-summary .axis{stroke:var(--soft)}"
    ".tamiz-summary path{fill:none;stroke:var(--soft)}"
    ".tamiz-summary .histogram{fill:var(--c);fill-opacity:.25;stroke:var(--c)}.tamiz-summary .median{stroke:var(--c)}"
    ".tamiz-summary text{fill:var(--soft);font-size:20px}.tamiz-summary .track{fill:var(--rule)}"
)


@dataclass(frozen=True, eq=False)
class Summary:
    """Show a selection in a notebook; made by :func:`summary`."""

    data: SelectReport

    def __repr__(self) -> str:
        names = ", ".join(kept.name for kept in self.data.kept[:5])
        more = ", ..." if len(self.data.kept) > 5 else ""
        return f"Summary({len(self.data.kept)} of {self.data.n_features} features: {names}{more})"

    def _repr_html_(self) -> str:
        """Return the summary as HTML; every name is escaped, and it takes its colours from the theme."""
        data = self.data
        shown = data.kept[:MOST_SUMMARY_ROWS]
        span = effect_range([e for kept in data.kept for e in (kept.effect, *kept.fold_effects)])
        rows = "".join(
            _row(kept, effect, span, data)
            for kept, effect in zip(shown, format_column([k.effect for k in shown], signed=True), strict=True)
        )
        more = len(data.kept) - len(shown)
        head = f"<p><b>{len(data.kept):,} of {data.n_features:,} features kept</b>"
        if data.scores is not None:
            head += f"; {html.escape(data.scores.metric)} {format_score(data.scores.kept.value)} on held-out rows"
        tail = f"<p>and {more:,} more</p>" if more > 0 else ""
        return f'<div class="tamiz-summary"><style>{_STYLE}</style>{head}</p><table><tbody>{rows}</tbody></table>{tail}</div>'


def _row(kept: KeptFeature, effect: str, span: tuple[float, float], data: SelectReport) -> str:
    bar = effect_bar(kept.effect, span, effect_colour(kept.effect), kept.fold_effects)
    shape = distribution_chart(kept.distribution, kept.name) if kept.distribution is not None else ""
    cells = (
        str(kept.rank),
        f"<b>{html.escape(clean_text(kept.name))}</b>",
        bar,
        effect,
        html.escape(clean_text(direction(kept, data))),
        shape,
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def summary(source: Any, X: Any = None, y: Any = None, **details: Any) -> Summary:
    """Return a summary that notebooks show: the kept columns with bars of their effects and small histograms by class.

    Parameters
    ----------
    source : Selection or fitted estimator
        What was kept.
    X, y : table and target, default=None
        What the selector was fitted on, as numbers.
    **details
        Passed to :func:`~tamiz.report.select_report`, for example ``cv=5``.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.selection import Selection
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> summary(selection, [[0.0, 1.0], [1.0, 3.0], [0.0, 9.0]], ["a", "b", "b"])
    Summary(1 of 2 features: x1)
    """
    return Summary(select_report(source, X, y, **details))
