"""The additive engine: exactly M columns, curves that are what was planted, the linear model where no curve is possible."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamiz.core import VARIANTS, Rule
from tamiz.core.losses import LOSSES, get_loss
from tamiz.engines import Problem, additive_schedule
from tamiz.engines.additive import AdditiveEngine, AdditiveModel
from tamiz.engines.linear import LinearEngine


def fit_additive(X, targets, m, loss="squared_hinge", engine=None, *, seed=0, variant="soft", n_features=None, **more):
    given = {name: more.pop(name) for name in ("ramp_steps", "l2", "refinement_epochs") if name in more}
    schedule = additive_schedule(X.shape[0], m, LOSSES[loss].task, **given)
    rule = Rule(
        n_features or X.shape[1], m, variant=variant, warmup_steps=schedule.warmup_steps, ramp_steps=schedule.ramp_steps
    )
    return (engine or AdditiveEngine()).fit(Problem(X, targets, **more), rule, get_loss(loss), schedule, seed=seed)


def u_shaped(n=300, f=40, seed=0):
    """A table in which the squares of two columns decide: a linear model sees neither."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, f)).astype(np.float32)
    return X, (X[:, 5] ** 2 + X[:, 21] ** 2)[:, None]


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 12).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f))),
    st.sampled_from(list(VARIANTS)),
    st.sampled_from(list(LOSSES)),
    st.booleans(),
    st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exactly_m_columns_whatever_they_hold(sizes, variant, loss, sparse, seed):
    f, m = sizes
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, f)).round(rng.integers(3)).astype(np.float32)
    X[:, 0] = 1.0
    targets = np.where(rng.random((12, 2)) > 0.5, 1.0, -1.0)
    table = sp.csr_matrix(X) if sparse else X
    fit = fit_additive(table, targets, m, loss, variant=variant, ramp_steps=200, refinement_epochs=2)
    assert fit.selection.support.sum() == m
    assert sorted(fit.selection.ranking) == list(range(1, f + 1))
    assert fit.selection.engine == "additive"
    n_outputs = 1 if LOSSES[loss].exclusive else 2
    scores = fit.model.scores(table[:, fit.selection.indices])
    assert scores.shape == (12, n_outputs)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "softmax", "squared_error", "huber"])
def test_u_shapes_are_found_by_every_loss(loss):
    X, score = u_shaped()
    high = score > np.median(score)
    targets = {"classification": np.where(high, 1.0, -1.0), "regression": (score - score.mean()) / score.std()}
    target = np.where(np.column_stack([~high, high]), 1.0, -1.0) if loss == "softmax" else targets[LOSSES[loss].task]
    fit = fit_additive(X, target, 2, loss)
    assert fit.selection.indices.tolist() == [5, 21]
    for column in range(2):
        grid, curve = fit.model.effects(column)
        assert (np.diff(grid) > 0).all()
        assert curve.shape == (1, grid.size)
        assert min(curve[0, 0], curve[0, -1]) > curve[0, grid.size // 2]
    scores = fit.model.scores(X[:, [5, 21]])[:, 0]
    assert np.corrcoef(scores, score[:, 0])[0, 1] > 0.85


def test_several_outputs_have_curves_of_their_own():
    X, _ = u_shaped()
    targets = np.column_stack([np.abs(X[:, 3]), X[:, 3], np.zeros(300)])
    fit = fit_additive(X, (targets - targets.mean(0)) / (targets.std(0) + 1e-9), 1, "squared_error")
    _, (valley, line, nothing) = fit.model.effects(0)
    assert fit.selection.indices.tolist() == [3]
    assert valley[0] > valley[4] < valley[-1]
    assert (np.diff(line) > 0).all()
    assert np.abs(nothing).max() < 0.05


@pytest.mark.parametrize("with_offset", [False, True])
def test_sparse_equals_dense(with_offset):
    rng = np.random.default_rng(3)
    cells = np.where(rng.random((120, 30)) > 0.6, rng.normal(size=(120, 30)), 0.0).astype(np.float32)
    offset = rng.normal(size=30).astype(np.float32) if with_offset else None
    dense = cells if offset is None else cells + offset
    target = np.where(np.abs(cells[:, 4]) + np.abs(cells[:, 9]) > 0.5, 1.0, -1.0)[:, None]
    expected = fit_additive(dense, target, 2)
    fit = fit_additive(sp.csr_matrix(cells), target, 2, offset=offset)
    assert fit.selection.indices.tolist() == expected.selection.indices.tolist() == [4, 9]
    kept = sp.csr_matrix(cells[:, [4, 9]])
    part = None if offset is None else offset[[4, 9]]
    np.testing.assert_allclose(fit.model.scores(kept, part), expected.model.scores(dense[:, [4, 9]]), atol=1e-2)


def test_entries_of_a_sparse_table_that_are_stored_twice_count_as_their_sum():
    X, score = u_shaped(n=100)
    target = np.where(score > np.median(score), 1.0, -1.0)
    indptr = 80 * np.arange(101)
    halves = sp.csr_matrix((np.hstack([X / 2, X / 2]).ravel(), np.tile(np.arange(40), 200), indptr), shape=X.shape)
    assert not halves.has_canonical_format
    twice = fit_additive(halves, target, 2)
    once = fit_additive(sp.csr_matrix(X), target, 2)
    np.testing.assert_array_equal(twice.selection.ranking, once.selection.ranking)
    np.testing.assert_allclose(twice.model.heights, once.model.heights, atol=1e-4)
    assert halves.nnz == 2 * X.size


def test_columns_of_two_values_give_the_linear_model():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((150, 20)) > 0.5, 1.0, -0.5).astype(np.float32)
    target = np.where(X[:, 2] + X[:, 8] + X[:, 11] > 0.2, 1.0, -1.0)[:, None]
    additive = fit_additive(X, target, 3)
    linear = fit_additive(X, target, 3, engine=LinearEngine())
    assert additive.selection.ranking.tolist() == linear.selection.ranking.tolist()
    kept = X[:, linear.selection.indices]
    np.testing.assert_allclose(additive.model.scores(kept), linear.model.scores(kept), atol=1e-4)


