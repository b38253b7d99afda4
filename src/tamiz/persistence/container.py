"""Pack a header and arrays into a safetensors file with a checksum, and unpack such files, whoever wrote them.

The metadata of the file have one entry, ``tamiz``: JSON with the header and the SHA-256 of the file (computed with zeros in
its place). Nothing in a file is ever run, nothing is compressed, and every size is checked against the size of the file
before memory is taken.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from tamiz._extras import require
from tamiz.errors import TamizError

_START = b'{"__metadata__":{"tamiz":'
_NO_DIGEST = "0" * 64
_TYPES = ("float32", "float64", "int64")
_LARGEST_HEADER = 100_000_000  # safetensors reads no longer ones


class ModelFileError(TamizError, ValueError):
    """Raise if a file is no model, is damaged, or if a model cannot be written to a file."""


def pack_model_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the content of a file with a header and arrays; the same for the same input.

    Examples
    --------
    >>> header, arrays = unpack_model_file(pack_model_file({"version": 1}, {"x": np.array([1.0, 2.0])}))
    >>> header, arrays["x"].tolist()
    ({'version': 1}, [1.0, 2.0])
    """
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES:
            raise TypeError(f"arrays of type {array.dtype} are not stored (array {name!r})")
    # One entry of metadata only: safetensors writes several in an order that changes from run to run.
    text = json.dumps({"sha256": _NO_DIGEST, "header": header}, ensure_ascii=False, allow_nan=False)
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = _safetensors().save(tensors, {"tamiz": text})
    if int.from_bytes(content[:8], "little") > _LARGEST_HEADER:
        raise ModelFileError("The names of the columns and categories are too long for a model file.")
    return content.replace(_NO_DIGEST.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def unpack_model_file(content: bytes, name: str = "the file") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a file.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str, default="the file"
        Name of the file, for messages.

    Raises
    ------
    ModelFileError
        If the content is anything but a whole, unchanged model file.
    """
    if content[8 : 8 + len(_START)] != _START:
        raise ModelFileError(f"{name} is no tamiz model. Give the model.tamiz that tamiz select wrote.")
    end = 8 + int.from_bytes(content[:8], "little")
    try:
        if end > len(content):
            raise ValueError("the header is longer than the file")
        record = json.loads(json.loads(content[8:end])["__metadata__"]["tamiz"])
        digest, header = record["sha256"].encode(), record["header"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        digest, header = b"", None
    found = hashlib.sha256(content[:end].replace(digest, _NO_DIGEST.encode(), 1) if digest else b"")
    found.update(memoryview(content)[end:])
    if found.hexdigest().encode() != digest:
        raise ModelFileError(f"{name} is cut off or damaged: its checksum does not fit. Get it again.")
    # A checksum proves that a file is whole, not that it is honest: from here on nothing is taken for granted.
    try:
        arrays = _safetensors().load(content)
        check_claim(isinstance(header, dict), "header")
        for array in arrays.values():
            check_claim(array.dtype.name in _TYPES and array.ndim <= 2, "type or shape of an array")
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        require("safetensors", "cli", "").SafetensorError,
    ) as error:
        raise malformed_error(error, name) from None
    return header, arrays


def _safetensors() -> Any:
    return require("safetensors.numpy", "cli", "A model file")


def malformed_error(error: Exception, name: str) -> ModelFileError:
    """Return the error for a file whose content does not fit together."""
    return ModelFileError(f"{name} is malformed ({type(error).__name__}: {str(error)[:80]}). Get it again.")


def check_claim(condition: bool, what: str) -> None:
    """Raise ValueError if a claim of a file does not hold."""
    if not condition:
        raise ValueError(what)
