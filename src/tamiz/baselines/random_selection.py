"""Features drawn at random: the floor of every comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tamiz.baselines._base import BaselineSelector, scores_from_order


class RandomSelection(BaselineSelector):
    """Keep features drawn at random. What does not beat this has selected nothing.

    The score of a feature is its place in a random order (F for the first). Neither X nor y is looked at.
    Cost: O(F).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many to keep: a number, a fraction in (0, 1), or None for half.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> RandomSelection(n_features_to_select=2, random_state=0).fit(np.ones((3, 5))).transform(np.ones((3, 5))).shape
    (3, 2)
    """

    method_name = "random"
    _accept_sparse = ("csr", "csc")
    _allow_nan = True
    _min_samples = 1
    _target = "none"

    def __init__(self, n_features_to_select: int | float | None = None, *, random_state: Any = None) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        return scores_from_order(check_random_state(self.random_state).permutation(X.shape[1]))
