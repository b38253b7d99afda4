"""Select by minimum redundancy and maximum relevance."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import f_regression
from sklearn.utils._param_validation import StrOptions

from tamiz.baselines._base import TASK, BaselineSelector, scores_from_order
from tamiz.baselines.fisher import between_over_within, class_moments
from tamiz.baselines.mim import MIM

# A redundancy below this counts as this much: else one accident of a zero correlation would outweigh all relevance.
_SMALLEST_REDUNDANCY = 1e-3
# The share of a variance that counts as not explained at least, so that a copy's redundancy stays finite.
_SMALLEST_SHARE = 1e-12
# Neighbours of the mutual information: with MIM's 3 its noise exceeds what weak features have to say.
_NEIGHBOURS = 10
RELEVANCES = ("f", "mutual_info")


def gaussian_information(correlations: np.ndarray) -> np.ndarray:
    """Return the mutual information, in nats, of two normal variables with these correlations; finite for copies too.

    Examples
    --------
    >>> gaussian_information(np.array([0.1, 0.5, 1.0])).round(3).tolist()
    [0.005, 0.144, 13.816]
    """
    return -0.5 * np.log(np.maximum(1.0 - correlations**2, _SMALLEST_SHARE))


class MRMR(BaselineSelector):
    r"""Minimum redundancy, maximum relevance: greedy, one feature at a time.

    The first feature is the one of the largest relevance for the target; then, with S the features picked so far, the
    one with the largest

    .. math:: \frac{F(f, y)}{\frac{1}{|S|} \sum_{s \in S} |\mathrm{corr}(f, s)|}
              \quad\text{or}\quad
              I(f; y) + \frac{1}{2|S|} \sum_{s \in S} \log(1 - \mathrm{corr}(f, s)^2)

    for ``relevance="f"`` (the F statistic of ``f_classif`` or ``f_regression`` over the mean correlation: the FCQ
    scheme) and ``relevance="mutual_info"`` (mutual information as in :class:`~tamiz.baselines.mim.MIM`, with 10
    neighbours, less the mean information that two normal variables of that correlation share: the MID scheme). corr is
    Pearson's correlation.

    The F statistic sees differences of the mean only: it finds nothing of a ring around the middle, which mutual
    information does. Where means do differ it is the steadier of the two, above all with few rows, and the default.
    Neither sees features that are informative only together (XOR).

    The score is the place in the order, F for the first; features that were not picked follow in the order of the
    criterion as it stood at the end. The scale of a column does not matter.

    Cost: O(M N F) time, O(N F) memory.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    relevance : {"f", "mutual_info"}, default="f"
        What counts as relevance, see above.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.preprocessing.targets.decide_task` does.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise that the mutual information adds; not used with "f".

    References
    ----------
    C. Ding, H. Peng: Minimum redundancy feature selection from microarray gene expression data. Journal of
    Bioinformatics and Computational Biology 3(2), 2005.
    H. Peng, F. Long, C. Ding: Feature selection based on mutual information: criteria of max-dependency,
    max-relevance, and min-redundancy. IEEE Transactions on Pattern Analysis and Machine Intelligence 27(8), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> a, b, noise = np.random.default_rng(0).normal(size=(3, 200))
    >>> X = np.column_stack([a, a + noise, b])
    >>> MRMR(n_features_to_select=2).fit(X, a + 0.8 * b).get_support(indices=True).tolist()
    [0, 2]
    """

    method_name = "mrmr"
    title = "mRMR"
    nested = "largest"  # what is not picked follows in the order of the last criterion
    _min_samples = 3
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "relevance": [StrOptions(set(RELEVANCES))],
        "task": TASK,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        relevance: str = "f",
        task: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.relevance = relevance
        self.task = task
        self.random_state = random_state

    def _f_statistic(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.task_ == "regression":
            # A column that is a multiple of y divides by zero: an infinite F is right.
            with np.errstate(divide="ignore", invalid="ignore"):
                statistic = f_regression(X, y)[0]
        else:
            counts = np.bincount(y)
            statistic = between_over_within(*class_moments(X, y, counts.size), counts)
            statistic *= (y.size - counts.size) / (counts.size - 1)
        return np.nan_to_num(statistic, nan=0.0, posinf=np.inf)

    def _relevance(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.relevance == "mutual_info":
            return MIM(n_neighbors=_NEIGHBOURS, task=self.task_, random_state=self.random_state).fit(X, y).scores_
        relevance = self._f_statistic(X, y)
        # Infinite ones stay comparable after the division by the redundancy.
        finite = relevance[np.isfinite(relevance)]
        return np.minimum(relevance, 1e6 * max(1.0, finite.max(initial=0.0)))

    def _criterion(self, relevance: np.ndarray, redundancy: np.ndarray) -> np.ndarray:
        if self.relevance == "mutual_info":
            return relevance - redundancy
        return relevance / np.maximum(redundancy, _SMALLEST_REDUNDANCY)

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        relevance = self._relevance(X, y)
        centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        norms = np.sqrt(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        unit = np.divide(centred, norms.astype(X.dtype), out=np.zeros_like(centred), where=norms > 0)
        picked = [int(np.argmax(relevance))]
        redundancy = np.zeros(X.shape[1])
        open_ = np.ones(X.shape[1], dtype=bool)
        open_[picked[0]] = False
        while True:
            correlations = np.abs(unit[:, picked[-1]] @ unit).astype(np.float64)
            redundancy += correlations if self.relevance == "f" else gaussian_information(correlations)
            criterion = self._criterion(relevance, redundancy / len(picked))
            criterion[~open_] = -np.inf
            if len(picked) == self.n_features_to_select_:
                break
            picked.append(int(np.argmax(criterion)))
            open_[picked[-1]] = False
        rest = np.argsort(-criterion, kind="stable")[: X.shape[1] - len(picked)]
        return scores_from_order(np.concatenate([picked, rest]).astype(np.int64))
