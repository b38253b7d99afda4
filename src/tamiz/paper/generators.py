"""Generate tables whose true features are known, so that those a selector finds can be counted.

The four classification problems follow Passemiers, Folco, Raimondi, Birolo, Moreau and Fariselli (2023), *How good
Neural Networks interpretation methods really are? A quantitative benchmark* (arXiv 2304.02383): 1000 rows, uniform
features, of which the first few decide the class and all others are decoys, then a random order of the columns. A row
is positive if it is so in at least one of its parts:

- ring: the point (a, b) lies in the ring of radii r and 1/2 around the middle of the unit square;
- xor: exactly one of a and b is above the cut t;
- sum: a + b is above the bound s.

r, t and s are set such that the classes are balanced in expectation, whatever the number of parts: each of m parts
holds a row with probability q, where 1 - (1 - q)^m = 1/2. Thus t = 1/2 for xor alone (no column says anything without
the other), while with several parts the cut is off the middle and each column alone carries some signal. The published
scores of mRMR (0.03 on xor, 0.80 on ring + xor) point the same way; the cuts of the published files are not known here.
Compare scores on these tables with the published ones as trends, not as digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz._utils.text import pick


@dataclass(frozen=True, eq=False)
class Truth:
    """True features of a generated table.

    Parameters
    ----------
    informative : ndarray of int
        Columns that decide the target, in the order of the definition: ``informative[i]`` is the column of the i-th.

    Examples
    --------
    >>> truth = Truth(np.array([7, 2]))
    >>> truth.share_found([2, 5]), truth.relevant.tolist()
    (0.5, [2, 7])
    """

    informative: np.ndarray

    @property
    def relevant(self) -> np.ndarray:
        """Informative columns, sorted."""
        return np.sort(self.informative)

    def share_found(self, selected: Iterable[int]) -> float:
        """Compute the share of the relevant columns that is among the selected ones."""
        return float(np.isin(self.relevant, np.asarray(list(selected), dtype=np.int64)).mean())


def _ring(pair: np.ndarray, share: float) -> np.ndarray:
    radius = np.hypot(pair[:, 0] - 0.5, pair[:, 1] - 0.5)
    return (radius >= math.sqrt(0.25 - share / math.pi)) & (radius <= 0.5)


def _xor(pair: np.ndarray, share: float) -> np.ndarray:
    cut = 0.5 - math.sqrt(0.25 - share / 2)  # the share of points with one coordinate above it is 2 t (1 - t)
    return (pair[:, 0] > cut) != (pair[:, 1] > cut)


def _sum(pair: np.ndarray, share: float) -> np.ndarray:
    return pair.sum(axis=1) > 2 - math.sqrt(2 * share)  # a triangle in the corner (1, 1), for shares up to 1/2


#: What a problem may be made of.
_PARTS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"ring": _ring, "xor": _xor, "sum": _sum}
PROBLEMS = ("ring", "xor", "ring+xor", "ring+xor+sum")


def make_ground_truth(
    problem: str, n_samples: int = 1000, n_features: int = 64, *, scale: bool = True, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, Truth]:
    """Generate two features for each part of a problem, which together decide the class, among decoys.

    Parameters
    ----------
    problem : {"ring", "xor", "ring+xor", "ring+xor+sum"}
        Parts: whether the point of two features lies in a ring; whether exactly one of two is above a cut; whether the sum of
        two is large. A row is positive if it is so in one of them.
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=64
        Number of columns, with the informative ones.
    scale : bool, default=True
        Whether the features lie in [-1, 1] rather than in [0, 1].
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of float64, shape (n_samples, n_features)
        Features, columns in random order.
    y : ndarray of int64, shape (n_samples,)
        Class, 0 or 1.
    truth : Truth
        Informative columns.

    Examples
    --------
    >>> X, y, truth = make_ground_truth("ring", n_features=8, random_state=0)
    >>> radius = np.hypot(*X[:, truth.informative].T)
    >>> bool((radius[y == 1] <= 1).all()), bool((y[radius < 0.6] == 0).all())
    (True, True)
    >>> X, y, truth = make_ground_truth("xor", n_features=8, random_state=0)
    >>> a, b = X[:, truth.informative].T
    >>> bool(np.array_equal(y == 1, a * b < 0))
    True
    """
    from sklearn.utils import check_random_state  # here, so that listing the datasets need not load scikit-learn

    parts = [pick(name, _PARTS, "part of a problem") for name in problem.split("+")]
    for name, value, least in (("n_samples", n_samples, 1), ("n_features", n_features, 2 * len(parts))):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    random = check_random_state(random_state)
    X = random.uniform(size=(n_samples, n_features))
    share = 1 - 0.5 ** (1 / len(parts))
    y = np.zeros(n_samples, dtype=bool)
    for i, part in enumerate(parts):
        y |= part(X[:, 2 * i : 2 * i + 2], share)
    if scale:
        X = 2 * X - 1
    order = random.permutation(n_features)
    return X[:, order], y.astype(np.int64), Truth(np.argsort(order)[: 2 * len(parts)])
