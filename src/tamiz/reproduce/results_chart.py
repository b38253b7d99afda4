"""Chart of the summary of several runs, as an SVG that is legible on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from tamiz.reproduce.results_summary import OWN_METHODS, VARIANTS_SHOWN, HeadlineRow
from tamiz.reproduce.scores import HeadlineScore

_WIDTH, _LEFT, _RIGHT = 760, 240, 30
_ROW, _PANEL_HEAD, _PANEL_FOOT, _LEGEND = 24, 30, 34, 34
#: Marks of one line are set apart a little, so that equal scores do not hide each other.
_OFFSETS = {"e2efs": -4, "e2efs-soft": 1, "own": 0, "other": 5}
#: Where the entries of the legend begin.
_LEGEND_STEPS = (0, 90, 215, 425, 575)
# The picture has a ground of its own: it then does not matter which colours the page around it has.
_STYLE = """
.ground { fill: #ffffff } .ink { fill: #1f2933 } .faint { fill: #52606d } .line { stroke: #d2d8de }
.e2efs { fill: #00796b } .e2efs-soft { fill: #3f7fd6 } .other { fill: #c75b12 } .own { fill: #8e44ad }
.published { fill: none; stroke: #1f2933; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1e2129 } .ink { fill: #e6e9ee } .faint { fill: #a5b0bd } .line { stroke: #454b57 }
  .e2efs { fill: #3ecfbd } .e2efs-soft { fill: #86b4ff } .other { fill: #ff9f5a } .own { fill: #d59bf6 }
  .published { stroke: #e6e9ee }
}
"""


def draw_summary(rows: Sequence[HeadlineRow]) -> str:
    """Return the chart: one panel per protocol, one line per data set, one mark per method.

    Parameters
    ----------
    rows : sequence of HeadlineRow
        Rows of the summary; each panel has an axis that spans its own scores.

    Examples
    --------
    >>> from tamiz.reproduce.results_summary import headline_rows
    >>> score = HeadlineScore("COLON", "accuracy", "3 splits", "e2efs", "E2E-FS", 0.85)
    >>> "<title>E2E-FS: 0.850</title>" in draw_summary(headline_rows([("microarray", "", score)]))
    True
    """
    parts = list(_legend())
    top = float(_LEGEND)
    for (protocol, measure), panel in groupby(rows, key=lambda row: (row.protocol, row.measure)):
        shown = list(panel)
        parts += _panel(f"{protocol}: {measure}", shown, top)
        top += _PANEL_HEAD + _ROW * len(shown) + _PANEL_FOOT
    words = "Scores of E2E-FS, E2E-FS-Soft and the best other method on each data set"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:g}" width="{_WIDTH}" height="{top:g}" '
        f'role="img" aria-label="{words}" font-family="sans-serif" font-size="12">\n<style>{_STYLE}</style>\n'
        f'<rect class="ground" width="{_WIDTH}" height="{top:g}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def axis_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers that enclose a range of scores, which are at least 0 and at most 1.

    Examples
    --------
    >>> axis_ticks(0.81, 0.97)
    [0.8, 0.85, 0.9, 0.95, 1.0]
    >>> axis_ticks(0.5, 0.5)
    [0.49, 0.5, 0.51]
    """
    low, high = (low - 0.01, high + 0.01) if high - low < 0.01 else (low, high)
    step = next(size for size in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / size <= 6 or size == 0.2)
    first, last = max(math.floor(low / step + 1e-9), 0), min(math.ceil(high / step - 1e-9), round(1 / step))
    return [round(number * step, 2) for number in range(first, max(last, first + 1) + 1)]


def _marks(row: HeadlineRow) -> Iterator[tuple[str, HeadlineScore]]:
    """Return the marks of a line; those drawn later lie above."""
    if row.other is not None:
        yield "other", row.other
    if row.best.method in OWN_METHODS - set(row.variants):
        yield "own", row.best
    yield from reversed(list(row.variants.items()))


def _published(row: HeadlineRow) -> HeadlineScore | None:
    """Return the first variant of E2E-FS that has a published number."""
    return next((score for score in row.variants.values() if score.published is not None), None)


def _panel(title: str, rows: Sequence[HeadlineRow], top: float) -> Iterator[str]:
    values = [score.value for row in rows for _, score in _marks(row)]
    values += [float(score.published or 0.0) for row in rows if (score := _published(row)) is not None]
    ticks = axis_ticks(min(values), max(values))
    bottom = top + _PANEL_HEAD + _ROW * len(rows)

    def across(value: float) -> float:
        return _LEFT + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - _LEFT - _RIGHT)

    yield f'<text class="ink" x="12" y="{top + 18:g}" font-weight="bold">{escape(title)}</text>'
    for tick in ticks:
        x = across(tick)
        yield f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{top + _PANEL_HEAD:g}" y2="{bottom:g}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{bottom + 16:g}" text-anchor="middle">{tick:g}</text>'
    for place, row in enumerate(rows):
        y = top + _PANEL_HEAD + _ROW * (place + 0.5)
        yield f'<text class="ink" x="{_LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(row.label)}</text>'
        for kind, score in _marks(row):
            yield _mark(kind, across(score.value), y + _OFFSETS[kind], f"{score.label}: {score.value:.3f}")
        if (score := _published(row)) is not None:
            words = f"{score.label}, published: {score.published:.3f}"
            yield _mark("published", across(float(score.published or 0.0)), y, words)


def _mark(kind: str, x: float, y: float, words: str) -> str:
    title = f"<title>{escape(words)}</title>"
    if kind == "other":
        return f'<rect class="other" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9">{title}</rect>'
    if kind == "own":
        return f'<path class="own" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z">{title}</path>'
    if kind == "published":
        return f'<path class="published" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z">{title}</path>'
    if kind == "e2efs-soft":
        return f'<path class="e2efs-soft" d="M{x:.1f} {y - 6:.1f}l6 10h-12z">{title}</path>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'


def _legend() -> Iterator[str]:
    entries = {
        **VARIANTS_SHOWN,
        "own": "E2E-FS-Pairs, pair search",
        "other": "best other method",
        "published": "E2E-FS, published",
    }
    for place, (kind, words) in enumerate(entries.items()):
        x = 20 + _LEGEND_STEPS[place]
        yield _mark(kind, x, 18, words)
        yield f'<text class="ink" x="{x + 12}" y="22">{escape(words)}</text>'
