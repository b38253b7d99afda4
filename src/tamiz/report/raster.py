"""Pictures of many cells as one embedded PNG, with what the script needs to name the cell under the pointer."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamiz.report.svg import Frame, element, number, picture, text
from tamiz.report.text import shorten

#: Index of a missing value in the palette; 0 to 254 hold the values.
MISSING_CODE = 255
#: Colours of the lowest value, the middle, the highest and of a missing one.
COLOURS = (35, 96, 168), (248, 247, 244), (176, 58, 22), (190, 190, 190)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_address(pixels: np.ndarray, palette: np.ndarray | None = None) -> str:
    """Return a PNG as a data address; written by hand because it takes ten lines and no imaging library.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width)
        Grey values, or places in the palette.
    palette : ndarray of uint8, shape (n_colours, 3), or None, default=None
        Colours; None makes a grey picture.

    Examples
    --------
    >>> png_address(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    height, width = pixels.shape
    kind = 0 if palette is None else 3
    lines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels, dtype=np.uint8))
    parts = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        parts.append(_chunk(b"PLTE", np.ascontiguousarray(palette, dtype=np.uint8).tobytes()))
    parts += [_chunk(b"IDAT", zlib.compress(lines, 9)), _chunk(b"IEND", b"")]
    return "data:image/png;base64," + base64.b64encode(b"".join(parts)).decode("ascii")


def diverging_palette() -> np.ndarray:
    """Return 256 colours: blue for the lowest value, near white for the middle, red for the highest, grey for missing."""
    lowest, middle, highest, missing = map(np.array, COLOURS)
    share = np.abs(np.linspace(-1, 1, 255))[:, None]
    end = np.where(np.arange(255)[:, None] < 127, lowest, highest)
    colours = (1 - share) * middle + share * end
    return np.vstack([colours.round(), missing]).astype(np.uint8)


def quantise(values: np.ndarray, largest: float) -> np.ndarray:
    """Return values of -largest to largest as 0 to 254; others at the border, missing ones as ``MISSING_CODE``.

    Examples
    --------
    >>> quantise(np.array([-9.0, 0.0, 3.0, np.nan]), 3.0).tolist()
    [0, 127, 254, 255]
    """
    values = np.asarray(values, dtype=np.float64)
    scaled = np.clip(np.nan_to_num(values) / largest, -1, 1) * 127 + 127
    return np.where(np.isfinite(values), scaled.round(), MISSING_CODE).astype(np.uint8)


def grid_payload(
    codes: np.ndarray, largest: float, rows: Sequence[str], columns: Sequence[str], unit: str, columns_in: str = ""
) -> dict[str, Any]:
    """Return what the script needs to name a cell: names of both axes and the quantised values."""
    return {
        "rows": [shorten(name, 60) for name in rows],
        "columns": [shorten(name, 80) for name in columns],
        "between": columns_in,
        "codes": base64.b64encode(codes.tobytes()).decode("ascii"),
        "largest": largest,
        "unit": unit,
    }


def raster_chart(
    codes: np.ndarray,
    rows: Sequence[str],
    title: str,
    *,
    key: str,
    width: int,
    cell_height: float,
    top: float = 6.0,
    above: str = "",
    over: str = "",
    square: bool = False,
) -> str:
    """Draw quantised values as one picture with the names of its rows at the left.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_rows, n_columns)
        From :func:`quantise`.
    rows : sequence of str
        Names of the rows.
    title : str
        Name for screen readers.
    key : str
        Which grid of the data block belongs to the picture.
    width : int
        Width of the drawing.
    cell_height : float
        Height of a row; where the cells are square also their width.
    top : float, default=6.0
        Room above the picture.
    above, over : str, default=""
        Markup above and over the picture. Coordinates in ``over`` are cells.
    square : bool, default=False
        Whether cells are as wide as they are high.
    """
    left = label_room(width)
    n_rows, n_columns = codes.shape
    wide = cell_height * n_columns if square else width - left - 4.0
    frame = Frame(width if not square else round(left + wide + 4), round(top + cell_height * n_rows + 6))
    parts = [above]
    limit = max(6, int(left / 6.6))
    tight = " tight" if cell_height < 11 else ""
    size = min(12.0, cell_height * 0.95)
    for i, row in enumerate(rows):
        at = top + cell_height * (i + 0.5) + size * 0.35
        parts.append(text(shorten(row, limit), left - 6, at, text_anchor="end", class_=f"cell-name{tight}"))
    place = {"x": left, "y": top, "width": wide, "height": cell_height * n_rows}
    image = {"href": png_address(codes, diverging_palette()), "preserveAspectRatio": "none", "class_": "diverging"}
    parts.append(element("image", **place, **image))
    if over:
        turn = f"translate({number(left)} {number(top)}) scale({wide / n_columns:.4f} {cell_height:.4f})"
        parts.append(element("g", over, transform=turn, class_="over-cells"))
    parts.append(element("rect", x=left, y=top, width=1.0, height=1.0, class_="cursor", visibility="hidden"))
    parts.append(element("rect", **place, class_="cells", data_grid=key))
    return picture(frame, title, *parts, class_="natural" if square else "")


def label_room(width: int) -> float:
    """Return the room for the names of the rows in a picture of some width."""
    return 150.0 if width > 500 else 96.0
