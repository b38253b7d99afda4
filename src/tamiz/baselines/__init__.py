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

from itertools import chain

from tamiz._utils.extras import load_names
from tamiz.baselines.registry import BASELINES, Method, available, get_method, make_selector, methods

# Classes are loaded when they are first used: listing the methods needs neither numba nor torch.
_HOMES = {"base": ["BaselineSelector"]}
for _method in BASELINES.values():
    _module, _, _class = _method.path.removeprefix("tamiz").partition(":")
    _HOMES.setdefault(_module, []).append(_class)

__all__ = ["Method", "available", "get_method", "make_selector", "methods", *chain(*_HOMES.values())]
__getattr__, __dir__ = load_names(__name__, _HOMES)
