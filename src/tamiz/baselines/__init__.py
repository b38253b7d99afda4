"""The paper's competitors and a few more, one file a method, behind one interface.

Every method is a scikit-learn selector with ``scores_``, ``ranking_`` and ``selection_``; :func:`available`
lists them, :func:`make` builds one by name.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from tamiz.baselines import FisherScore
>>> FisherScore(n_features_to_select=2).fit(*load_iris(return_X_y=True)).get_support(indices=True).tolist()
[2, 3]
"""

from __future__ import annotations

from typing import Any

from tamiz.baselines.registry import METHODS, available, load, make

# Classes are loaded when they are first used: listing the methods needs neither numba nor torch.
_HOMES = {path.partition(":")[2]: path.partition(":")[0] for path in METHODS.values()}

__all__ = ["available", "make", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tamiz.baselines' has no attribute {name!r}")
    value = globals()[name] = load(name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
