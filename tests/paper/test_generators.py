"""The generators: what they promise about the columns, the classes and the seed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from tamiz.paper import make_ring, make_ring_xor, make_ring_xor_sum, make_xor

UNIFORM = {make_ring: 2, make_xor: 2, make_ring_xor: 4, make_ring_xor_sum: 6}


@pytest.mark.parametrize(("make", "n_informative"), UNIFORM.items())
def test_classes_are_balanced_and_only_the_truth_decides(make, n_informative):
    X, y, truth = make(n_samples=50_000, n_features=n_informative + 1, random_state=0)
    assert truth.informative.size == n_informative
    assert abs(y.mean() - 0.5) < 0.01
    assert -1 <= X.min() < -0.99 < X.max() <= 1
    (decoy,) = np.setdiff1d(np.arange(n_informative + 1), truth.informative)
    assert np.abs(np.corrcoef([X[:, decoy] ** 2, X[:, decoy], y])[2, :2]).max() < 0.02
    forest = RandomForestClassifier(20, random_state=0, max_samples=5000).fit(X[:, truth.informative], y)
    X, y, truth = make(n_samples=5000, n_features=n_informative + 1, random_state=1)
    assert forest.score(X[:, truth.informative], y) > 0.9


def test_labels_follow_the_definition_in_the_order_of_the_truth():
    X, y, truth = make_ring_xor_sum(n_samples=5000, n_features=20, scale=False, random_state=5)
    a, b, c, d, e, f = X[:, truth.informative].T
    q = 1 - 0.5 ** (1 / 3)
    radius = np.hypot(a - 0.5, b - 0.5)
    ring = (radius <= 0.5) & (np.pi * (0.25 - radius**2) <= q)
    cut = (1 - np.sqrt(1 - 2 * q)) / 2
    xor = (c > cut) ^ (d > cut)
    total = (2 - e - f) ** 2 / 2 < q
    np.testing.assert_array_equal(y, (ring | xor | total).astype(int))


@pytest.mark.parametrize(("make", "least"), UNIFORM.items())
def test_bad_sizes_are_refused(make, least):
    with pytest.raises(ValueError, match=f"n_features must be an integer of at least {least}"):
        make(n_features=least - 1)
    for rows in (0, -1, 1.5, True, "many"):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            make(n_samples=rows)
