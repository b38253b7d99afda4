"""Records to plain data and back: dictionaries, lists and numbers that JSON can hold."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tamiz.selection import Selection


def to_plain(value: Any) -> Any:
    """A record as dictionaries, lists and numbers; NaN and infinity, which JSON has no word for, become None.

    Examples
    --------
    >>> to_plain({"score": np.float64(0.5), "low": float("nan")})
    {'score': 0.5, 'low': None}
    """
    if isinstance(value, Selection):
        return to_plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _from_plain(kind: Any, value: Any) -> Any:
    """The inverse of :func:`to_plain` for a field of type ``kind``."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        # Unions here are "record or None" and plain scalars; only a record needs building.
        records = [entry for entry in arguments if entry is not types.NoneType]
        return _from_plain(records[0], value) if len(records) == 1 else value
    if kind is Selection:
        return Selection.from_dict(value)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _from_plain(hints[name], entry) for name, entry in value.items()})  # type: ignore[operator]
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_from_plain(arguments[0], entry) for entry in value)
        return tuple(_from_plain(part, entry) for part, entry in zip(arguments, value, strict=True))
    return value


class Record:
    """To JSON and back, for the two big records."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers."""
        return to_plain(self)

    def to_json(self) -> str:
        """The record as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`."""
        return _from_plain(cls, record)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls.from_dict(json.loads(text))
