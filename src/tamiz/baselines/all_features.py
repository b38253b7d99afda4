"""Keep all features: the reference of every comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz.baselines._base import BaselineSelector


class AllFeatures(BaselineSelector):
    """Keep every feature: what a model does without selection. Every score is 1. Cost: O(F).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Not used; there so that this selector can stand in a table next to the others.

    Examples
    --------
    >>> import numpy as np
    >>> AllFeatures(n_features_to_select=2).fit(np.ones((3, 5))).get_support().tolist()
    [True, True, True, True, True]
    """

    method_name = "all"
    title = "all features"
    accepts_sparse = ("csr", "csc")
    allows_nan = True
    _min_samples = 1
    uses_target = False
    keeps_all = True

    def __init__(self, n_features_to_select: int | float | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def _resolve_n_features_to_select(self, n_features: int) -> int:
        return n_features

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        return np.ones(X.shape[1])
