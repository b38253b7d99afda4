"""Cells: the pieces of work of a protocol, each with everything that decides its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tamiz._version import __version__


def canonical_json(value: Any) -> str:
    """Return JSON that is the same for equal values, to be hashed.

    Examples
    --------
    >>> canonical_json({"b": 1.5, "a": [1, None]})
    '{"a":[1,null],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seed_from(*parts: Any) -> int:
    """Return a seed of 31 bits that depends on all parts and is the same on every machine.

    Examples
    --------
    >>> seed_from("colon", 3, "fisher") == seed_from("colon", 3, "fisher") != seed_from("colon", 4, "fisher")
    True
    """
    digest = hashlib.sha256(canonical_json(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


@dataclass(frozen=True)
class Cell:
    """Describe one piece of work of a run.

    Parameters
    ----------
    protocol : str
        Name of the protocol, as in :mod:`tamiz.reproduce.registry`.
    name : str
        Human-readable name: data set, split, method.
    settings : mapping
        Everything that decides the result, as JSON: data set and checksum of the data, split, method with all its
        parameters, numbers of features, learners, seed. A changed setting is another cell.
    version : str, default=the version of tamiz
        Version that computes it.

    Examples
    --------
    >>> one, two = Cell("microarray", "a", {"split": 1}), Cell("microarray", "a", {"split": 2})
    >>> one.key == Cell("microarray", "b", {"split": 1}).key, one.key == two.key
    (True, False)
    """

    protocol: str
    name: str
    settings: Mapping[str, Any]
    version: str = __version__

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the result."""
        content = {"protocol": self.protocol, "settings": self.settings, "version": self.version}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:40]
