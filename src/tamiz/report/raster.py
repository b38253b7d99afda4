"""Cells as one embedded PNG, and what the script needs to name the cell under the pointer."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamiz._utils.pictures import Grid
from tamiz.report.text import shorten

#: Index of a missing value in the palette; 0 to 254 hold the values.
MISSING_CODE = 255
#: Colours of the lowest value, the middle, the highest and of a missing one.
COLOURS = (35, 96, 168), (248, 247, 244), (176, 58, 22), (190, 190, 190)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_address(pixels: np.ndarray, palette: np.ndarray | None = None) -> str:
    """Write a PNG as a data address; by hand because it takes ten lines and no imaging library.

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
    """Return what the script needs to name a cell: names of both axes and the quantised values."""
    return {
        "rows": [shorten(name, 60) for name in grid.rows],
        "columns": [shorten(name, 80) for name in columns],
        "between": between,
        "codes": base64.b64encode(quantise(grid.values, grid.high).tobytes()).decode("ascii"),
        "largest": grid.high,
        "unit": grid.label,
    }
