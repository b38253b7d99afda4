"""The compiled linear engine as its callers see it: sparse like dense, threads, groups, paths of several M; nothing lost."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import VARIANTS, Rule
from tamiz.engines import loop
from tamiz.engines.contract import Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule

QUICK = {"ramp_steps": 300, "mask_learning_rate": 0.02}
HINGE = get_loss("squared_hinge")


def schedule(learning_rate=1e-3, l2=0.0, refinement_steps=1000):
    rates = (learning_rate, learning_rate / 5, learning_rate / 25)
    return Schedule(learning_rate, l2, 2, 0, 1, refinement_steps, l2, rates)


def fit_linear(X, targets, rule, plan, loss="squared_hinge", **problem):
    return LinearEngine().fit(Problem(X, targets, **problem), rule, get_loss(loss), plan)


def planted(n=80, f=40, informative=(4, 17, 33), seed=0):
    X = np.random.default_rng(seed).normal(size=(n, f)).astype(np.float32)
    return X, np.where(X[:, list(informative)].sum(1) > 0, 1.0, -1.0)[:, None]


def sparse_table(n=90, f=60, seed=1):
    rng = np.random.default_rng(seed)
    X = sp.random(n, f, density=0.15, format="csr", random_state=rng, dtype=np.float32)
    score = X[:, 3].toarray().ravel() - X[:, 9].toarray().ravel() + 0.05 * rng.normal(size=n)
    return X, np.where(score > 0, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("variant", VARIANTS)
def test_planted_columns_are_found(variant):
    X, targets = planted()
    fit = fit_linear(X, targets, Rule(40, 3, variant=variant, ramp_steps=2000), schedule(l2=0.05, learning_rate=3e-3))
    assert fit.selection.indices.tolist() == [4, 17, 33]
    assert (np.sign(fit.model.scores(X[:, [4, 17, 33]])) == targets).mean() > 0.95


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize("offset", [None, np.linspace(-0.5, 0.5, 60).astype(np.float32)], ids=["zero", "offset"])
def test_sparse_equals_dense(kind, offset):
    X, targets = sparse_table()
    rule, plan = Rule(60, 5, **QUICK), schedule(l2=0.02)
    dense = fit_linear(X.toarray() + (0 if offset is None else offset), targets, rule, plan)
    sparse = fit_linear(kind(X), targets, rule, plan, offset=offset)
    assert sparse.selection.ranking.tolist() == dense.selection.ranking.tolist()
    np.testing.assert_allclose(sparse.model.coef, dense.model.coef, atol=1e-4)


def test_read_only_memory_and_threads_give_the_same_and_compile_nothing_again():
    X, targets = planted()
    rule, plan = Rule(40, 3, **QUICK), schedule(l2=0.05)
    plain = fit_linear(X, targets, rule, plan)
    n_compiled = len(loop.run.signatures)
    for array in (X, targets):
        array.flags.writeable = False
    with ThreadPoolExecutor(4) as pool:
        for fit in pool.map(lambda _: fit_linear(X, targets, rule, plan), range(8)):
            np.testing.assert_array_equal(fit.model.coef, plain.model.coef)
    sparse = fit_linear(sp.csr_matrix(X), targets, rule, plan)
    assert sparse.selection.indices.tolist() == plain.selection.indices.tolist()
    assert len(loop.run.signatures) == n_compiled


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_one_column_are_no_groups(loss, sparse):
    X, _ = sparse_table()
    table = X if sparse else X.toarray()
    scores = X.toarray()[:, [3, 5]] - X.toarray()[:, [9, 11]]
    targets = np.where(scores > 0, 1.0, -1.0) if LOSSES[loss].task == "classification" else scores
    if loss == "softmax":
        targets = np.where(np.arange(2) == scores.argmax(1)[:, None], 1.0, -1.0)
    rule, plan = Rule(60, 5, warmup_steps=20, **QUICK), schedule(l2=0.02)
    alone, grouped = (fit_linear(table, targets, rule, plan, loss, groups=groups) for groups in (None, np.arange(60)))
    assert grouped.selection.ranking.tolist() == alone.selection.ranking.tolist()
    np.testing.assert_allclose(grouped.model.coef, alone.model.coef, atol=1e-4)
    np.testing.assert_allclose(grouped.model.intercept, alone.model.intercept, atol=1e-4)
    np.testing.assert_array_equal(grouped.selection.history["n_alive"], alone.selection.history["n_alive"])


def test_columns_that_tell_little_alone_are_found_together():
    X, groups = np.random.default_rng(2).normal(size=(120, 60)).astype(np.float32), np.arange(60) % 12
    kept = np.isin(groups, [5, 8])
    targets, plan = np.sign(X[:, kept].sum(1))[:, None], schedule(l2=0.05, learning_rate=3e-3)
    fit = fit_linear(X, targets, Rule(12, 2, ramp_steps=2000), plan, groups=groups)
    assert fit.selection.indices.tolist() == [5, 8]
    assert (np.sign(fit.model.scores(X[:, kept])) == targets).mean() > 0.9


SIZES = [90, 40, 11, 10, 2, 1]
GROUPED = {"groups": np.repeat(np.arange(45), 2)}
PATHS = {  # sparse, what else the problem holds, rules
    **{
        f"{variant} {kind}": (kind == "sparse", {}, [Rule(90, m, variant, warmup_steps=20, **QUICK) for m in SIZES])
        for variant in VARIANTS
        for kind in ("dense", "sparse")
    },
    "more than M differs": (False, {}, [Rule(90, 4, **QUICK), Rule(90, 2), Rule(90, 3, **QUICK), Rule(90, 2, mu=2.0)]),
    "groups": (False, GROUPED, [Rule(45, 3, **QUICK), Rule(45, 2, **QUICK)]),
    "costs": (False, {}, [Rule(90, 0, costs=np.ones(90), budget=budget, **QUICK) for budget in (4, 2)]),
}


@pytest.mark.parametrize("case", PATHS)
def test_a_path_gives_the_fits_of_its_rules_to_the_last_digit(case):
    sparse, more, rules = PATHS[case]
    X, targets = sparse_table(f=90) if sparse else planted(f=90)
    schedules = [schedule(l2=0.1, refinement_steps=50 + rule.n_features_to_select) for rule in rules]
    problem = Problem(X, targets, **more)
    path = list(LinearEngine().fit_path(problem, rules, HINGE, schedules, seed=3))
    for rule, one, found in zip(rules, schedules, path, strict=True):
        alone = LinearEngine().fit(problem, rule, HINGE, one, seed=3)
        np.testing.assert_array_equal(found.selection.ranking, alone.selection.ranking)
        np.testing.assert_array_equal(found.model.coef, alone.model.coef)
        np.testing.assert_array_equal(found.model.intercept, alone.model.intercept)
        for name in ("n_steps", "closed_at", "converged"):
            assert getattr(found.selection, name) == getattr(alone.selection, name)
        for name, values in alone.selection.history.items():
            np.testing.assert_array_equal(found.selection.history[name], values)


def test_a_path_takes_common_steps_once():
    X, targets = planted(f=400)
    rules, plan, seen = [Rule(400, m, ramp_steps=2000) for m in (10, 5, 2, 1)], schedule(refinement_steps=10), []
    told = {"progress": lambda step, *_: seen.append(step)}
    fits = list(LinearEngine().fit_path(Problem(X, targets), rules, HINGE, [plan] * 4, **told))
    restarts = [later for step, later in pairwise(seen) if later < step]
    assert len(restarts) == 3  # one continuation for each further M
    assert min(restarts) > 0.5 * fits[0].selection.closed_at
