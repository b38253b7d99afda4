"""Descriptions of charts, and matplotlib pictures of them; the report draws the same descriptions as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz._utils.extras import require

#: Colours of series by their number; the style sheet of the report has the same, and more.
COLOURS = ("#0b6e70", "#b5511d", "#4a55a8", "#94690a", "#9c3a78", "#3c7a34", "#2b78b5", "#6d6259")
_GREY = "#8a8f96"


@dataclass(frozen=True, eq=False)
class Series:
    """Points of one line.

    Parameters
    ----------
    name : str
        Name in the legend.
    x, y : ndarray
        Coordinates; NaN breaks the line.
    low, high : ndarray or None, default=None
        Ends of intervals.
    colour : int, default=0
        Number of the colour.
    style : {"marked", "line", "thin", "grey", "points"}, default="marked"
        A line with marks, a line, a thin one, a thin grey one, or marks alone.
    tips : sequence of str, default=()
        One text for each point, or one for the whole line.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    colour: int = 0
    style: str = "marked"
    tips: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Lines:
    """Describe a chart of lines or points.

    Parameters
    ----------
    title, x_label, y_label : str
        Texts.
    series : sequence of Series
        What is drawn, the last on top.
    log_x, log_y : bool, default=False
        Logarithmic axes.
    x_ticks : sequence of float, default=()
        Ticks of x; empty: round numbers. These and the options from ``unit_square`` to ``band`` are for pages alone.
    levels : sequence of (str, float), default=()
        Horizontal lines to compare with.
    chosen : (str, float) or None, default=None
        Vertical line.
    unit_square : bool, default=False
        Both axes run from 0 to 1.
    diagonal : bool, default=False
        Draw the line on which x and y are equal; both axes have one range then.
    band : bool, default=False
        Intervals as a band instead of whiskers.
    phases : sequence of (str, float, float), default=()
        Parts of the x axis: name, start and end.
    top : float or None, default=None
        Where the y axis ends.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    x_ticks: Sequence[float] = ()
    levels: Sequence[tuple[str, float]] = ()
    chosen: tuple[str, float] | None = None
    unit_square: bool = False
    diagonal: bool = False
    band: bool = False
    phases: Sequence[tuple[str, float, float]] = ()
    top: float | None = None


@dataclass(frozen=True, eq=False)
class Bars:
    """Describe one bar for each name; bars above zero have the second colour."""

    title: str
    names: Sequence[str]
    values: Sequence[float]
    label: str
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Grid:
    """Describe cells.

    Parameters
    ----------
    title : str
        Name for screen readers and above the picture.
    rows, columns : sequence of str
        Names along both axes.
    values : ndarray of shape (n_rows, n_columns)
        From ``low`` to ``high``; NaN is missing.
    low, high : float
        Ends of the scale.
    label, x_label, y_label : str, default=""
        Names of the values and of the axes.
    texts, tips : sequence of sequence of str, default=()
        What is written on each cell, and shown beside it.
    codes : ndarray of int or None, default=None
        Number of the colour of each cell, of which the value is the strength.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    low: float
    high: float
    label: str = ""
    x_label: str = ""
    y_label: str = ""
    texts: Sequence[Sequence[str]] = ()
    tips: Sequence[Sequence[str]] = ()
    codes: np.ndarray | None = None


def draw(picture: Lines | Bars | Grid, ax: Any = None) -> Any:
    """Draw a description with matplotlib.

    Parameters
    ----------
    picture : Lines, Bars or Grid
        What to draw.
    ax : matplotlib axes or None, default=None
        Axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> draw(Bars("gamma", ["a", "b"], [1.0, 0.2], "gamma")).get_xlabel()
    'gamma'
    """
    pyplot = require("matplotlib.pyplot", "plot", "Drawing")
    if ax is None:
        ax = pyplot.figure(figsize=(7, 4), layout="constrained").add_subplot()
    if isinstance(picture, Lines):
        _draw_lines(picture, ax)
    elif isinstance(picture, Bars):
        colours = [COLOURS[int(value > 0)] if min(picture.values) < 0 else COLOURS[0] for value in picture.values]
        ax.barh(range(len(picture.names)), picture.values, color=colours)
        ax.set_yticks(range(len(picture.names)), picture.names)
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel(picture.label)
        if picture.limits is not None:
            ax.set_xlim(*picture.limits)
    else:
        look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
        if picture.codes is None:
            palette = "RdBu_r" if picture.low < 0 else "Greys"
            drawn = ax.imshow(picture.values, cmap=palette, vmin=picture.low, vmax=picture.high, **look)
        else:
            strength = np.nan_to_num(picture.values)
            drawn = ax.imshow(picture.codes, cmap="tab10", vmin=0, vmax=9, alpha=strength, **look)
        ax.set_yticks(range(len(picture.rows)), picture.rows)
        ax.set_xticks(range(len(picture.columns)), picture.columns, rotation=90 if len(picture.columns) > 12 else 0)
        ax.set_xlabel(picture.x_label)
        ax.set_ylabel(picture.y_label)
        if picture.label:
            ax.figure.colorbar(drawn, ax=ax, label=picture.label)
    if not (isinstance(picture, Lines) and picture.phases):  # the names of the phases stand there
        ax.set_title(picture.title, fontsize=10)
    return ax


def _draw_lines(picture: Lines, ax: Any) -> None:
    for number, (name, start, stop) in enumerate(picture.phases):
        if number % 2:
            ax.axvspan(start, stop, color="black", alpha=0.045, linewidth=0)
        if stop - start > 0.08 * (picture.phases[-1][2] - picture.phases[0][1]):
            place = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom", "fontsize": 8}
            ax.text((start + stop) / 2, 1.01, name, **place)
    for series in picture.series:
        grey = series.style == "grey"
        look: dict[str, Any] = {"color": _GREY if grey else COLOURS[series.colour % len(COLOURS)]}
        look["linewidth"] = {"thin": 1.2, "grey": 0.8}.get(series.style, 1.8)
        look["label"] = series.name or None
        if series.low is not None and series.high is not None:
            ends = np.nan_to_num([series.y - series.low, series.high - series.y])
            ax.errorbar(series.x, series.y, ends, marker="o", capsize=3, **look)
        else:
            ax.plot(series.x, series.y, marker="o" if series.style == "marked" else None, markersize=4, **look)
    for name, value in picture.levels:
        ax.axhline(value, color="0.5", linewidth=0.8, linestyle=":", label=name)
    if picture.chosen is not None:
        ax.axvline(picture.chosen[1], color="0.5", linestyle="--", label=picture.chosen[0])
    if picture.log_x:
        ax.set_xscale("log")
    if picture.log_y:
        ax.set_yscale("log")
    if picture.top is not None:
        ax.set_ylim(top=picture.top)
    entries = {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if len(entries) > 1:
        ax.legend(entries.values(), entries.keys(), frameon=False, fontsize=8)
    ax.set_xlabel(picture.x_label)
    ax.set_ylabel(picture.y_label)
