"""The compiled engine as its callers see it: exactly M, sparse like dense, whatever the memory layout; nothing lost."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import HISTORY_COLUMNS, VARIANTS, Rule
from tamiz.core.losses import LOSSES, get_loss
from tamiz.engines import Problem, Schedule
from tamiz.engines.linear import LinearEngine

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


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 30).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f))),
    st.sampled_from(list(VARIANTS)),
    st.sampled_from(list(LOSSES)),
    st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exactly_m_whatever_the_variant_and_loss(sizes, variant, loss, seed):
    f, m = sizes
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, f)).astype(np.float32)
    targets = np.where(rng.random((12, 2)) > 0.5, 1.0, -1.0)
    fit = fit_linear(X, targets, Rule(f, m, variant=variant, **QUICK), schedule(refinement_steps=10), loss)
    assert fit.selection.support.sum() == m
    assert sorted(fit.selection.ranking) == list(range(1, f + 1))
    assert fit.model.coef.shape == (1 if LOSSES[loss].exclusive else 2, m)
    assert np.isfinite(fit.model.coef).all()


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


def test_a_schedule_with_averages_is_rejected():
    X, targets = planted()
    with pytest.raises(ValueError, match="only networks average weights"):
        fit_linear(X, targets, Rule(40, 3), schedule(average=0.5))


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


@pytest.mark.parametrize("loss", ["squared_hinge", "softmax"])
@pytest.mark.parametrize("max_steps", [None, 60])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_table_that_may_be_overwritten_gives_the_same(loss, max_steps):
    X, targets = sparse_table()
    targets = np.hstack([targets, -targets])
    offset = np.linspace(-0.5, 0.5, 60).astype(np.float32)
    rule, plan = Rule(60, 5, max_steps=max_steps, **QUICK), schedule(l2=0.02)
    kept = fit_linear(X, targets, rule, plan, loss, offset=offset)
    overwritten = fit_linear(X.copy(), targets, rule, plan, loss, offset=offset.copy(), owned=True)
    np.testing.assert_array_equal(overwritten.selection.ranking, kept.selection.ranking)
    np.testing.assert_array_equal(overwritten.model.coef, kept.model.coef)


@pytest.mark.parametrize("kind", ["C float32", "F float32", "C float64", "F float64", "csr", "csc"])
def test_the_callers_memory_is_left_alone(kind):
    X, targets = sparse_table()
    X = X.asformat(kind) if kind in ("csr", "csc") else np.array(X.toarray(), dtype=kind[2:], order=kind[0])
    before = X.copy()
    offset = np.full(60, 0.25, dtype=np.float32) if sp.issparse(X) else None
    fit_linear(X, targets, Rule(60, 5, **QUICK), schedule(), offset=offset)
    if sp.issparse(X):
        assert (offset == 0.25).all()
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(X, part), getattr(before, part))
    else:
        np.testing.assert_array_equal(X, before)


def test_same_seed_same_result_and_another_seed_another_order():
    X, targets = planted()
    rule, plan = Rule(40, 3, **QUICK), schedule(l2=0.05)
    a, b, c = (fit_linear(X, targets, rule, plan, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(a.model.coef, b.model.coef)
    np.testing.assert_array_equal(a.selection.ranking, b.selection.ranking)
    assert not np.array_equal(a.model.coef, c.model.coef)


def test_side_by_side_in_threads_changes_nothing():
    from concurrent.futures import ThreadPoolExecutor

    X, targets = planted()
    rule, plan = Rule(40, 3, **QUICK), schedule(l2=0.05)
    alone = fit_linear(X, targets, rule, plan)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: fit_linear(X, targets, rule, plan), range(8)))
    for fit in together:
        np.testing.assert_array_equal(fit.model.coef, alone.model.coef)


def test_weights_count():
    """Rows without weight have no say: the column that only they support is not chosen."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 10)).astype(np.float32)
    targets = np.where(np.r_[X[:50, 0], X[50:, 1]] > 0, 1.0, -1.0)[:, None]
    for column, weights in [(0, np.r_[np.ones(50), np.zeros(50)]), (1, np.r_[np.zeros(50), np.ones(50)])]:
        fit = fit_linear(X, targets, Rule(10, 1, **QUICK), schedule(l2=0.05), sample_weight=weights)
        assert fit.selection.indices.tolist() == [column]


def test_the_limit_decides_with_a_warning():
    X, targets = planted()
    with pytest.warns(ConvergenceWarning, match="did not settle within 3 steps; the 3 largest were kept"):
        fit = fit_linear(X, targets, Rule(40, 3, variant="hard", ramp_steps=1000, max_steps=3), schedule())
    assert fit.selection.support.sum() == 3
    assert not fit.selection.converged


def test_a_loss_that_overflows_is_reported():
    X, targets = planted()
    with (
        np.errstate(over="ignore"),
        pytest.raises(FloatingPointError, match="Normalise them"),
    ):
        fit_linear(X * np.float32(1e30), targets, Rule(40, 3, **QUICK), schedule(learning_rate=0.5))


