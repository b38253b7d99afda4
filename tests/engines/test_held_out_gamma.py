"""Gamma trained on rows that did not train the weights: noise gains nothing by the number of its weights."""

from dataclasses import replace

import numpy as np
import pytest

from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.additive import AdditiveEngine
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseEngine, DenseRun
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.linear import LinearEngine, count_parts
from tamiz.engines.pairs import MOST_GROUP_FUNCTIONS, PairEngine, pair_basis
from tamiz.engines.schedule import additive_schedule, linear_schedule, network_schedule, pair_schedule

pytestmark = pytest.mark.filterwarnings("ignore:The network removes")

ENGINES = {
    "linear": (LinearEngine(), linear_schedule),
    "additive": (AdditiveEngine(), additive_schedule),
    "pairs": (PairEngine(), pair_schedule),
    "dense": (DenseEngine((8, 4)), network_schedule),
}
N_NUMBERS = 20


def make_table(n_levels, seed, task="regression", effect=0.0, n_true=0, n=400):
    """Twenty numbers, of which the first are true, and a category as a group of indicators."""
    rng = np.random.default_rng((n_levels, seed))
    numbers, level = rng.normal(size=(n, N_NUMBERS)), rng.integers(0, n_levels, n)
    means = rng.normal(size=n_levels)
    means = (means - means.mean()) / means.std()
    y = 0.15 * numbers[:, :n_true].sum(axis=1) + effect * means[level] + rng.normal(size=n)
    indicators = np.eye(n_levels)[level]
    X = np.hstack([numbers, (indicators - indicators.mean(axis=0)) / indicators.std(axis=0)]).astype(np.float32)
    targets = (y - y.mean()) / y.std() if task == "regression" else np.where(y > np.median(y), 1.0, -1.0)
    groups = np.concatenate([np.arange(N_NUMBERS), np.full(n_levels, N_NUMBERS)])
    return Problem(X, targets[:, None].astype(np.float32), groups=groups)


def fit(name, problem, m, task="regression", seed=0, **changes):
    engine, schedule = ENGINES[name]
    plan = replace(schedule(problem.n_samples, m, task, refinement_epochs=1), **changes)
    rule = Rule(N_NUMBERS + 1, m, ramp_steps=plan.ramp_steps, warmup_steps=plan.warmup_steps)
    loss = get_loss("squared_error" if task == "regression" else "squared_hinge")
    return engine.fit(problem, rule, loss, plan, seed=seed)


def count_kept(name, n_levels, m, task, n_runs, **changes):
    runs = (fit(name, make_table(n_levels, seed, task), m, task, seed, **changes) for seed in range(n_runs))
    return sum(int(one.selection.support[-1]) for one in runs)


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("n_levels", [5, 25])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_category_of_noise_is_kept_at_the_rate_of_chance(task, n_levels, m):
    """60 runs of the linear engine; standard error 1.7 at M = 1 and 3.3 at M = 5."""
    n_runs, share = 60, m / (N_NUMBERS + 1)
    error = np.sqrt(n_runs * share * (1 - share))
    assert abs(count_kept("linear", n_levels, m, task, n_runs) - n_runs * share) <= 3 * error


@pytest.mark.parametrize("name", ["additive", "pairs", "dense"])
def test_so_it_is_with_curves_pairs_and_hidden_layers(name):
    """12 runs, M = 5; standard error 1.5. Trained on the rows of the weights gamma keeps more of the noise."""
    held_out = count_kept(name, 20, 5, "regression", 12)
    joint = count_kept(name, 20, 5, "regression", 12, gamma_rows="joint")
    assert held_out <= 12 * 5 / 21 + 3 * 1.5
    assert joint >= held_out


def test_the_joint_gradient_keeps_it_for_its_size():
    """20 runs; this is what the held-out rows are for."""
    assert count_kept("linear", 20, 1, "regression", 20, gamma_rows="joint") >= 18


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_true_category_is_found(task):
    """20 runs, effect 0.3 of one standard deviation, beside three true numbers; by chance 3.8 of 20."""
    tables = [make_table(5, seed, task, effect=0.3, n_true=3) for seed in range(20)]
    kept = [fit("linear", table, 4, task, seed).selection.support[-1] for seed, table in enumerate(tables)]
    assert sum(kept) >= 15


def test_a_true_category_of_ten_levels_is_found_by_a_network(monkeypatch):
    """12 runs, effect 0.3 of one standard deviation; 2.3 by chance, standard error 1.4. With groups that are not scaled: 1."""
    monkeypatch.setitem(ENGINES, "dense", (DenseEngine(), network_schedule))
    tables = [make_table(10, seed, effect=0.3, n_true=3) for seed in range(12)]
    kept = [fit("dense", table, 4, seed=seed).selection.support[-1] for seed, table in enumerate(tables)]
    assert sum(kept) >= 2.3 + 3 * 1.4


