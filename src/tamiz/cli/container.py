"""A file of JSON and arrays that is safe to open, whoever wrote it.

Layout: 8 bytes of magic, the length of the header (8 bytes, little-endian), the header (JSON, UTF-8), the arrays one
after the other, and the SHA-256 of everything before. Nothing in it is ever run, nothing is compressed (so nothing can
swell), and every length is checked against the size of the file before memory is taken.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.cli.errors import UserError

MAGIC = b"TAMIZ\x00M\n"
_TYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8"}
_LARGEST_HEADER = 256 * 1024**2
_LARGEST_FILE = 4 * 1024**3


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Header and arrays as the bytes of a file.

    Examples
    --------
    >>> header, arrays = unpack(pack({"version": 1}, {"x": np.array([1.0, 2.0])}))
    >>> header, arrays["x"].tolist()
    ({'version': 1}, [1.0, 2.0])
    """
    entries = []
    payload = []
    for name, array in arrays.items():
        kind = array.dtype.name
        if kind not in _TYPES:
            raise TypeError(f"arrays of type {kind} are not stored")
        data = np.ascontiguousarray(array, dtype=_TYPES[kind]).tobytes()
        entries.append({"name": name, "type": kind, "shape": list(array.shape)})
        payload.append(data)
    text = json.dumps({"header": header, "arrays": entries}, ensure_ascii=False, allow_nan=False).encode()
    content = b"".join([MAGIC, struct.pack("<Q", len(text)), text, *payload])
    return content + hashlib.sha256(content).digest()


def unpack(content: bytes, name: str = "the file") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays from the bytes of a file; anything odd is a :class:`UserError`."""
    if not content.startswith(MAGIC):
        raise UserError(f"{name} is no tamiz model.")
    start = len(MAGIC) + 8
    if len(content) < start + 32 or hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise UserError(f"{name} is cut off or damaged: its checksum does not fit. Get it again.")
    (length,) = struct.unpack("<Q", content[len(MAGIC) : start])
    if length > min(_LARGEST_HEADER, len(content) - start - 32):
        raise UserError(f"{name} is malformed: the header is longer than the file.")
    # A checksum proves that a file is whole, not that it is honest: from here on nothing is taken for granted.
    try:
        record = json.loads(content[start : start + length].decode("utf-8"))
        header, entries = record["header"], record["arrays"]
        if not isinstance(header, dict) or not isinstance(entries, list):
            raise TypeError("header")
        arrays = _read_arrays(content[start + length : -32], entries)
    except (ValueError, KeyError, TypeError, RecursionError, UnicodeDecodeError) as error:
        raise UserError(f"{name} is malformed ({type(error).__name__}: {str(error)[:80]}).") from None
    return header, arrays


def _read_arrays(payload: bytes, entries: list[Any]) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    position = 0
    for entry in entries:
        shape, kind, name = entry["shape"], _TYPES[entry["type"]], entry["name"]
        if not isinstance(name, str) or not isinstance(shape, list) or len(shape) > 2:
            raise ValueError("an array without a proper name or shape")
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("a shape that is none")
        count = math.prod(shape)  # Python's integers do not overflow
        end = position + count * np.dtype(kind).itemsize
        if end > len(payload):
            raise ValueError("an array that is longer than the file")
        arrays[name] = np.frombuffer(payload, dtype=kind, count=count, offset=position).reshape(shape).copy()
        position = end
    if position != len(payload):
        raise ValueError("bytes that belong to no array")
    return arrays


def read_bytes(path: Path) -> bytes:
    """A file whole, unless it is too large to be a model."""
    if not path.exists():
        raise UserError(f"There is no file {path}.")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name the model in it, such as {path / 'model.tamiz'}.")
    size = os.path.getsize(path)
    if size > _LARGEST_FILE:
        raise UserError(f"{path.name} has {size:,} bytes: too large for a model.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
