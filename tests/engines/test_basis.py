"""Hats: what they span, where their knots lie, curves from weights. Functions of pairs: orthonormal, few for ties and groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamiz.engines.additive import hat_basis
from tamiz.engines.pairs import MOST_GROUP_FUNCTIONS, curve_values, pair_basis


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


def functions_of(basis):
    return basis.table[:, basis.hats.starts[-1] :].astype(np.float64)


def of_group(X):
    """Functions of columns that are one feature."""
    return functions_of(pair_basis(X, np.ones(len(X)), np.zeros(X.shape[1], int), [0]))


@pytest.mark.parametrize("weighted", [False, True])
def test_functions_have_mean_0_variance_1_and_no_correlation(weighted):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.exponential(size=200), rng.integers(4, size=200)])
    weights = rng.uniform(0.5, 3, 200) if weighted else np.ones(200)
    basis = pair_basis(X, weights, np.arange(3), np.arange(3))
    share, functions = weights / weights.sum(), functions_of(basis)
    assert basis.function_features.tolist() == [0, 0, 1, 1, 2, 2]
    for j in range(3):
        own = functions[:, 2 * j : 2 * j + 2]
        np.testing.assert_allclose(share @ own, 0.0, atol=1e-5)
        np.testing.assert_allclose((own * share[:, None]).T @ own, np.eye(2), atol=1e-5)


def test_a_line_and_a_u_shape():
    X = np.sort(np.random.default_rng(0).exponential(size=(300, 1)), axis=0)
    line, bowl = of_group(X).T
    assert (np.abs(np.diff(np.sign(np.diff(line)))) == 0).all()  # one direction
    assert bowl[[0, -1]].min() > bowl[150] or bowl[[0, -1]].max() < bowl[150]


def test_the_order_of_values_counts_not_their_distance():
    X = np.random.default_rng(0).normal(size=(200, 1))
    # Knots are the same rows; between them the curves differ.
    assert np.corrcoef(of_group(X)[:, 1], of_group(np.exp(X))[:, 1])[0, 1] > 0.97


def test_two_values_have_one_function_a_constant_and_a_rare_one_none():
    X = np.zeros((100, 3))
    X[::2, 0], X[:2, 2] = 1.0, 1.0
    basis = pair_basis(X, np.ones(100), np.arange(3), np.arange(3))
    assert basis.function_features.tolist() == [0]
    np.testing.assert_allclose(np.abs(functions_of(basis)), 1.0, atol=1e-5)


@pytest.mark.parametrize("n_gaps", [0, 1, 3, 40])
def test_an_indicator_leaves_the_functions_of_its_column_alone(n_gaps):
    """Mixed with an indicator of few rows, line and U-shape would rest on these rows, and be left out with it."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[:, 1] = np.arange(300) < n_gaps
    alone, both = of_group(X[:, :1]), of_group(X)
    assert both.shape[1] == (3 if n_gaps == 40 else 2)
    assert (np.diag(both[:, :2].T @ alone) / 300 > 0.98).all()
    np.testing.assert_allclose(both.T @ both / 300, np.eye(both.shape[1]), atol=1e-4)


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_order_of_the_columns_of_a_group_does_not_matter(n_columns):
    X = np.random.default_rng(0).normal(size=(300, n_columns))
    same = np.abs(of_group(X).T @ of_group(X[:, ::-1])) / 300  # the same functions in another order, up to their signs
    np.testing.assert_allclose(np.sort(same, axis=0)[-1], 1.0, atol=1e-3)


def test_a_copy_within_a_group_adds_nothing():
    x = np.random.default_rng(0).normal(size=(200, 3))
    assert of_group(x[:, [0, 0, 1]]).shape == (200, 4)
    assert of_group(x[:4]).shape == (4, 0)  # fewer rows than functions


def test_a_group_has_the_principal_components_of_its_columns():
    rng = np.random.default_rng(0)
    codes = rng.integers(5, size=300)
    indicators = (codes[:, None] == np.arange(5)).astype(float)
    basis = pair_basis(
        np.hstack([indicators, rng.normal(size=(300, 1))]), np.ones(300), np.repeat([0, 1], [5, 1]), [0, 1]
    )
    assert basis.function_features.tolist() == [0] * 4 + [1] * 2  # five indicators add up to one
    own = functions_of(basis)[:, :4]
    np.testing.assert_allclose(own.T @ own / 300, np.eye(4), atol=1e-4)
    assert of_group(rng.normal(size=(300, 30))).shape == (300, MOST_GROUP_FUNCTIONS)


def test_heights_give_back_the_functions():
    rng = np.random.default_rng(0)
    X = rng.normal(5.0, 3.0, size=(150, 4))
    basis = pair_basis(X, np.ones(150), np.array([0, 1, 1, 2]), np.array([0, 1, 2]))
    knots = [basis.hats.knots[j, : basis.hats.n_knots[j]] * basis.deviation[j] + basis.mean[j] for j in range(4)]
    np.testing.assert_allclose(curve_values(X, knots, basis.heights), functions_of(basis), atol=1e-4)


def test_features_outside_of_the_pairs_have_curves_only():
    X = np.random.default_rng(0).normal(size=(60, 3))
    basis = pair_basis(X, np.ones(60), np.arange(3), np.array([2]))
    assert basis.hats.starts.tolist() == [0, 7, 14, 21]
    assert basis.function_features.tolist() == [2, 2]
    none = pair_basis(X, np.ones(60), np.arange(3), np.array([], dtype=int))
    assert none.table.shape == (60, 21)
