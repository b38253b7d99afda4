"""Select features at random: the floor of every comparison."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from tamiz.baselines._base import BaselineSelector, scores_from_order


class RandomSelection(BaselineSelector):
    """Keep features drawn at random. A method that is no better selects nothing of use.

    The score of a feature is its place in a random order (F for the first). Neither X nor y is used.
    Cost: O(F).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> RandomSelection(n_features_to_select=2, random_state=0).fit(np.ones((3, 5))).transform(np.ones((3, 5))).shape
    (3, 2)
    """

    method_name = "random"
    title = "random features"
    accepts_sparse = ("csr", "csc")
    allows_nan = True
    _min_samples = 1
    uses_target = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "random_state": ["random_state"],
    }

    def __init__(self, n_features_to_select: int | float | None = None, *, random_state: Any = None) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        return scores_from_order(check_random_state(self.random_state).permutation(X.shape[1]))
