"""Moments under permutation and the smallest of many p values."""

import numpy as np
import pytest
from scipy import stats

from tamiz.pairs.target import TailFit, fit_tail, log_beta_sf, log_p_values, permutation_variance


def projector(features):
    q, _ = np.linalg.qr(features - features.mean(axis=0))
    return q @ q.T


@pytest.mark.parametrize("n_targets", [1, 2])
def test_moments_agree_with_many_permutations(n_targets):
    random = np.random.default_rng(0)
    n = 30
    H = projector(random.standard_t(3, size=(n, 3)))
    K = projector((random.random((n, n_targets)) < 0.2).astype(float) + 1e-3 * random.normal(size=(n, n_targets)))
    values = []
    for _ in range(20000):
        order = random.permutation(n)
        values.append((H * K[np.ix_(order, order)]).sum())
    expected = permutation_variance(3, (np.diag(H) ** 2).sum(), n_targets, (np.diag(K) ** 2).sum(), n)
    assert np.mean(values) == pytest.approx(3 * n_targets / (n - 1), rel=0.03)
    assert np.var(values) == pytest.approx(float(expected), rel=0.06)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_p_values_are_uniform_for_rare_classes_and_rare_values(share):
    random = np.random.default_rng(1)
    n = 200
    r = (np.arange(n) < share * n).astype(float)
    r = (r - r.mean()) / r.std()
    q = stats.zscore(random.normal(size=(n, 2)) * (random.random((n, 2)) < 0.3))
    H = projector(q)
    values = np.array([order @ H @ order for order in (random.permutation(r) for _ in range(20000))]) / n
    variance = permutation_variance(2, (np.diag(H) ** 2).sum(), 1, (r**4).sum() / n**2, n)
    p = np.exp(log_p_values(values, np.full(20000, 2), np.full(20000, variance), 1, n))
    for level in (0.5, 0.1, 0.01):
        assert np.mean(p < level) == pytest.approx(level, rel=0.25)


def test_no_test_has_p_value_1():
    assert log_p_values(np.array([0.5]), np.array([0]), np.array([0.0]), 1, 100).tolist() == [0.0]


def test_tails_far_below_the_smallest_number_are_smooth():
    x = np.array([0.8, 0.82, 0.84])
    got = log_beta_sf(np.full(3, 2.0), np.full(3, 400.0), x)
    np.testing.assert_allclose(got, stats.beta.logsf(x, 2.0, 400.0), rtol=1e-3)
    far = log_beta_sf(np.full(50, 2.0), np.full(50, 2000.0), np.linspace(0.25, 0.35, 50))
    assert np.isfinite(far).all()
    assert (np.diff(far) < 0).all()
    assert np.abs(np.diff(far, 2)).max() < 0.1


@pytest.mark.parametrize("n_permutations", [10, 20, 100])
def test_family_wise_error_is_kept_for_few_permutations(n_permutations):
    random = np.random.default_rng(n_permutations)
    hits = 0
    for _ in range(1500):
        smallest = np.log(random.exponential(size=n_permutations + 1) / 1000)
        hits += fit_tail(smallest[1:], 1000).log_corrected(smallest[0]) < np.log(0.05)
    assert 0.035 < hits / 1500 < 0.07


def test_dependent_tests_count_less():
    random = np.random.default_rng(0)
    smallest = np.log(random.random((50, 100)).min(axis=1))  # 1,000 tests, each ten times
    fit = fit_tail(smallest, 1000)
    assert 60 < fit.n_effective < 160
    assert fit.log_corrected(np.log(1e-4)) < TailFit(1000.0).log_corrected(np.log(1e-4))


def test_without_permutations_the_correction_is_that_for_the_number_of_tests():
    fit = fit_tail(np.empty(0), 500)
    assert np.exp(fit.log_corrected(np.log(1e-5))) == pytest.approx(0.005, rel=0.01)
    assert fit.log_corrected(-1000.0) == pytest.approx(-1000 + np.log(500))
