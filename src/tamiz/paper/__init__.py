"""The paper: data sets, deep baselines, protocols, the runner and the printed numbers.

Names are loaded when they are first used: listing the data sets needs neither torch nor numba.
"""

from __future__ import annotations

from tamiz._utils.extras import load_names

_HOMES = {
    "datasets": ("REGISTRY", "Dataset", "DatasetEntry", "describe", "find_data_home", "find_entry", "load_dataset"),
    "generators": ("Truth", "make_ring", "make_ring_xor", "make_ring_xor_sum", "make_xor"),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)
__getattr__ = load_names(__name__, _HOMES)
