"""The contract of all engines: exactly M, same seed same result, any order of the columns, groups, budgets, errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import HISTORY_COLUMNS, VARIANTS, Rule
from tamiz.engines.additive import AdditiveEngine
from tamiz.engines.contract import Problem, check_dense_size, fit_with_rule
from tamiz.engines.dense import DenseEngine
from tamiz.engines.linear import LinearEngine
from tamiz.engines.pairs import PairEngine
from tamiz.engines.schedule import Schedule

QUICK = {"ramp_steps": 150, "mask_learning_rate": 0.03}
HINGE = get_loss("squared_hinge")


def torch_engine():
    pytest.importorskip("torch")
    from torch import nn

    from tamiz.torch.engine import TorchEngine

    return TorchEngine(lambda n_inputs, n_outputs: nn.Linear(n_inputs, n_outputs))


COMPILED = {
    "linear": LinearEngine,
    "additive": AdditiveEngine,
    "dense": lambda: DenseEngine((6,), n_init=2),
    "pairs": PairEngine,
    "few pairs": lambda: PairEngine(n_screened=3),
}
ENGINES = {**COMPILED, "torch": torch_engine}
pytestmark = pytest.mark.filterwarnings("ignore:The network removes")


def schedule(refinement_steps=20, **more):
    plan = {"learning_rate": 0.01, "l2": 0.01, "batch_size": 8, "warmup_steps": 0, "ramp_steps": 150}
    plan |= {"refinement_steps": refinement_steps, "refinement_l2": 0.01, "refinement_rates": (0.01,)}
    return Schedule(**plan | more)


def table(n_columns=18, seed=0):
    X = np.random.default_rng(seed).normal(size=(60, n_columns)).astype(np.float32)
    return X, np.where(X[:, 4] - X[:, 9] > 0, np.float32(1), np.float32(-1))[:, None]


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]()


@pytest.fixture(params=COMPILED)
def compiled(request):
    return COMPILED[request.param]()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(COMPILED)),
    st.lists(st.integers(1, 3), min_size=1, max_size=12).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.integers(1, len(sizes)))
    ),
    st.sampled_from(list(VARIANTS)),
    st.sampled_from(list(LOSSES)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exactly_m_features_whatever_they_hold(name, sizes_and_m, variant, loss, grouped, sparse, seed):
    sizes, m = sizes_and_m
    rng = np.random.default_rng(seed)
    groups = np.append(rng.permutation(np.repeat(np.arange(len(sizes)), sizes)), -1) if grouped else None
    X = rng.normal(size=(12, groups.size if grouped else len(sizes))).round(rng.integers(3)).astype(np.float32)
    X[:, 0] = 1.0
    targets = np.where(rng.random((12, 2)) > 0.5, 1.0, -1.0)
    problem = Problem(sp.csr_matrix(X) if sparse else X.copy(), targets, groups=groups)
    fit = COMPILED[name]().fit(problem, Rule(len(sizes), m, variant=variant, **QUICK), get_loss(loss), schedule())
    assert fit.selection.support.sum() == m
    assert sorted(fit.selection.ranking) == list(range(1, len(sizes) + 1))
    kept = problem.columns_of(fit.selection.support)
    scores = fit.model.scores(X[:, kept])
    assert scores.shape == (12, 1 if LOSSES[loss].exclusive else 2)
    assert np.isfinite(scores).all()
    of_sparse = fit.model.scores(sp.csr_matrix(X[:, kept] - 0.5), np.full(int(kept.sum()), 0.5))
    np.testing.assert_allclose(of_sparse, scores, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_exactly_m_groups_and_all_columns_that_are_always_read(engine, sparse):
    X, y = table()
    groups = np.array([3, 0, -1, 1, 2, 2, 4, 0, 1, 3, -1, 4, 5, 5, 5, 2, 0, 1])
    problem = Problem(sp.csr_matrix(X) if sparse else X.copy(), y, groups=groups)
    fit = engine.fit(problem, Rule(6, 2, **QUICK), HINGE, schedule())
    assert fit.selection.support.shape == (6,)
    assert fit.selection.n_features_to_select == 2
    read = problem.columns_of(fit.selection.support)
    assert read[groups == -1].all()
    scores = fit.model.scores(X[:, read])
    assert scores.shape == (60, 1)
    # Each column has its own weights: another order of the columns gives other scores.
    assert not np.allclose(scores, fit.model.scores(X[:, np.flatnonzero(read)[::-1]]))
    # Trained on the columns in this order, not in that of the groups.
    assert np.mean(np.sign(scores) == y) > 0.6


ORDERED = {
    "plain": {},
    "groups": {"groups": np.arange(18) // 3},
    "always read": {"groups": np.array([-1, *np.repeat(np.arange(8), 2), -1])},
    "budget": {"costs": 1.0 + np.arange(18) % 3},
}


@pytest.mark.parametrize("case", ORDERED)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_order_of_the_columns_does_not_matter(compiled, case, sparse):
    """The same seed selects the same columns, to the last digit, wherever they stand in the table."""
    X, y = table()
    X = np.where(np.abs(X) > 0.3, X, 0) if sparse else X
    groups, costs = ORDERED[case].get("groups"), ORDERED[case].get("costs")
    order = np.random.default_rng(1).permutation(18)
    n = 18 if groups is None else int(groups.max()) + 1
    found = []
    for columns in (np.arange(18), order):
        own = None if groups is None else groups[columns]
        problem = Problem(sp.csr_matrix(X[:, columns]) if sparse else X[:, columns], y, groups=own)
        spent = {} if costs is None else {"costs": costs[columns], "budget": 4.0}
        fit = fit_with_rule(compiled, problem, Rule(n, 0 if spent else 2, **spent, **QUICK), HINGE, schedule())
        support = fit.selection.support if groups is not None else fit.selection.support[np.argsort(columns)]
        found.append(
            (
                support,
                fit.selection.history,
                fit.model.scores(X[:, columns][:, problem.columns_of(fit.selection.support)]),
            )
        )
    (one, history, scores), (other, other_history, other_scores) = found
    np.testing.assert_array_equal(one, other)
    for name in HISTORY_COLUMNS:
        np.testing.assert_array_equal(history[name], other_history[name])
    np.testing.assert_allclose(scores, other_scores, rtol=1e-5, atol=1e-5)


def test_same_seed_same_result_and_the_callers_memory_is_left_alone(compiled):
    X, y = table()
    X.flags.writeable = False
    before, groups = X.copy(), np.arange(18)[::-1] // 2
    one, two, other = (
        compiled.fit(Problem(X, y, groups=groups), Rule(9, 3, **QUICK), HINGE, schedule(), seed=seed)
        for seed in (5, 5, 6)
    )
    kept = X[:, one.selection.support[groups]]
    np.testing.assert_array_equal(one.selection.ranking, two.selection.ranking)
    np.testing.assert_array_equal(one.model.scores(kept), two.model.scores(kept))
    assert not np.array_equal(one.selection.history["loss"], other.selection.history["loss"])
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", ["F float32", "C float64", "F float64", "csr", "csc"])
def test_tables_of_any_kind_give_the_same_and_are_left_alone(compiled, kind):
    X, y = table()
    X[np.abs(X) < 0.5] = 0.0
    other = sp.csr_matrix(X).asformat(kind) if kind in ("csr", "csc") else np.array(X, dtype=kind[2:], order=kind[0])
    before, rule = other.copy(), Rule(18, 3, **QUICK)
    plain, same = (compiled.fit(Problem(one, y), rule, HINGE, schedule()) for one in (X.copy(), other))
    overwritten = compiled.fit(Problem(other.copy(), y, owned=True), rule, HINGE, schedule())
    np.testing.assert_array_equal(same.selection.ranking, overwritten.selection.ranking)
    assert abs(other - before).max() == 0
    if isinstance(compiled, (LinearEngine, AdditiveEngine, DenseEngine)):
        np.testing.assert_array_equal(plain.selection.support, same.selection.support)


def test_rows_without_weight_do_not_count(compiled):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 8)).astype(np.float32)
    y = np.where(np.r_[X[:100, 0], X[100:, 1]] > 0, 1.0, -1.0)[:, None]
    for column, weights in [(0, np.r_[np.ones(100), np.full(100, 1e-3)]), (1, np.r_[np.full(100, 1e-3), np.ones(100)])]:
        fit = compiled.fit(Problem(X, y, weights), Rule(8, 1, ramp_steps=500), HINGE, schedule())
        assert fit.selection.indices.tolist() == [column]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_budget_is_kept_and_used(engine, grouped):
    X, y = table()
    groups = np.append(np.arange(17) // 2, -1) if grouped else None
    n = 9 if grouped else 18
    costs = np.random.default_rng(2).integers(1, 8, size=n).astype(float)
    rule, before = Rule(n, 0, costs=costs, budget=12.0, **QUICK), X.copy()
    fit = fit_with_rule(engine, Problem(X, y, groups=groups), rule, HINGE, schedule())
    kept = fit.selection.support
    spent = costs[kept].sum()
    assert spent <= 12 < spent + costs[~kept].min()
    assert fit.model.scores(X[:, Problem(X, y, groups=groups).columns_of(kept)]).shape == (60, 1)
    np.testing.assert_array_equal(X, before)


def test_equal_costs_are_a_count():
    """With costs of one a budget of M selects what M selects: the rule is the same one."""
    X, y = table(40)
    for variant in ("soft", "hard"):
        counted = LinearEngine().fit(
            Problem(X, y, groups=np.arange(40)), Rule(40, 5, variant=variant, **QUICK), HINGE, schedule()
        )
        rule = Rule(40, 0, variant=variant, costs=np.ones(40), budget=5.0, **QUICK)
        paid = fit_with_rule(LinearEngine(), Problem(X, y), rule, HINGE, schedule())
        np.testing.assert_array_equal(paid.selection.ranking, counted.selection.ranking)
        np.testing.assert_allclose(paid.model.coef, counted.model.coef, atol=1e-5)


def test_an_expensive_column_gives_way_to_a_cheap_one_as_good():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 10)).astype(np.float32)
    X[:, 7] = X[:, 2] + 0.01 * rng.normal(size=200)
    costs = np.where(np.arange(10) == 2, 3.0, 1.0)
    rule = Rule(10, 0, costs=costs, budget=3.0, ramp_steps=1000)
    fit = fit_with_rule(LinearEngine(), Problem(X, np.sign(X[:, [2]])), rule, HINGE, schedule())
    assert fit.selection.support[[7, 2]].tolist() == [True, False]


def test_the_limit_decides_with_a_warning(compiled):
    X, y = table()
    rule = Rule(18, 2, variant="hard", ramp_steps=1000, max_steps=3)
    with pytest.warns(ConvergenceWarning, match="did not settle within 3 steps; the 2 largest were kept"):
        fit = compiled.fit(Problem(X, y), rule, HINGE, schedule())
    assert fit.selection.support.sum() == 2
    assert not fit.selection.converged


def test_a_loss_that_overflows_is_reported(compiled):
    X, y = table()
    targets = np.where(np.arange(60)[:, None] == 7, np.nan, y)
    with pytest.raises(FloatingPointError, match=r"became infinite or NaN.*Normalise them"):
        compiled.fit(Problem(X, targets), Rule(18, 3, **QUICK), get_loss("squared_error"), schedule())


def test_the_history_tells_the_run(compiled):
    X, y = table()
    history = compiled.fit(Problem(X, y), Rule(18, 2, warmup_steps=20, **QUICK), HINGE, schedule(500)).selection.history
    lengths = {len(history[name]) for name in HISTORY_COLUMNS}
    assert len(lengths) == 1
    assert lengths.pop() <= 256
    assert (np.diff(history["step"]) > 0).all()
    assert (np.diff(history["phase"]) >= 0).all()
    assert {0, 1, 3} <= set(history["phase"]) <= {0, 1, 2, 3}
    assert (np.diff(history["n_alive"]) <= 0).all()
    assert history["n_alive"][-1] == history["gamma_sum"][-1] == 2
    path = history["gamma_path"]
    assert path.shape[0] == len(history["step"])
    np.testing.assert_allclose(path[-1], [1.0, 1.0, *[0.0] * (path.shape[1] - 2)])
    np.testing.assert_allclose(path.sum(1), history["gamma_sum"], atol=18 / 255)


@pytest.mark.parametrize("refinement_steps", [0, 50])
def test_all_columns_wanted_and_runs_without_refinement(compiled, refinement_steps):
    X, y = table()
    for m in (18, 3):
        fit = compiled.fit(Problem(X, y), Rule(18, m, **QUICK), HINGE, schedule(refinement_steps))
        assert fit.selection.support.sum() == m
        assert fit.selection.converged
        assert np.isfinite(fit.model.scores(X[:, fit.selection.indices])).all()


def test_progress_is_reported(compiled):
    X, y = table()
    seen = []
    plan = schedule(20_000)
    compiled.fit(Problem(X, y), Rule(18, 2, **QUICK), HINGE, plan, progress=lambda *numbers: seen.append(numbers))
    steps, alive, refined = zip(*seen)
    assert list(steps) == sorted(steps)
    assert alive[-1] == 2
    assert refined[-1] > 0


BAD_GROUPS = [np.zeros(17, int), np.zeros(18), np.arange(18) // 2 - 2, np.arange(18) // 2 + 1, np.arange(18) // 4, None]


@pytest.mark.parametrize("groups", BAD_GROUPS)
def test_bad_groups_are_reported(compiled, groups):
    X, y = table()
    with pytest.raises(ValueError, match=r"must number the 9 features of the rule from 0 on.* each of the 18 columns"):
        compiled.fit(Problem(X, y, groups=groups), Rule(9, 3, **QUICK), HINGE, schedule())


@pytest.mark.parametrize("name", ["linear", "additive", "pairs"])
def test_only_networks_average_weights(name):
    X, y = table()
    with pytest.raises(ValueError, match="only networks average weights"):
        COMPILED[name]().fit(Problem(X, y), Rule(18, 3), HINGE, schedule(average=0.5))


def test_a_table_beyond_the_memory_allowed_is_reported():
    problem = Problem(sp.csr_matrix((100_000, 30_000), dtype=np.float32), np.ones((100_000, 1)))
    with pytest.raises(MemoryError, match=r"take 11.2 GiB, more than the 8.0 GiB allowed: select fewer columns first"):
        AdditiveEngine().fit(problem, Rule(30_000, 2), HINGE, schedule())
    check_dense_size(problem, 20_000)


def test_weights_have_a_mean_of_one():
    X, y = table()
    assert Problem(X, y).unit_weights().tolist() == [1.0] * 60
    assert Problem(X, y, np.arange(1.0, 61.0)).unit_weights().mean() == pytest.approx(1.0)
