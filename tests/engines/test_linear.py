"""The compiled engine as its callers see it: exactly M, sparse like dense, whatever the memory layout; nothing lost."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core import VARIANTS, Rule
from tamiz.core.losses import LOSSES, get_loss
from tamiz.engines.contract import Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule

QUICK = {"ramp_steps": 300, "mask_learning_rate": 0.02}


def schedule(learning_rate=1e-3, l2=0.0, refinement_steps=1000, **more):
    rates = (learning_rate, learning_rate / 5, learning_rate / 25)
    return Schedule(
        learning_rate=learning_rate, l2=l2, batch_size=2, warmup_steps=0, ramp_steps=1, refinement_l2=l2,
        refinement_steps=refinement_steps, refinement_rates=rates, **more,
    )  # fmt: skip


def fit_linear(X, targets, rule, schedule, loss="squared_hinge", *, seed=0, progress=None, **problem):
    return LinearEngine().fit(
        Problem(X, targets, **problem), rule, get_loss(loss), schedule, seed=seed, progress=progress
    )


def planted(n=80, f=40, informative=(4, 17, 33), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, f)).astype(np.float32)
    score = X[:, list(informative)].sum(1)
    return X, np.where(score > 0, 1.0, -1.0)[:, None]


def sparse_table(n=90, f=60, seed=1):
    rng = np.random.default_rng(seed)
    X = sp.random(n, f, density=0.15, format="csr", random_state=rng, dtype=np.float32)
    score = X[:, 3].toarray().ravel() - X[:, 9].toarray().ravel() + 0.05 * rng.normal(size=n)
    return X, np.where(score > 0, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("variant", ["hard", "soft", "ranking"])
def test_planted_columns_are_found(variant):
    X, targets = planted()
    fit = fit_linear(X, targets, Rule(40, 3, variant=variant, ramp_steps=2000), schedule(l2=0.05, learning_rate=3e-3))
    assert fit.selection.indices.tolist() == [4, 17, 33]
    assert (np.sign(X[:, [4, 17, 33]] @ fit.model.coef[0] + fit.model.intercept[0]) == targets[:, 0]).mean() > 0.95


def test_sparse_equals_dense():
    X, targets = sparse_table()
    rule, plan = Rule(60, 5, **QUICK), schedule(l2=0.02)
    dense = fit_linear(X.toarray(), targets, rule, plan)
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.csr_array):
        sparse = fit_linear(kind(X), targets, rule, plan)
        assert sparse.selection.ranking.tolist() == dense.selection.ranking.tolist()
        np.testing.assert_allclose(sparse.model.coef, dense.model.coef, atol=1e-4)


def test_an_offset_stands_for_the_empty_cells():
    X, targets = sparse_table()
    offset = np.linspace(-0.5, 0.5, 60).astype(np.float32)
    rule, plan = Rule(60, 5, **QUICK), schedule(l2=0.02)
    dense = fit_linear(X.toarray() + offset, targets, rule, plan)
    sparse = fit_linear(X, targets, rule, plan, offset=offset)
    assert sparse.selection.ranking.tolist() == dense.selection.ranking.tolist()
    np.testing.assert_allclose(sparse.model.coef, dense.model.coef, atol=1e-4)


def test_read_only_memory_gives_the_same_and_compiles_nothing_again():
    from tamiz.engines import loop

    X, targets = planted()
    plain = fit_linear(X, targets, Rule(40, 3, **QUICK), schedule())
    n_compiled = len(loop.run.signatures)
    for array in (X, targets):
        array.flags.writeable = False
    frozen = fit_linear(X, targets, Rule(40, 3, **QUICK), schedule())
    sparse = fit_linear(sp.csr_matrix(X), targets, Rule(40, 3, **QUICK), schedule())
    np.testing.assert_array_equal(frozen.model.coef, plain.model.coef)
    assert sparse.selection.indices.tolist() == plain.selection.indices.tolist()
    assert len(loop.run.signatures) == n_compiled


def test_side_by_side_in_threads_changes_nothing():
    from concurrent.futures import ThreadPoolExecutor

    X, targets = planted()
    rule, plan = Rule(40, 3, **QUICK), schedule(l2=0.05)
    alone = fit_linear(X, targets, rule, plan)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: fit_linear(X, targets, rule, plan), range(8)))
    for fit in together:
        np.testing.assert_array_equal(fit.model.coef, alone.model.coef)


def grouped_targets(loss, scores):
    """Targets of two outputs as a loss takes them."""
    if loss == "softmax":
        return np.where(np.arange(2) == scores.argmax(1)[:, None], 1.0, -1.0)
    return np.where(scores > 0, 1.0, -1.0) if LOSSES[loss].task == "classification" else scores


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_one_column_are_no_groups(loss, sparse):
    X, _ = sparse_table()
    dense = X.toarray()
    targets = grouped_targets(loss, dense[:, [3, 5]] - dense[:, [9, 11]])
    rule, plan = Rule(60, 5, warmup_steps=20, **QUICK), schedule(l2=0.02)
    table = X if sparse else dense
    alone = fit_linear(table, targets, rule, plan, loss)
    grouped = fit_linear(table, targets, rule, plan, loss, groups=np.arange(60))
    assert grouped.selection.ranking.tolist() == alone.selection.ranking.tolist()
    np.testing.assert_allclose(grouped.model.coef, alone.model.coef, atol=1e-4)
    np.testing.assert_allclose(grouped.model.intercept, alone.model.intercept, atol=1e-4)
    np.testing.assert_array_equal(grouped.selection.history["n_alive"], alone.selection.history["n_alive"])


def test_columns_that_tell_little_alone_are_found_together():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 60)).astype(np.float32)
    groups = np.arange(60) % 12
    score = X[:, groups == 5].sum(1) + X[:, groups == 8].sum(1)
    rule = Rule(12, 2, ramp_steps=2000)
    fit = fit_linear(X, np.sign(score)[:, None], rule, schedule(l2=0.05, learning_rate=3e-3), groups=groups)
    assert fit.selection.indices.tolist() == [5, 8]
    kept = np.isin(groups, [5, 8])
    assert (np.sign(fit.model.scores(X[:, kept])[:, 0]) == np.sign(score)).mean() > 0.9


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_path_gives_the_fits_of_its_rules_to_the_last_digit(variant, kind):
    X, targets = planted(f=90) if kind == "dense" else sparse_table(f=90)
    sizes = [90, 40, 11, 10, 2, 1]
    rules = [Rule(90, m, variant=variant, warmup_steps=20, **QUICK) for m in sizes]
    schedules = [schedule(l2=0.1, refinement_steps=50 + m) for m in sizes]
    problem, loss = Problem(X, targets), get_loss("squared_hinge")
    path = list(LinearEngine().fit_path(problem, rules, loss, schedules, seed=3))
    for rule, one, found in zip(rules, schedules, path, strict=True):
        alone = LinearEngine().fit(problem, rule, loss, one, seed=3)
        np.testing.assert_array_equal(found.selection.ranking, alone.selection.ranking)
        np.testing.assert_array_equal(found.model.coef, alone.model.coef)
        np.testing.assert_array_equal(found.model.intercept, alone.model.intercept)
        for name in ("n_steps", "closed_at", "converged"):
            assert getattr(found.selection, name) == getattr(alone.selection, name)
        for name, values in alone.selection.history.items():
            np.testing.assert_array_equal(found.selection.history[name], values)


def test_a_path_takes_common_steps_once():
    X, targets = planted(f=400)
    sizes = [10, 5, 2, 1]
    rules = [Rule(400, m, ramp_steps=2000) for m in sizes]
    schedules = [schedule(refinement_steps=10)] * len(sizes)
    seen = []
    problem, loss = Problem(X, targets), get_loss("squared_hinge")
    fits = list(LinearEngine().fit_path(problem, rules, loss, schedules, progress=lambda step, *_: seen.append(step)))
    restarts = [later for step, later in pairwise(seen) if later < step]
    assert len(restarts) == len(sizes) - 1  # one continuation for each further M
    assert min(restarts) > 0.5 * fits[0].selection.closed_at


def test_a_path_starts_anew_where_more_than_m_differs():
    X, targets = planted()
    rules = [
        Rule(40, 4, **QUICK),
        Rule(40, 2, **{**QUICK, "ramp_steps": 200}),
        Rule(40, 3, **QUICK),
        Rule(40, 2, mu=2.0),
    ]
    schedules = [schedule(refinement_steps=20)] * 4
    problem, loss = Problem(X, targets), get_loss("squared_hinge")
    for rule, found in zip(rules, LinearEngine().fit_path(problem, rules, loss, schedules), strict=True):
        alone = LinearEngine().fit(problem, rule, loss, schedules[0])
        np.testing.assert_array_equal(found.model.coef, alone.model.coef)


def test_a_path_with_groups_or_costs_is_that_of_separate_fits():
    X, targets = planted(f=12, informative=(4, 7))
    groups = np.repeat(np.arange(6), 2)
    loss, one = get_loss("squared_hinge"), schedule(refinement_steps=20)
    for problem, rules in (
        (Problem(X, targets, groups=groups), [Rule(6, 3, **QUICK), Rule(6, 2, **QUICK)]),
        (Problem(X, targets), [Rule(12, 0, costs=np.ones(12), budget=budget, **QUICK) for budget in (4, 2)]),
    ):
        for rule, found in zip(rules, LinearEngine().fit_path(problem, rules, loss, [one, one]), strict=True):
            alone = LinearEngine().fit(problem, rule, loss, one)
            np.testing.assert_array_equal(found.model.coef, alone.model.coef)
