"""The paper: data sets, deep baselines, protocols, the runner and the printed numbers.

Names are loaded when they are first used: listing the data sets needs neither torch nor numba.
"""

from __future__ import annotations

from tamiz._utils.extras import load_names

_HOMES = {
    "datasets": ("REGISTRY", "Dataset", "DatasetEntry", "describe", "find_data_home", "find_entry", "load_dataset"),
    "generators": ("Truth", "make_ground_truth"),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)
__getattr__, __dir__ = load_names(__name__, _HOMES)