def test_groups_are_scaled_by_their_size():
    rng = np.random.default_rng(0)
    table, starts = (
        rng.normal(size=(50, 9)) * np.arange(1, 10),
        np.array([0, 1, 2, 3, 7]),
    )  # the last two are always read
    design = Design(table, None, False, starts)
    np.testing.assert_allclose(design.matrix.divisors, [1, 1, 1, 4**0.25])
    gate = np.ones(9)
    design.scale_groups(gate)
    scales, variance = design.matrix.scales, design.matrix.values.var(axis=0)
    np.testing.assert_array_equal(gate, [1, 1, 1, *[scales[3]] * 4, 1, 1])
    np.testing.assert_allclose(scales[3] ** 2 * variance[3:7].sum(), np.median(variance[:3]) * 4**-1.5, rtol=1e-5)
    np.testing.assert_allclose(design.matrix.divisors * scales, [1, 1, 1, 4**-0.75], rtol=1e-6)
    alike = Design(table[:, :8], None, False, np.arange(0, 9, 4))
    alike.scale_groups(np.ones(8))
    assert alike.matrix.scales.size == 0


def test_a_network_goes_on_at_the_scale_of_the_table():
    """The closed mask leaves every output as it was: weights take over what the gates of groups were multiplied by."""
    problem = make_table(4, 0, n=90)
    rule, plan = Rule(N_NUMBERS + 1, 3, ramp_steps=200), network_schedule(90, 3, "regression")
    ordered, _, starts, features = in_canonical_order(problem)
    design, parts = Design(ordered.X, None, False, starts, features), np.array_split(np.arange(90), 2)
    run = DenseRun((8, 4), ordered, rule, get_loss("squared_error"), plan, design, (0, 0), parts)
    gate, weights = run.memory.gate.copy(), run.memory.weights.copy()
    assert gate.min() < 1
    run._finish()
    one = next(number for number in range(2) if np.allclose(run.memory.weights[0], gate[:, None] * weights[number]))
    assert one in (0, 1)
    np.testing.assert_array_equal(run.memory.gate, 1)
    assert run.design.matrix.scales.size == 0


def test_the_curves_of_a_large_group_have_a_limited_variance_in_pairs():
    rng = np.random.default_rng(0)
    table, features = rng.integers(0, 2, (200, 31)).astype(np.float32), np.repeat([0, 1, 2], [1, 8, 22])
    curves = pair_basis(table, np.ones(200), features, np.zeros(0, dtype=int)).table
    total = np.add.reduceat(curves.var(axis=0), [0, 1, 9])
    np.testing.assert_allclose(total, [1, 8, MOST_GROUP_FUNCTIONS], rtol=1e-3)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("gamma_rows", ["held-out", "joint"])
def test_exactly_m_and_the_same_result_for_the_same_seed(name, gamma_rows):
    problem = make_table(4, 0, n=90)
    one, two, other = (fit(name, problem, 3, seed=seed, gamma_rows=gamma_rows) for seed in (1, 1, 2))
    assert one.selection.support.sum() == 3
    assert sorted(one.selection.ranking) == list(range(1, N_NUMBERS + 2))
    np.testing.assert_array_equal(one.selection.ranking, two.selection.ranking)
    X = problem.X[:, problem.columns_of(one.selection.support)]
    np.testing.assert_array_equal(one.model.scores(X), two.model.scores(X))
    assert other.selection.seed == 2


def test_who_trains_gamma_on_held_out_rows():
    plan = linear_schedule(200, 2, "regression")
    for rows, m, n, overfits, expected in (
        ("auto", 2, 200, True, 4),
        ("auto", 2, 200, False, 1),
        ("held-out", 2, 200, False, 4),
        ("joint", 2, 200, True, 1),
        ("auto", 10, 200, True, 1),  # nothing to select
        ("auto", 2, 15, True, 1),  # too few rows for parts
    ):
        assert count_parts(replace(plan, gamma_rows=rows), Rule(10, m), n, overfits) == expected


def test_columns_of_their_own_are_the_paper_s_joint_fit():
    problem = make_table(2, 0)
    single = replace(problem, groups=None)
    rule, plan = Rule(22, 3, ramp_steps=500), linear_schedule(400, 3, "regression", refinement_epochs=1)
    auto, joint, held_out = (
        LinearEngine().fit(single, rule, get_loss("squared_error"), replace(plan, gamma_rows=rows))
        for rows in ("auto", "joint", "held-out")
    )
    np.testing.assert_array_equal(auto.model.coef, joint.model.coef)
    assert held_out.selection.support.sum() == 3
    assert not np.array_equal(held_out.selection.history["loss"], joint.selection.history["loss"])
