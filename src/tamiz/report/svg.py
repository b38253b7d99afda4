"""Drawing tools of the charts: elements with escaped text, scales with round ticks, axes, marks, embedded pictures.

Colours never appear here: marks carry classes (``s0`` .. ``s17``, ``kept``, ``dropped``) and the style sheet gives
each theme its own palette. Presentation attributes are used instead of ``style``, which the page's
Content-Security-Policy forbids.
"""

from __future__ import annotations

import base64
import html
import itertools
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz._utils.pictures import Grid
from tamiz.report.text import clean_text, format_number, shorten

#: How many series have a colour of their own; further ones start again with another dash.
N_COLOURS = 20
#: Shapes of size 1 that tell series apart where colour does not: circle, square, diamond, triangle, cross.
_MARKERS = (
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "M-1-1h2v2h-2z",
    "M0-1.4L1.4 0 0 1.4-1.4 0z",
    "M0-1.4L1.4 1H-1.4z",
    "M-.4-1.2h.8v.8h.8v.8h-.8v.8h-.8v-.8h-.8v-.8h.8z",
)
#: Index of a missing value in the palette; 0 to 254 hold the values.
MISSING_CODE = 255
#: Colours of the lowest value, the middle, the highest and of a missing one.
COLOURS = (35, 96, 168), (248, 247, 244), (176, 58, 22), (190, 190, 190)


def number(value: float) -> str:
    """Format a coordinate with one decimal, without a trailing zero.

    Examples
    --------
    >>> number(12.04), number(-0.01), number(3.14159)
    ('12', '0', '3.1')
    """
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


