"""A cell: one piece of work of a protocol, with everything that decides its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from tamiz._version import __version__

#: Protocol -> "module:function" that computes a cell. Strings, so that a worker loads only what it runs.
PROTOCOLS = {
    "microarray": "tamiz.reproduce.protocols.microarray:run_cell",
    "three-layer": "tamiz.reproduce.protocols.three_layer:run_cell",
    "ground-truth": "tamiz.reproduce.protocols.ground_truth:run_cell",
    "madelon": "tamiz.reproduce.protocols.madelon:run_cell",
    "images": "tamiz.reproduce.protocols.images:run_cell",
}


def canonical_json(value: Any) -> str:
    """JSON with one spelling for equal values: what is hashed.

    Examples
    --------
    >>> canonical_json({"b": 1.5, "a": [1, None]})
    '{"a":[1,null],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seed_from(*parts: Any) -> int:
    """A seed of 31 bits that depends on all parts, and is the same on every machine.

    Examples
    --------
    >>> seed_from("colon", 3, "fisher") == seed_from("colon", 3, "fisher") != seed_from("colon", 4, "fisher")
    True
    """
    digest = hashlib.sha256(canonical_json(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


@dataclass(frozen=True)
class Cell:
    """One task of a run.

    Parameters
    ----------
    protocol : str
        One of :data:`PROTOCOLS`.
    name : str
        For people: data set, split, method.
    settings : mapping
        Everything that decides the result, as JSON: data set and check-sum of the data, split, method with all its
        parameters, numbers of features, learners, seed. A changed setting is another cell.
    version : str
        Of this package.

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
        """The hash of all that decides the result."""
        content = {"protocol": self.protocol, "settings": self.settings, "version": self.version}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:40]


def execute(cell: Cell, data_home: str | None = None) -> dict[str, Any]:
    """Compute a cell, on one thread: {"result": ...}, or {"failure": message}, never an exception of the work itself.

    One thread, because sums over several may differ in their last digits, and because cells run side by side.

    Parameters
    ----------
    cell : Cell
        What to compute.
    data_home : str or None
        Where the data sets are; a machine that has no such folder looks in its own data home.
    """
    import os
    import sys
    import warnings

    from threadpoolctl import threadpool_limits

    folder = data_home if data_home is not None and Path(data_home).is_dir() else None
    try:
        module, _, function = PROTOCOLS[cell.protocol].partition(":")
        run = getattr(import_module(module), function)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        else:
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when it is loaded
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a learner that stops at its limit of steps is part of the measurement
            return {"result": run(cell.settings, folder)}
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"failure": f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__}
