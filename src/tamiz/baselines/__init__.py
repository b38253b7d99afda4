"""The competitors of the paper and a few more, one file per method, behind one interface.

Every method is a scikit-learn selector with ``scores_``, ``ranking_`` and ``selection_``; :func:`available` lists them,
:func:`make_selector` builds one by name.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from tamiz.baselines import FisherScore
>>> FisherScore(n_features_to_select=2).fit(*load_iris(return_X_y=True)).get_support(indices=True).tolist()
[2, 3]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tamiz.baselines.registry import BASELINES, Method, available, get_method, make_selector, methods

# Classes are loaded when they are first used: listing the methods needs neither numba nor torch.
_HOMES = {
    "BaselineSelector": "tamiz.baselines.base",
    **{name: module for module, _, name in (method.path.partition(":") for method in BASELINES.values())},
}

__all__ = ["Method", "available", "get_method", "make_selector", "methods", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tamiz.baselines' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
