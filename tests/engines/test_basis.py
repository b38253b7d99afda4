"""Hats: what they span, where their knots lie; curves from weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamiz.engines.additive import hat_basis


def basis_of(X, n_knots=8, weights=None):
    return hat_basis(X, np.ones(X.shape[0], np.float32) if weights is None else weights, n_knots)


def column(values):
    return np.asarray(values, dtype=np.float32)[:, None]


@pytest.mark.parametrize("values", [[5, 5, 5], [1, 0, 0, 1], [2, 0, 7, 2], list(range(8))])
def test_a_column_with_few_values_has_a_knot_at_each(values):
    basis = basis_of(column(values))
    distinct = sorted(set(values))
    assert basis.n_knots.tolist() == [len(distinct)]
    assert basis.knots[0, : len(distinct)].tolist() == distinct
    assert basis.sizes.tolist() == [max(1, len(distinct) - 1)]


@pytest.mark.parametrize(
    "values",
    [
        list(range(71)),
        [0] * 1000 + list(range(1, 71)),
        list(range(-70, 0)) + [0] * 1000,
        list(range(-30, 0)) + [0] * 1000 + list(range(1, 41)),
    ],
    ids=["even", "first", "last", "middle"],
)
def test_knots_lie_at_quantiles_and_a_frequent_value_takes_one(values):
    basis = basis_of(column(np.random.default_rng(0).permutation(values)))
    knots = basis.knots[0]
    assert basis.n_knots.tolist() == [8]
    assert knots[[0, -1]].tolist() == [min(values), max(values)]
    assert np.diff(knots).min() >= 1
    assert np.diff(knots).max() <= 13


def test_the_columns_stand_in_the_new_table_and_their_hats_have_their_variance():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 5)) * [1, 2, 0.1, 5, 1]).astype(np.float32)
    weights = rng.uniform(0.5, 1.5, size=400).astype(np.float32)
    basis = basis_of(X, weights=weights)
    table = basis.table(X)
    np.testing.assert_array_equal(table[:, basis.starts[:-1]], X)
    mean = np.average(table, axis=0, weights=weights)
    variance = np.average((table - mean) ** 2, axis=0, weights=weights)
    for j in range(5):
        hats = slice(basis.starts[j] + 1, basis.starts[j + 1])
        np.testing.assert_allclose(mean[hats], 0.0, atol=1e-4)
        np.testing.assert_allclose(variance[hats].sum(), variance[basis.starts[j]], rtol=1e-3)


def test_any_function_of_a_column_with_few_values_is_in_the_span():
    rng = np.random.default_rng(1)
    X = column(rng.integers(6, size=200))
    table = basis_of(X).table(X)
    assert table.shape == (200, 5)
    for target in rng.normal(size=(5, 6))[:, X[:, 0].astype(int)]:
        fitted = np.column_stack([table, np.ones(200)])
        found = np.linalg.lstsq(fitted.astype(np.float64), target, rcond=None)[0]
        np.testing.assert_allclose(fitted @ found, target, atol=1e-4)


def test_a_rare_value_does_not_become_a_huge_entry():
    X = column(np.r_[np.zeros(500), np.ones(499), [0.5]])
    table = basis_of(X).table(X)
    assert np.abs(table[:, 1]).max() <= X.std() * 10


def test_a_constant_column_becomes_one_of_zeros():
    X = np.column_stack([np.full(20, 3.0), np.arange(20)]).astype(np.float32)
    basis = basis_of(X)
    assert basis.groups.tolist() == [0] + 7 * [1]
    assert not basis.table(X)[:, 0].any()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000))
def test_curves_give_what_the_weights_give(n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(3, size=n), np.full(n, 2.0), rng.integers(2, size=n), rng.exponential(size=n)]
    ).astype(np.float32)
    basis = basis_of(X)
    table = basis.table(X)
    kept = np.array([0, 1, 2, 3, 4]) if seed % 2 else np.array([1, 4])
    part = table[:, np.isin(basis.groups, kept)]
    coef = rng.normal(size=(2, part.shape[1]))
    found = np.zeros((2, n))
    for j, (knots, heights, constant) in zip(kept, basis.heights(coef, kept), strict=True):
        curve = np.stack([np.interp(X[:, j], knots, height) for height in heights])
        np.testing.assert_allclose(curve.mean(axis=1), 0.0, atol=1e-4)
        found += curve + constant[:, None]
    np.testing.assert_allclose(found, coef @ part.T, atol=1e-3)