def test_the_history_tells_the_run():
    X, targets = planted()
    fit = fit_linear(X, targets, Rule(40, 3, warmup_steps=20, **QUICK), schedule(refinement_steps=500))
    history = fit.selection.history
    lengths = {len(history[name]) for name in HISTORY_COLUMNS}
    assert len(lengths) == 1
    assert lengths.pop() <= 256
    assert (np.diff(history["step"]) > 0).all()
    assert (np.diff(history["phase"]) >= 0).all()
    assert set(history["phase"]) == {0, 1, 2, 3}
    assert (np.diff(history["n_alive"]) <= 0).all()
    assert history["n_alive"][0] == 40
    assert history["n_alive"][-1] == 3
    assert history["gamma_sum"][-1] == 3
    path = history["gamma_path"]
    assert path.shape == (len(history["step"]), 40)
    np.testing.assert_allclose(path[-1][:3], 1.0)
    np.testing.assert_allclose(path[-1][3:], 0.0)
    np.testing.assert_allclose(path.sum(1), history["gamma_sum"], atol=40 / 255)


def test_all_columns_wanted_trains_on_all():
    X, targets = planted(f=6, informative=(1, 2))
    fit = fit_linear(X, targets, Rule(6, 6), schedule(refinement_steps=2000, learning_rate=1e-2))
    assert fit.selection.support.all()
    assert fit.selection.converged
    assert (np.sign(X @ fit.model.coef[0] + fit.model.intercept[0]) == targets[:, 0]).mean() > 0.9


def test_progress_is_told():
    X, targets = planted()
    seen = []
    fit_linear(X, targets, Rule(40, 3, **QUICK), schedule(), progress=lambda *args: seen.append(args))
    steps = [step for step, _, _ in seen]
    assert steps == sorted(steps)
    assert seen[-1][1] == 3


def grouped_targets(loss, scores):
    """Targets of two outputs as a loss takes them."""
    if loss == "softmax":
        return np.where(np.arange(2) == scores.argmax(1)[:, None], 1.0, -1.0)
    return np.where(scores > 0, 1.0, -1.0) if LOSSES[loss].task == "classification" else scores


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=12).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.integers(1, len(sizes)))
    ),
    st.sampled_from(list(VARIANTS)),
    st.sampled_from(list(LOSSES)),
    st.booleans(),
    st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exactly_m_groups_with_all_their_columns(sizes_and_m, variant, loss, sparse, seed):
    sizes, m = sizes_and_m
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(12, groups.size)).astype(np.float32)
    targets = np.where(rng.random((12, 2)) > 0.5, 1.0, -1.0)
    rule = Rule(len(sizes), m, variant=variant, **QUICK)
    fit = fit_linear(
        sp.csr_matrix(X) if sparse else X, targets, rule, schedule(refinement_steps=10), loss, groups=groups
    )
    assert fit.selection.support.sum() == m
    assert sorted(fit.selection.ranking) == list(range(1, len(sizes) + 1))
    kept = fit.selection.support[groups]
    assert fit.model.coef.shape == (1 if LOSSES[loss].exclusive else 2, kept.sum())
    assert np.isfinite(fit.model.scores(X[:, kept])).all()


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


@pytest.mark.parametrize("kind", ["dense", "csr", "offset"])
def test_the_order_of_the_columns_and_of_the_groups_does_not_matter(kind):
    X, _ = sparse_table()
    dense = X.toarray()
    offset = np.linspace(-0.5, 0.5, 60).astype(np.float32) if kind == "offset" else None
    targets = np.where(dense[:, [3]] - dense[:, [9]] > 0, 1.0, -1.0)
    table = dense if kind == "dense" else X
    groups = np.arange(60) // 3
    rule, plan = Rule(20, 4, **QUICK), schedule(l2=0.02)
    ordered = fit_linear(table, targets, rule, plan, groups=groups, offset=offset)
    shuffled = np.random.default_rng(0).permutation(60)
    mixed = fit_linear(
        table[:, shuffled], targets, rule, plan, groups=groups[shuffled],
        offset=None if offset is None else offset[shuffled],
    )  # fmt: skip
    np.testing.assert_array_equal(mixed.selection.support, ordered.selection.support)
    kept, mixed_kept = ordered.selection.support[groups], mixed.selection.support[groups[shuffled]]
    full = dense if offset is None else dense + offset
    np.testing.assert_allclose(
        mixed.model.scores(full[:, shuffled][:, mixed_kept]), ordered.model.scores(full[:, kept]), atol=1e-3
    )


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


def test_the_callers_grouped_table_is_left_alone():
    X, targets = planted()
    before, groups = X.copy(), np.arange(40)[::-1] // 2
    fit_linear(X, targets, Rule(20, 3, **QUICK), schedule(), groups=groups)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(39, int), "one integer for each of the 40 columns"),
        (np.zeros(40), "one integer for each of the 40 columns"),
        (np.arange(40) // 2 - 2, "numbers of groups begin at 0, or are -1 for columns that are always read, got -2"),
        (np.arange(40) // 2 + 1, "must number the 20 features of the rule from 0 on"),
        (np.arange(40) // 4, "must number the 20 features of the rule from 0 on"),
    ],
)
def test_bad_groups_are_reported(groups, message):
    X, targets = planted()
    with pytest.raises(ValueError, match=message):
        fit_linear(X, targets, Rule(20, 3, **QUICK), schedule(), groups=groups)


def test_a_rule_for_another_table_is_reported():
    X, targets = planted()
    with pytest.raises(ValueError, match="the rule has 39 features, the table 40 columns"):
        fit_linear(X, targets, Rule(39, 3, **QUICK), schedule())


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


def test_a_path_leaves_the_table_as_it_is():
    X, targets = planted()
    before = X.copy()
    rules, schedules = [Rule(40, m, **QUICK) for m in (5, 2)], [schedule(refinement_steps=20)] * 2
    list(LinearEngine().fit_path(Problem(X, targets, owned=True), rules, get_loss("squared_hinge"), schedules))
    np.testing.assert_array_equal(X, before)
