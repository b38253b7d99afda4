from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from tamiz.baselines import InfFS
from tamiz.baselines import infinite as module


def plain_inffs(X, alpha):
    """The published steps with whole matrices."""
    low = X.min(axis=0)
    X = (X - low) / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    n_features = X.shape[1]
    with np.errstate(all="ignore"):
        correlation = np.array(
            [[0.0 if np.ptp(a) == 0 or np.ptp(b) == 0 else spearmanr(a, b).statistic for b in X.T] for a in X.T]
        )
    spread = X.std(axis=0, ddof=1)
    sigma = np.maximum.outer(spread, spread)
    sigma = (sigma - sigma.min()) / (sigma - sigma.min()).max()
    A = alpha * (1 - np.abs(correlation)) + (1 - alpha) * sigma
    r = 0.99 / np.linalg.eigvalsh(A)[-1]
    return (np.linalg.inv(np.eye(n_features) - r * A) - np.eye(n_features)).sum(axis=1)


def test_worked_by_hand():
    # Ranks of the columns: (1,2,3), (3,2,1) and (1,3,2); Spearman: -1 between the first two, 0.5 and -0.5 with the
    # third. Scaled to [0, 1] the columns are (0, .5, 1), (1, .5, 0), (0, 1, .5), all of one standard deviation, so
    # sigma, which starts at 0 and has no range, is 0. With alpha = 1/2:
    #       | 0    0    1/4 |
    #   A = | 0    0    1/4 |      A v = lambda v: v = (1, 1, sqrt 2), lambda = sqrt(2)/4.
    #       | 1/4  1/4  0   |
    # With r = 0.99 / lambda and q = r/4 = 0.99/sqrt(2): x = 1 + q z, z = 1 + 2 q x  =>  x = (1 + q) / (1 - 2 q^2).
    X = np.array([[1.0, 6.0, 0.0], [2.0, 5.0, 8.0], [3.0, 4.0, 4.0]])
    q = 0.99 / np.sqrt(2.0)
    x = (1 + q) / (1 - 2 * q**2)
    z = 1 + 2 * q * x
    selector = InfFS(n_features_to_select=1).fit(X)
    np.testing.assert_allclose(selector.scores_, [x - 1, x - 1, z - 1], rtol=1e-6)
    assert selector.ranking_.tolist() == [2, 3, 1]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_whole_matrices_give_the_same(alpha):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, 9)) ** 3
    X[:, 4] = 2.0  # no correlation exists
    X[:, 6] = np.round(X[:, 6])  # ties
    np.testing.assert_allclose(InfFS(alpha=alpha).fit(X).scores_, plain_inffs(X, alpha), rtol=1e-6)


@pytest.mark.parametrize("memory", [10**9, 0])
def test_blocks_and_single_precision_give_the_same(memory, monkeypatch):
    X = np.random.default_rng(2).normal(size=(12, 23))
    expected = plain_inffs(X, 0.5)
    monkeypatch.setattr(module, "_BLOCK", 5)
    monkeypatch.setattr(module, "_FLOAT64_UP_TO", 0)
    monkeypatch.setattr(module, "_MEMORY_FOR_CORRELATIONS", memory)
    np.testing.assert_allclose(InfFS().fit(X).scores_, expected, rtol=1e-4)


def test_largest_eigenvalue_where_power_iteration_swings():
    path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # eigenvalues +-sqrt(2)
    assert module.largest_eigenvalue(lambda v: path @ v, 3) == pytest.approx(np.sqrt(2.0))
    star = np.array([[0.0, 2.0], [0.5, 0.0]])
    assert module.largest_eigenvalue(lambda v: (star + star.T) @ v, 2) == pytest.approx(2.5)


def test_identical_columns_have_no_edges():
    X = np.tile(np.arange(5.0)[:, None], (1, 4))
    assert InfFS(alpha=1.0).fit(X).scores_.tolist() == [0.0] * 4


def test_scale_decides_whether_units_matter():
    X = np.random.default_rng(3).random((20, 6))
    units = np.array([1.0, 1.0, 1000.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(InfFS().fit(X * units).scores_, InfFS().fit(X).scores_, rtol=1e-9)
    assert InfFS(scale=False).fit(X * units).ranking_[2] == 1


def test_rows_twice_change_only_the_spread():
    X = np.random.default_rng(4).normal(size=(20, 6))
    np.testing.assert_allclose(InfFS().fit(np.vstack([X, X])).scores_, InfFS().fit(X).scores_, rtol=1e-6)


def test_the_target_is_not_looked_at():
    X = np.random.default_rng(5).normal(size=(10, 4))
    assert np.array_equal(InfFS().fit(X).scores_, InfFS().fit(X, ["a"] * 10).scores_)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, "half", np.nan])
def test_impossible_alpha(alpha):
    with pytest.raises(ValueError, match="The 'alpha' parameter of InfFS must be a float"):
        InfFS(alpha=alpha).fit(np.eye(3))
