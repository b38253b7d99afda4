"""Select by the search for columns that act together."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tamiz.baselines._base import N_JOBS, TASK, BaselineSelector
from tamiz.pairs import find_pairs


class PairSearchScore(BaselineSelector):
    r"""Score columns by their own evidence or that of their best pair, whichever is larger.

    The score is that of :func:`tamiz.find_pairs`, :math:`-\log p - \log m` with m the number of tests: marginal tests of the
    columns, and tests of all pairs beyond what both columns say alone. A column that matters only together with another one,
    as in an exclusive or, is found as well as one that matters alone; columns that only act in threes are not. Below 20 rows
    nothing can be judged, and all scores are equal.

    Cost: :math:`2 N F^2 d^2` floating-point operations for degree d, by matrix products; O(N F d) memory. Above 20,000 columns a
    sketch looks at likely pairs only.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    degree : int, default=2
        Degree of the curves of each column, from 1 to 4.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.preprocessing.targets.decide_task` does.
    n_jobs : int or None, default=None
        Threads; None is all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the sketch.

    Attributes
    ----------
    search_ : PairSearch
        Result of the search: the pairs, the best partner of each column.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 30))
    >>> PairSearchScore(n_features_to_select=2).fit(X, X[:, 3] * X[:, 7] > 0).get_support(indices=True).tolist()
    [3, 7]
    """

    method_name = "pair-search"
    title = "pair search"
    accepts_sparse = ("csc",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "degree": [Interval(Integral, 1, 4, closed="both")],
        "task": TASK,
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        degree: int = 2,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.degree = degree
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        # Permutations correct p values and do not change the order of the columns.
        self.search_ = find_pairs(
            X,
            y,
            task=self.task_,
            degree=self.degree,
            n_permutations=0,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return self.search_.scores
