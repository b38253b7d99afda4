"""The second-order engine: exactly M columns, joint effects that no column shows alone, groups, sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem, fit_with_rule
from tamiz.engines.pairs import MOST_PAIRED, PairEngine, automatic_n_screened, screen
from tamiz.engines.schedule import pair_schedule


def fit_pairs(X, targets, m, loss="squared_hinge", n_screened=None, groups=None, offset=None, **lengths):
    plan = pair_schedule(X.shape[0], m, LOSSES[loss].task, **lengths)
    problem = Problem(X, targets, groups=groups, offset=offset)
    rule = Rule(problem.n_features, m, warmup_steps=plan.warmup_steps, ramp_steps=plan.ramp_steps)
    return PairEngine(n_screened=n_screened).fit(problem, rule, get_loss(loss), plan)


def product(n=300, f=60, seed=0):
    """A table in which the product of two columns decides."""
    X = np.random.default_rng(seed).normal(size=(n, f)).astype(np.float32)
    return X, (X[:, 5] * X[:, 21])[:, None]


@pytest.mark.parametrize("loss", list(LOSSES))
def test_a_product_is_found_by_every_loss(loss):
    X, score = product()
    high = score > 0
    targets = {"classification": np.where(high, 1.0, -1.0), "regression": score / score.std()}
    target = np.where(np.column_stack([~high, high]), 1.0, -1.0) if loss == "softmax" else targets[LOSSES[loss].task]
    fit = fit_pairs(X, target, 2, loss)
    assert fit.selection.indices.tolist() == [5, 21]
    assert [pair[:2] for pair in fit.model.pair_strengths()] == [(0, 1)]
    joint = fit.model.pair_effects(0, 1, X[:, [5, 21]])[:, 0]
    assert np.corrcoef(np.sign(joint), np.sign(score[:, 0]))[0, 1] > 0.75
    curve = fit.model.effects(0)[1]
    assert np.abs(curve).max() < np.abs(joint).max() / 3


def test_several_targets_share_one_selection():
    X, _ = product()
    targets = np.column_stack([X[:, 3] * X[:, 8], X[:, 8] * X[:, 30]])
    fit = fit_pairs(X, targets / targets.std(0), 3, "squared_error")
    assert fit.selection.indices.tolist() == [3, 8, 30]
    assert sorted(pair[:2] for pair in fit.model.pair_strengths()[:2]) == [(0, 1), (1, 2)]


def test_columns_that_are_not_screened_rank_behind_by_their_evidence():
    X, score = product(f=80)
    X[:, 40] += 0.3 * np.sign(score[:, 0])
    fit = fit_pairs(X, np.sign(score), 2, n_screened=10)
    assert fit.selection.indices.tolist() == [5, 21]
    assert sorted(fit.selection.ranking) == list(range(1, 81))
    assert fit.selection.ranking[40] <= 10
    assert fit.selection.history["n_alive"][0] == 10
    features = fit.selection.history["gamma_path_features"]
    assert fit.selection.ranking[features].tolist() == list(range(1, 11))


def test_more_are_wanted_than_would_be_screened():
    X, score = product()
    fit = fit_pairs(X, np.sign(score), 50, n_screened=5, ramp_steps=300, refinement_epochs=2)
    assert fit.selection.support.sum() == 50
    assert fit.model.scores(X[:, fit.selection.indices]).shape == (300, 1)


def test_the_rule_of_how_many_are_screened():
    assert [automatic_n_screened(1000, m) for m in (1, 20, 21, 500)] == [40, 40, 42, 1000]
    assert [automatic_n_screened(n, 5) for n in (20, 500, 1000, 10**6)] == [10, 20, 40, 40]
    X, score = product(f=2 * MOST_PAIRED)
    X = np.ascontiguousarray(X[:, ::-1])  # the two columns are among the last
    fit = fit_pairs(X, np.sign(score), 2 * MOST_PAIRED, refinement_epochs=5)
    assert np.unique(fit.model.function_features).size == MOST_PAIRED  # all have curves, the best have products
    last = 2 * MOST_PAIRED - 1
    assert fit.model.pair_strengths()[0][:2] == (last - 21, last - 5)


def test_one_of_one_all_of_all_and_one_row():
    X, score = product()
    one = fit_pairs(X[:, 5:6], np.sign(X[:, 5:6]), 1)
    assert one.selection.indices.tolist() == [0]
    assert one.model.pair_strengths() == []
    everything = fit_pairs(X[:, [5, 21, 3]], np.sign(score), 3)
    assert everything.selection.support.all()
    assert everything.model.pair_strengths()[0][:2] == (0, 1)
    with pytest.raises(ValueError, match="need at least 2 rows to train on, got 1"):
        fit_pairs(X[:1], np.sign(score[:1]), 2)
    with pytest.warns(ConvergenceWarning, match="removes 0% of the loss"):  # nothing to do at all
        fit = fit_pairs(X[:, :3], np.sign(score), 3, warmup_steps=0, refinement_epochs=0)
    np.testing.assert_array_equal(fit.model.scores(X[:, :3]), 0.0)


def test_indicators_of_a_category_are_one_feature():
    rng = np.random.default_rng(0)
    colour, X = rng.integers(3, size=400), rng.normal(size=(400, 20)).astype(np.float32)
    target = np.where((colour == 0) == (X[:, 4] > 0), 1.0, -1.0)[:, None]
    table = np.hstack([(colour[:, None] == np.arange(3)).astype(np.float32), X])
    # The three indicators are apart from each other in the table: 0, 11 and 22.
    order = np.array([0, *range(3, 13), 1, *range(13, 23), 2])
    groups = np.concatenate([[0], np.arange(1, 11), [0], np.arange(11, 21), [0]])
    fit = fit_pairs(table[:, order], target, 2, groups=groups)
    assert fit.selection.indices.tolist() == [0, 5]  # the colour and column 4 of X
    kept = np.flatnonzero(np.isin(groups, [0, 5]))
    scores = fit.model.scores(table[:, order][:, kept])[:, 0]
    assert (np.sign(scores) == target[:, 0]).mean() > 0.9
    assert fit.model.pair_strengths()[0][:2] == (0, 1)


@pytest.mark.parametrize("with_offset", [False, True])
def test_sparse_equals_dense_where_everything_is_screened(with_offset):
    rng = np.random.default_rng(3)
    cells = np.where(rng.random((200, 30)) > 0.5, rng.normal(size=(200, 30)), 0.0).astype(np.float32)
    offset = rng.normal(size=30).astype(np.float32) if with_offset else None
    values = cells if offset is None else cells + offset
    target = np.sign(values[:, [3]] * values[:, [9]] + 0.01)
    dense = fit_pairs(values, target, 2, n_screened=30)
    sparse = fit_pairs(sp.csr_matrix(cells), target, 2, n_screened=30, offset=offset)
    assert sparse.selection.ranking.tolist() == dense.selection.ranking.tolist()
    kept = sparse.selection.indices
    ours = sparse.model.scores(sp.csr_matrix(cells[:, kept]), None if offset is None else offset[kept])
    np.testing.assert_allclose(ours, dense.model.scores(values[:, kept]), atol=1e-3)


def test_a_wide_sparse_table_is_screened_as_it_is():
    rng = np.random.default_rng(3)
    X = sp.random(400, 500, density=0.5, format="csr", random_state=rng, dtype=np.float32)
    X.data -= 0.5
    dense = X.toarray()
    target = np.where(dense[:, [30]] * dense[:, [90]] + 0.02 * rng.normal(size=(400, 1)) > 0, 1.0, -1.0)
    assert fit_pairs(X, target, 2).selection.indices.tolist() == [30, 90]


def test_units_do_not_matter():
    X, score = product()
    plain, other = fit_pairs(X, np.sign(score), 2), fit_pairs(1e4 * X + 3e4, np.sign(score), 2)
    assert plain.selection.indices.tolist() == other.selection.indices.tolist()
    np.testing.assert_allclose(
        other.model.scores(1e4 * X[:, [5, 21]] + 3e4), plain.model.scores(X[:, [5, 21]]), rtol=0.05, atol=0.02
    )


def test_a_fit_near_chance_warns():
    X, _ = product(n=600)
    noise = np.sign(np.random.default_rng(1).normal(size=(600, 1)))
    with pytest.warns(ConvergenceWarning, match="near chance.*Raise n_screened"):
        fit_pairs(X, noise, 1)


@pytest.mark.parametrize("n_screened", [None, 1])
@pytest.mark.parametrize("sparse", [False, True])
def test_products_with_a_column_that_is_always_read(n_screened, sparse):
    X, score = product()
    groups = np.arange(60)
    groups[21] = -1
    groups[22:] -= 1
    table = sp.csr_matrix(X) if sparse else X
    fit = fit_pairs(table, np.sign(score), 1, n_screened=n_screened, groups=groups)
    assert fit.selection.indices.tolist() == [5]
    assert sorted(fit.selection.ranking) == list(range(1, 60))
    assert [pair[:2] for pair in fit.model.pair_strengths()] == [(0, 1)]
    assert [fit.model.columns_of_pairs(feature).tolist() for feature in (0, 1)] == [[0], [1]]
    assert np.mean(np.sign(fit.model.scores(X[:, [5, 21]])) == np.sign(score)) > 0.9


def test_a_column_that_is_always_read_before_the_others():
    """The model reads the columns in the order of the table, not in that of the features."""
    X, score = product(f=22)
    groups = np.append(np.arange(21), 20)
    groups[5], groups[6:] = -1, groups[6:] - 1
    fit = fit_pairs(X, np.sign(score), 1, groups=groups)  # columns 20 and 21 are one group
    assert fit.selection.indices.tolist() == [19]
    strongest = fit.model.pair_strengths()[0]
    assert [fit.model.columns_of_pairs(feature).tolist() for feature in strongest[:2]] == [[1, 2], [0]]
    assert np.mean(np.sign(fit.model.scores(X[:, [5, 20, 21]])) == np.sign(score)) > 0.9


def test_a_budget_decides_how_many():
    X, score = product(f=40)
    costs = np.ones(40)
    costs[21] = 4.0
    schedule = pair_schedule(300, 2, "classification")
    names = {"ramp_steps": schedule.ramp_steps, "warmup_steps": schedule.warmup_steps}
    problem, loss = Problem(X, np.sign(score)), get_loss("squared_hinge")
    for engine in (PairEngine(), PairEngine(n_screened=2)):
        fit = fit_with_rule(engine, problem, Rule(40, 0, costs=costs, budget=5.0, **names), loss, schedule)
        assert fit.selection.indices.tolist() == [5, 21]
        assert [pair[:2] for pair in fit.model.pair_strengths()] == [(0, 1)]
    equal = Rule(40, 0, costs=np.ones(40), budget=2.0, **names)
    paid, counted = fit_with_rule(PairEngine(), problem, equal, loss, schedule), fit_pairs(X, np.sign(score), 2)
    np.testing.assert_array_equal(paid.selection.ranking, counted.selection.ranking)
    np.testing.assert_allclose(paid.model.weights, counted.model.weights, atol=1e-4)


HINGE = get_loss("squared_hinge")


def test_what_is_screened_and_how_it_is_numbered():
    X, score = product(f=40)
    y, groups = np.sign(score), np.arange(40) % 20
    for problem, n, best in (
        (Problem(X, y), 40, {5, 21}),
        (Problem(sp.csr_matrix(X), y, offset=np.ones(40, np.float32)), 40, {5, 21}),
        (Problem(X, y, groups=groups), 20, {5, 1}),
    ):
        features, by_evidence, _ = screen(problem, Rule(n, 2), HINGE, 6)
        assert best <= set(features)
        assert sorted(by_evidence[:6]) == features.tolist()
        assert sorted(by_evidence) == list(range(n))
        part = problem.part(np.isin(np.arange(n), features)).densified()
        columns = np.flatnonzero(np.isin(np.arange(40) if problem.groups is None else groups, features))
        np.testing.assert_array_equal(part.X, X[:, columns] + (0 if problem.offset is None else 1))
        assert part.groups is None or part.groups.tolist() == np.searchsorted(features, groups[columns]).tolist()
    features, by_evidence, _ = screen(Problem(X[:, :4], y), Rule(4, 2), HINGE, 10)  # nothing is searched
    assert features.tolist() == by_evidence.tolist() == [0, 1, 2, 3]


def test_columns_that_are_always_read_stay_and_count_as_partners():
    X, score = product()
    groups = np.arange(60)
    groups[21], groups[22:] = -1, groups[22:] - 1  # alone column 5 tells nothing
    problem = Problem(X, np.sign(score), groups=groups)
    features, by_evidence, best = screen(problem, Rule(59, 1), HINGE, 3)
    assert 5 in features
    assert (features.size, by_evidence.size) == (3, 59)
    assert set(best[:2].tolist()) == {int(np.searchsorted(features, 5)), 3}
    part = problem.part(np.isin(np.arange(59), features))
    assert sorted(part.groups) == [-1, 0, 1, 2]
    np.testing.assert_array_equal(part.X[:, part.groups == -1], X[:, [21]])


@pytest.mark.parametrize(("n_screened", "share"), [(1, 1.0), (4, 1.0), (1, 2.0), (1, 100.0)])
def test_more_is_screened_than_a_budget_pays_for(n_screened, share):
    X = product(n=200, f=30)[0]
    costs = np.random.default_rng(1).uniform(1, 5, 30)
    rule = Rule(30, 0, costs=costs, budget=9.0)
    features, by_evidence, _ = screen(Problem(X, np.sign(X[:, [3]])), rule, HINGE, n_screened, share=share)
    n, spent = features.size, costs[features].sum()
    assert n >= n_screened
    assert spent > 9.0 * share or n == 30
    assert n == n_screened or costs[by_evidence[: n - 1]].sum() <= 9.0 * share * (1 + 1e-6)
