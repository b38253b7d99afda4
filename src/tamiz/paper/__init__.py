"""The paper: data sets, deep baselines, protocols, the runner and the printed numbers.

Names are loaded when they are first used: listing the data sets needs neither torch nor numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "datasets": ("REGISTRY", "Dataset", "DatasetEntry", "describe", "find_data_home", "find_entry", "load_dataset"),
    "generators": (*("Truth", "make_ring", "make_ring_xor", "make_ring_xor_sum", "make_xor"),),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
