"""Functions of features: orthonormal, linear between knots, few for ties and groups."""

import numpy as np
import pytest

from tamiz.engines.pairs import MOST_GROUP_FUNCTIONS, curve_values, pair_basis


def functions_of(basis):
    return basis.table[:, basis.hats.starts[-1] :].astype(np.float64)


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
    line, bowl = functions_of(pair_basis(X, np.ones(300), np.zeros(1, int), np.zeros(1, int))).T
    assert (np.abs(np.diff(np.sign(np.diff(line)))) == 0).all()  # one direction
    assert bowl[[0, -1]].min() > bowl[150] or bowl[[0, -1]].max() < bowl[150]


def test_the_order_of_values_counts_not_their_distance():
    X = np.random.default_rng(0).normal(size=(200, 1))
    plain, stretched = (pair_basis(table, np.ones(200), np.zeros(1, int), np.zeros(1, int)) for table in (X, np.exp(X)))
    # Knots are the same rows; between them the curves differ.
    assert np.corrcoef(functions_of(plain)[:, 1], functions_of(stretched)[:, 1])[0, 1] > 0.97


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
    alone = functions_of(pair_basis(X[:, :1], np.ones(300), np.zeros(1, int), [0]))
    both = functions_of(pair_basis(X, np.ones(300), np.zeros(2, int), [0]))
    assert both.shape[1] == (3 if n_gaps == 40 else 2)
    assert (np.diag(both[:, :2].T @ alone) / 300 > 0.98).all()
    np.testing.assert_allclose(both.T @ both / 300, np.eye(both.shape[1]), atol=1e-4)


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_order_of_the_columns_of_a_group_does_not_matter(n_columns):
    X = np.random.default_rng(0).normal(size=(300, n_columns))
    one, other = (
        functions_of(pair_basis(table, np.ones(300), np.zeros(n_columns, int), [0])) for table in (X, X[:, ::-1])
    )
    same = np.abs(one.T @ other) / 300  # the same functions in another order, up to their signs
    np.testing.assert_allclose(np.sort(same, axis=0)[-1], 1.0, atol=1e-3)


def test_a_copy_within_a_group_adds_nothing():
    x = np.random.default_rng(0).normal(size=(200, 3))
    X = np.column_stack([x[:, 0], x[:, 0], x[:, 1]])
    basis = pair_basis(X, np.ones(200), np.zeros(3, int), [0])
    assert basis.function_features.tolist() == [0] * 4
    few = pair_basis(x[:4], np.ones(4), np.zeros(3, int), [0])  # fewer rows than functions
    assert few.function_features.size == 0


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
    wide = pair_basis(rng.normal(size=(300, 30)), np.ones(300), np.zeros(30, int), [0])
    assert wide.function_features.size == MOST_GROUP_FUNCTIONS


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
