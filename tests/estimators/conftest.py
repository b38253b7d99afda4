"""Small tables with a known truth."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def table():
    """80 x 30; the class is the sign of column 3 less column 7."""
    X = np.random.default_rng(0).normal(size=(80, 30))
    return X, (X[:, 3] - X[:, 7] > 0).astype(int)


@pytest.fixture
def three_classes():
    """120 x 12; columns 2, 5 and 9 each speak for one class."""
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 40)
    X = rng.normal(size=(120, 12))
    for column, name in ((2, "a"), (5, "b"), (9, "c")):
        X[:, column] += 3.0 * (y == name)
    return X, y


@pytest.fixture
def numbers():
    """120 x 20; y = 3 x3 - 2 x7 + 10."""
    X = np.random.default_rng(2).normal(size=(120, 20))
    return X, 3 * X[:, 3] - 2 * X[:, 7] + 10
