"""Summary of a selection for notebooks: the kept columns with bars and small histograms, in both themes."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from tamiz.report.charts import distribution_chart, effect_bar, effect_range
from tamiz.report.columns import describe_distribution, group_rows
from tamiz.report.page import About, gather
from tamiz.report.select_view import Shown
from tamiz.report.text import clean_text, counted, format_column, format_score

#: Rows of the summary; the report has all.
MOST_SUMMARY_ROWS = 20
# Scoped to the summary; for cells more specific than the rules of JupyterLab (two classes and an element). Notebooks say their
# theme by a class or attribute of the page, browsers by a preference.
_LIGHT = "--ink:#1b2430;--soft:#545e6b;--rule:#dedad3;--s0:#0b6e70;--s1:#b5511d;--s2:#4a55a8;"
_DARK = "--ink:#e7eaee;--soft:#a7b0bb;--rule:#313a44;--s0:#54c0b5;--s1:#e8945f;--s2:#9aa5f2;"
_STYLE = (
    f".tamiz-summary{{{_LIGHT}color:var(--ink)}}@media(prefers-color-scheme:dark){{.tamiz-summary{{{_DARK}}}}}"
    f"[data-jp-theme-light=true] .tamiz-summary,.vscode-light .tamiz-summary{{{_LIGHT}}}"
    f"[data-jp-theme-light=false] .tamiz-summary,.vscode-dark .tamiz-summary{{{_DARK}}}"
    ".tamiz-summary table{border-collapse:collapse;font-size:13px}"
    ".tamiz-summary table:not(.other) td,.tamiz-summary table:not(.other) th{padding:2px 10px 2px 0;text-align:left;"
    "border-bottom:1px solid var(--rule);background:none;color:var(--ink)}"
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

    shown: Shown
    about: About

    @property
    def names(self) -> list[str]:
        """Names of the kept columns, best first."""
        return [self.shown.columns.names[int(column)] for column in self.shown.columns.kept]

    def __repr__(self) -> str:
        more = ", ..." if len(self.names) > 5 else ""
        return f"Summary({len(self.names)} of {len(self.shown.columns)} columns: {', '.join(self.names[:5])}{more})"

    def _repr_html_(self) -> str:
        """Write the summary as HTML; every name is escaped, and it takes its colours from the theme."""
        shown, names = self.shown, self.names
        columns, values = shown.columns, shown.effects[1]
        span = effect_range(values)
        written = format_column(values[:MOST_SUMMARY_ROWS], signed=min(span) < 0)
        rows = []
        for place, name in enumerate(names[:MOST_SUMMARY_ROWS]):
            picture = ""
            if shown.X is not None and shown.y is not None:
                read, levels = columns.read(shown.X, int(columns.kept[place]))
                groups = group_rows(shown.y, self.about.task, self.about.target)
                found = describe_distribution(read, groups, levels)
                picture = "" if found is None else distribution_chart(found, name)
            bar = effect_bar(values[place], span, colour=-1 if min(span) < 0 else 0)
            cells = (str(place + 1), f"<b>{html.escape(clean_text(name))}</b>", bar, written[place], picture)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        head = f"<p><b>{len(names):,} of {counted(len(columns), 'column')} kept</b>"
        if shown.evaluation is not None:
            score = format_score(shown.evaluation.interval("kept").value)
            head += f"; {html.escape(shown.evaluation.metric.name)} {score} on held-out rows"
        more = len(names) - len(rows)
        tail = f"<p>and {more:,} more</p>" if more > 0 else ""
        body = f"{head}</p><table><tbody>{''.join(rows)}</tbody></table>{tail}"
        return f'<div class="tamiz-summary"><style>{_STYLE}</style>{body}</div>'


def summary(source: Any, X: Any = None, y: Any = None, **details: Any) -> Summary:
    """Summarise a selection for a notebook: the kept columns with bars of their effects and small histograms by class.

    Parameters
    ----------
    source : Study, fitted estimator or pipeline, or Selection
        What was kept.
    X, y : table and target, default=None
        What the selector was fitted on.
    **details
        Passed on as by :func:`~tamiz.report.report`, for example ``cv=5``.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.selection import Selection
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> summary(selection, [[0.0, 1.0], [1.0, 3.0], [0.0, 9.0]], ["a", "b", "b"])
    Summary(1 of 2 columns: x1)
    """
    return Summary(*gather(source, X, y, **details))