def test_codes_of_categories_need_no_order():
    rng = np.random.default_rng(6)
    X = rng.integers(6, size=(400, 12)).astype(np.float32)
    height = np.array([0.0, 3.0, -2.0, 1.0, -3.0, 2.0])
    target = height[X[:, 7].astype(int)]
    fit = fit_additive(X, ((target - target.mean()) / target.std())[:, None], 1, "squared_error")
    assert fit.selection.indices.tolist() == [7]
    grid, curve = fit.model.effects(0)
    assert grid.tolist() == [0, 1, 2, 3, 4, 5]
    assert np.argsort(curve[0]).tolist() == np.argsort(height).tolist()


def test_groups_of_columns_are_kept_together():
    X, score = u_shaped()
    target = np.where(score > np.median(score), 1.0, -1.0)
    groups = np.arange(40) % 10  # columns 5 and 21 are in the groups 5 and 1
    fit = fit_additive(X, target, 2, groups=groups, n_features=10)
    assert fit.selection.indices.tolist() == [1, 5]
    kept = np.flatnonzero(np.isin(groups, [1, 5]))
    assert fit.model.starts.size - 1 == kept.size == 8
    scores = fit.model.scores(X[:, kept])[:, 0]
    assert (np.sign(scores) == target[:, 0]).mean() > 0.8


def test_all_columns_wanted_and_one_row():
    X, _ = u_shaped()
    fit = fit_additive(X[:, :4], np.sign(X[:, :1]), 4)
    assert fit.selection.support.all()
    one = fit_additive(X[:1, :4], np.ones((1, 1)), 2, ramp_steps=200)
    assert one.selection.support.sum() == 2
    np.testing.assert_array_equal(one.model.heights, 0.0)


def test_same_seed_same_result_and_the_callers_memory_is_left_alone():
    X, score = u_shaped()
    target, before = np.where(score > np.median(score), 1.0, -1.0), X.copy()
    X.flags.writeable = False
    a, b, c = (fit_additive(X, target, 2, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(a.model.heights, b.model.heights)
    assert not np.array_equal(a.model.heights, c.model.heights)
    np.testing.assert_array_equal(X, before)


def test_outside_of_the_training_rows_a_curve_is_constant():
    model = AdditiveModel(np.array([-1.0, 0.0, 2.0]), np.array([0, 3]), np.array([[1.0, 0.0, 4.0]]), np.array([10.0]))
    assert model.scores(np.array([[-9.0], [1.0], [9.0]]))[:, 0].tolist() == [11.0, 12.0, 14.0]
    rescaled = model.rescaled(np.array([1.0]), np.array([2.0]))
    assert rescaled.scores(np.array([[1.0]])).tolist() == [[25.0]]


@pytest.mark.parametrize("column", [1, -2])
def test_a_curve_of_a_column_that_is_not_there(column):
    model = AdditiveModel(np.array([0.0]), np.array([0, 1]), np.zeros((1, 1)), np.zeros(1))
    with pytest.raises(IndexError, match="one of the 1 selected columns"):
        model.effects(column)


def test_a_table_beyond_the_memory_allowed_is_reported():
    X, score = u_shaped()
    with pytest.raises(MemoryError, match=r"the curves of 40 columns and 300 rows take .* select fewer columns first"):
        fit_additive(X, score, 2, "squared_error", AdditiveEngine(max_bytes=300 * 40 * 7 * 4 - 1))
    fit_additive(X, score, 2, "squared_error", AdditiveEngine(max_bytes=300 * 40 * 7 * 4), ramp_steps=200)


def test_too_few_knots_are_reported():
    with pytest.raises(ValueError, match="n_knots must be 2 or more, got 1"):
        AdditiveEngine(n_knots=1)