def element(name: str, *children: str, **attributes: Any) -> str:
    """Write an SVG or HTML element. Children are markup already; attribute values are escaped, None leaves one out.

    Examples
    --------
    >>> element("rect", x=1.0, data_tip='a "b" <c>', class_="kept")
    '<rect x="1" data-tip="a &quot;b&quot; &lt;c&gt;" class="kept"/>'
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None:
            continue
        text = number(float(value)) if isinstance(value, float) else html.escape(clean_text(value))
        parts.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    return "".join(parts) + (f">{''.join(children)}</{name}>" if children else "/>")


def text(content: Any, x: float, y: float, **attributes: Any) -> str:
    """Write a text element; the content is escaped."""
    return element("text", html.escape(clean_text(content), quote=False), x=float(x), y=float(y), **attributes)


@dataclass(frozen=True)
class Scale:
    """From data to pixels, linear or logarithmic; a range without width gets some."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    @classmethod
    def over(cls, values: Sequence[float], start: float, stop: float, *, log: bool = False, pad: float = 0.0) -> Scale:
        """Make a scale that holds all finite ``values``, with a share ``pad`` of the range to spare on both sides."""
        finite = [float(v) for v in values if v is not None and math.isfinite(v) and (not log or v > 0)]
        low, high = (min(finite), max(finite)) if finite else (1.0, 10.0) if log else (0.0, 1.0)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - max(abs(low), 1) * 0.05, high + max(abs(high), 1) * 0.05)
        if pad and not log:
            low, high = low - pad * (high - low), high + pad * (high - low)
        elif pad:
            ratio = (high / low) ** pad
            low, high = low / ratio, high * ratio
        return cls(low, high, start, stop, log)

    def __call__(self, value: float) -> float:
        """Place a value in pixels; values outside the range land on the border."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Format ticks, with the same number of decimals for all on a linear scale."""
        if self.log or len(ticks) < 2 or max(map(abs, ticks)) >= 1e6:
            return [format_number(tick, digits=2) for tick in ticks]
        step = min(b - a for a, b in itertools.pairwise(sorted(ticks)))
        decimals = next((d for d in range(7) if abs(round(step, d) - step) < 1e-9 * max(1.0, step)), 7)
        return [f"{tick:,.{decimals}f}" for tick in ticks]

    def ticks(self, n_ticks: int = 5) -> list[float]:
        """Round values inside the range.

        Examples
        --------
        >>> Scale(0.0, 97.0, 0, 100).ticks(), Scale(8.0, 2000.0, 0, 100, log=True).ticks()
        ([0.0, 20.0, 40.0, 60.0, 80.0], [10.0, 100.0, 1000.0])
        """
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for multiples in ((1,), (1, 3), (1, 2, 5)):
                found = [m * 10.0**p for p in powers for m in multiples]
                found = [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
                if len(found) >= 3:
                    break
            if len(found) >= 2:
                return found[:: math.ceil(len(found) / (n_ticks + 2))]
        raw = (self.high - self.low) / max(n_ticks, 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """Where the plot area of a chart lies inside its picture."""

    width: int
    height: int
    left: int = 52
    right: int = 14
    top: int = 14
    bottom: int = 42

    @property
    def x_range(self) -> tuple[float, float]:
        """Left and right border of the plot area."""
        return self.left, self.width - self.right

    @property
    def y_range(self) -> tuple[float, float]:
        """Bottom and top border of the plot area: values grow upwards."""
        return self.height - self.bottom, self.top

    def axes(self, x: Scale, y: Scale, x_label: str, y_label: str, x_ticks: Sequence[float] = ()) -> str:
        """Draw grid lines, tick labels and the titles of both axes; that of y stands on top, where it reads without turning."""
        (left, right), bottom = self.x_range, self.y_range[0]
        parts = []
        y_ticks = y.ticks(4 if self.height < 200 else 5)
        for tick, shown in zip(y_ticks, y.labels(y_ticks), strict=True):
            at = y(tick)
            parts.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="grid"))
            parts.append(text(shown, left - 7, at + 4, text_anchor="end", class_="tick"))
        ticks = [] if x_ticks else x.ticks(4 if self.width < 420 else 6)
        for tick in sorted(x_ticks):  # those whose labels have room
            if not ticks or x(tick) - x(ticks[-1]) >= 34:
                ticks.append(tick)
        for tick, shown in zip(ticks, x.labels(ticks), strict=True):
            at = x(tick)
            parts.append(element("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
            parts.append(text(shown, at, bottom + 17, text_anchor="middle", class_="tick"))
        parts.append(element("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
        parts.append(text(x_label, right, self.height - 4, text_anchor="end", class_="label"))
        return "".join([*parts, text(y_label, 2, 12, class_="label") if y_label else ""])

    def picture(self, label: str, *children: str, class_: str = "") -> str:
        """Finish a drawing, named for screen readers; a "natural" one is not enlarged past its own size."""
        place = {"viewBox": f"0 0 {self.width} {self.height}", "width": self.width if class_ == "natural" else None}
        return element("svg", *children, **place, class_=f"chart {class_}".strip(), role="img", aria_label=label)


def polyline(points: Sequence[tuple[float, float]], **attributes: Any) -> str:
    """Draw a path through points; a point that is not finite breaks the line. Points on a straight run are left out."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if not all(math.isfinite(c) for c in point):
            if pieces[-1]:
                pieces.append([])
            continue
        piece = pieces[-1]
        if len(piece) >= 2:
            (a, b), (c, d), (e, f) = piece[-2], piece[-1], point
            # Twice the area of the triangle against the length of its base: the distance of the middle point in pixels.
            if abs((c - a) * (f - b) - (e - a) * (d - b)) <= 0.05 * math.hypot(e - a, f - b):
                piece.pop()
        piece.append(point)
    drawn = "".join("M" + "L".join(f"{number(px)} {number(py)}" for px, py in piece) for piece in pieces if piece)
    return element("path", d=drawn, fill="none", **attributes) if drawn else ""


def marker(kind: int, x: float, y: float, size: float = 3.6, **attributes: Any) -> str:
    """Draw a point, of one of five shapes."""
    place = f"translate({number(x)} {number(y)}) scale({number(size)})"
    return element("path", d=_MARKERS[kind % len(_MARKERS)], transform=place, **attributes)


def series_class(position: int) -> str:
    """Class that colours a series; past the palette a dash is added."""
    return f"s{position % N_COLOURS}" + (" dashed" if position >= N_COLOURS else "")


def png_address(values: np.ndarray, largest: float | None = None) -> str:
    """Write a PNG as a data address; by hand because it takes ten lines and no imaging library.

    Parameters
    ----------
    values : ndarray, shape (height, width)
        Grey values from 0 to 255, or values from -largest to largest.
    largest : float or None, default=None
        End of the diverging colours; None makes a grey picture.

    Examples
    --------
    >>> png_address(np.zeros((2, 2)))[:22]
    'data:image/png;base64,'
    """
    height, width = values.shape
    pixels = values.astype(np.uint8) if largest is None else quantise(values, largest)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if largest is None else 3, 0, 0, 0)
    chunks = {b"IHDR": header, b"PLTE": b"" if largest is None else diverging_palette().tobytes()}
    chunks |= {b"IDAT": zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9), b"IEND": b""}
    written = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks.items():
        if body or kind != b"PLTE":
            written += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return "data:image/png;base64," + base64.b64encode(written).decode("ascii")


def diverging_palette() -> np.ndarray:
    """Make 256 colours: blue for the lowest value, near white for the middle, red for the highest, grey for missing."""
    lowest, middle, highest, missing = map(np.array, COLOURS)
    share = np.abs(np.linspace(-1, 1, 255))[:, None]
    end = np.where(np.arange(255)[:, None] < 127, lowest, highest)
    colours = (1 - share) * middle + share * end
    return np.vstack([colours.round(), missing]).astype(np.uint8)


def quantise(values: np.ndarray, largest: float) -> np.ndarray:
    """Code values of -largest to largest as 0 to 254; others at the border, missing ones as ``MISSING_CODE``.

    Examples
    --------
    >>> quantise(np.array([-9.0, 0.0, 3.0, np.nan]), 3.0).tolist()
    [0, 127, 254, 255]
    """
    values = np.asarray(values, dtype=np.float64)
    scaled = np.clip(np.nan_to_num(values) / largest, -1, 1) * 127 + 127
    return np.where(np.isfinite(values), scaled.round(), MISSING_CODE).astype(np.uint8)


def grid_payload(grid: Grid, columns: Sequence[str], between: str = "") -> dict[str, Any]:
    """Data that the script needs to name a cell: names of both axes and the quantised values."""
    return {
        "rows": [shorten(name, 60) for name in grid.rows],
        "columns": [shorten(name, 80) for name in columns],
        "between": between,
        "codes": base64.b64encode(quantise(grid.values, grid.high).tobytes()).decode("ascii"),
        "largest": grid.high,
        "unit": grid.label,
    }
