"""Drawing tools of the charts: elements with escaped text, scales with round ticks, axes, legends.

Colours never appear here: marks carry classes (``s0`` .. ``s17``, ``kept``, ``dropped``) and the style sheet gives
each theme its own palette. Presentation attributes are used instead of ``style``, which the page's
Content-Security-Policy forbids.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamiz.report.text import clean_text, format_number

#: How many series have a colour of their own; further ones start again with another dash.
N_COLOURS = 20
_MARKERS = ("circle", "square", "diamond", "triangle", "cross")


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
    """Return an SVG or HTML element. Children are markup already; attribute values are escaped, None leaves one out.

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
    """Return a text element; the content is escaped."""
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
        """Return a scale that holds all finite ``values``, with a share ``pad`` of the range to spare on both sides."""
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
        """Return the pixel of a value; values outside the range land on the border."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Return the ticks as text, with the same number of decimals for all on a linear scale."""
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
            found = _log_ticks(self.low, self.high, n_ticks)
            if len(found) >= 2:
                return found
        raw = (self.high - self.low) / max(n_ticks, 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float, n_ticks: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1,), (1, 3), (1, 2, 5)):
        found = [m * 10.0**p for p in powers for m in multiples if low * 0.999 <= m * 10.0**p <= high * 1.001]
        if len(found) >= 3:
            break
    every = math.ceil(len(found) / (n_ticks + 2)) if found else 1
    return found[::every]


@dataclass(frozen=True)
class Frame:
    """Describe where the plot area of a chart lies inside its picture."""

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


def axes(
    frame: Frame,
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    *,
    x_ticks: Sequence[float] = (),
    counts: bool = False,
) -> str:
    """Grid lines, tick labels and the two axis titles; the title of y stands on top, where it reads without turning."""
    left, right = frame.x_range
    bottom = frame.y_range[0]
    parts = []
    y_ticks = [t for t in y.ticks(4 if frame.height < 200 else 5) if not counts or float(t).is_integer()]
    for tick, shown in zip(y_ticks, y.labels(y_ticks), strict=True):
        at = y(tick)
        parts.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="grid"))
        parts.append(text(shown, left - 7, at + 4, text_anchor="end", class_="tick"))
    ticks = spread(list(x_ticks), x, 34) if x_ticks else x.ticks(4 if frame.width < 420 else 6)
    for tick, shown in zip(ticks, x.labels(ticks), strict=True):
        at = x(tick)
        parts.append(element("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
        parts.append(text(shown, at, bottom + 17, text_anchor="middle", class_="tick"))
    parts.append(element("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(text(x_label, right, frame.height - 4, text_anchor="end", class_="label"))
    if y_label:
        parts.append(text(y_label, 2, 12, class_="label"))
    return "".join(parts)


def spread(ticks: list[float], scale: Scale, gap: float) -> list[float]:
    """Those ticks whose labels have ``gap`` pixels of room; the first always stays."""
    kept: list[float] = []
    for tick in sorted(ticks):
        if not kept or scale(tick) - scale(kept[-1]) >= gap:
            kept.append(tick)
    return kept


def polyline(points: Sequence[tuple[float, float]], **attributes: Any) -> str:
    """Return a path through points; a point that is not finite breaks the line. Points on a straight run are left out."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if not all(math.isfinite(c) for c in point):
            if pieces[-1]:
                pieces.append([])
            continue
        piece = pieces[-1]
        if len(piece) >= 2 and _straight(piece[-2], piece[-1], point):
            piece[-1] = point
        else:
            piece.append(point)
    drawn = "".join("M" + "L".join(f"{number(px)} {number(py)}" for px, py in piece) for piece in pieces if piece)
    return element("path", d=drawn, fill="none", **attributes) if drawn else ""


def _straight(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    # Twice the area of the triangle against the length of its base: the distance of the middle point in pixels.
    area = abs((middle[0] - first[0]) * (last[1] - first[1]) - (last[0] - first[0]) * (middle[1] - first[1]))
    return area <= 0.05 * math.hypot(last[0] - first[0], last[1] - first[1])


def marker(kind: int, x: float, y: float, size: float = 3.6, **attributes: Any) -> str:
    """Return a point whose shape tells series apart where colour does not."""
    shape = _MARKERS[kind % len(_MARKERS)]
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=size, **attributes)
    if shape == "square":
        return element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, **attributes)
    if shape == "cross":
        arm = f"h{number(size * 0.8)}"
        parts = [f"M{number(x - size * 0.4)} {number(y - size * 1.2)}", arm, f"v{number(size * 0.8)}", arm]
        parts += [
            f"v{number(size * 0.8)}",
            f"h-{number(size * 0.8)}",
            f"v{number(size * 0.8)}",
            f"h-{number(size * 0.8)}",
        ]
        parts += [f"v-{number(size * 0.8)}", f"h-{number(size * 0.8)}", f"v-{number(size * 0.8)}", arm, "z"]
        return element("path", d="".join(parts), **attributes)
    reach = size * 1.4
    corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
    if shape == "triangle":
        corners = [(x, y - reach), (x + reach, y + size), (x - reach, y + size)]
    return element("path", d="M" + "L".join(f"{number(a)} {number(b)}" for a, b in corners) + "Z", **attributes)


def series_class(position: int) -> str:
    """Return the class that colours a series; past the palette a dash is added."""
    return f"s{position % N_COLOURS}" + (" dashed" if position >= N_COLOURS else "")


def picture(frame: Frame, label: str, *children: str, class_: str = "") -> str:
    """Return the finished drawing, named for screen readers; a "natural" one is not enlarged past its own size."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {frame.width} {frame.height}",
        width=frame.width if class_ == "natural" else None,
        class_=f"chart {class_}".strip(),
        role="img",
        aria_label=label,
    )
