"""The generators: what they promise about the columns, the classes and the seed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from tamiz.paper import make_ground_truth

PROBLEMS = {"ring": 2, "xor": 2, "ring+xor": 4, "ring+xor+sum": 6}


@pytest.mark.parametrize(("problem", "n_informative"), PROBLEMS.items())
def test_classes_are_balanced_and_only_the_truth_decides(problem, n_informative):
    X, y, truth = make_ground_truth(problem, n_samples=50_000, n_features=n_informative + 1, random_state=0)
    assert truth.informative.size == n_informative
    assert abs(y.mean() - 0.5) < 0.01
    assert -1 <= X.min() < -0.99 < X.max() <= 1
    (decoy,) = np.setdiff1d(np.arange(n_informative + 1), truth.informative)
    assert np.abs(np.corrcoef([X[:, decoy] ** 2, X[:, decoy], y])[2, :2]).max() < 0.02
    forest = RandomForestClassifier(20, random_state=0, max_samples=5000).fit(X[:, truth.informative], y)
    X, y, truth = make_ground_truth(problem, n_samples=5000, n_features=n_informative + 1, random_state=1)
    assert forest.score(X[:, truth.informative], y) > 0.9


def test_labels_follow_the_definition_in_the_order_of_the_truth():
    X, y, truth = make_ground_truth("ring+xor+sum", n_samples=5000, n_features=20, scale=False, random_state=5)
    a, b, c, d, e, f = X[:, truth.informative].T
    q = 1 - 0.5 ** (1 / 3)
    radius = np.hypot(a - 0.5, b - 0.5)
    ring = (radius <= 0.5) & (np.pi * (0.25 - radius**2) <= q)
    cut = (1 - np.sqrt(1 - 2 * q)) / 2
    xor = (c > cut) ^ (d > cut)
    total = (2 - e - f) ** 2 / 2 < q
    np.testing.assert_array_equal(y, (ring | xor | total).astype(int))


@pytest.mark.parametrize(("problem", "least"), PROBLEMS.items())
def test_bad_sizes_are_refused(problem, least):
    with pytest.raises(ValueError, match=f"n_features must be an integer of at least {least}"):
        make_ground_truth(problem, n_features=least - 1)
    for rows in (0, -1, 1.5, True, "many"):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            make_ground_truth(problem, n_samples=rows)


def test_unknown_parts_are_refused():
    with pytest.raises(ValueError, match=r"Unknown part of a problem 'rng'\. Did you mean 'ring'"):
        make_ground_truth("xor+rng")
