"""The compiled dense network as its callers see it: exactly M, the start that is kept, warnings, bad input."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseEngine, DenseRun, constant_loss, mean_loss
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.loop import rows_in_parts
from tamiz.engines.schedule import Schedule, network_schedule

SMALL = (8, 4)
pytestmark = pytest.mark.filterwarnings("ignore:The network removes")


def schedule(refinement_steps=100, batch_size=16, **more):
    return Schedule(0.01, 1e-3, batch_size, 0, 1, refinement_steps, 1e-4, (5e-3,), average=0.5, epsilon=1e-8, **more)


def fit_dense(X, targets, rule, plan=None, *, n_init=2, hidden=SMALL, seed=0, progress=None, **more):
    engine, problem = DenseEngine(hidden, n_init=n_init), Problem(X, targets, **more)
    return engine.fit(problem, rule, get_loss("squared_hinge"), plan or schedule(), seed=seed, progress=progress)


def xor(n=300, f=10, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, f)).astype(np.float32)
    return X, np.where(X[:, [2]] * X[:, [5]] > 0, np.float32(1), np.float32(-1))


QUICK = {"ramp_steps": 100, "mask_learning_rate": 0.05}


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "offset", "owned"])
def test_columns_that_act_together_are_found_in_tables_of_any_kind(kind):
    X, targets = xor()
    plan = network_schedule(300, 2, "classification", refinement_epochs=50)
    offset = np.full(10, 0.5, np.float32) if kind == "offset" else None
    table = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}.get(kind, np.array)(X)
    table, owned = table if offset is None else sp.csr_matrix(X - offset), kind == "owned"
    rule = Rule(10, 2, ramp_steps=1000)
    fit = fit_dense(table, targets, rule, plan, n_init=1 if owned else 3, offset=offset, owned=owned)
    assert fit.selection.indices.tolist() == [2, 5]
    assert (np.sign(fit.model.scores(X[:, [2, 5]])) == targets).mean() > 0.9


def test_same_seed_same_result_whatever_the_threads(monkeypatch):
    X, targets = xor(n=100)
    one = fit_dense(X, targets, Rule(10, 2, **QUICK), n_init=3)
    monkeypatch.setattr("tamiz.engines.dense.os.cpu_count", lambda: 1)
    two = fit_dense(X, targets, Rule(10, 2, **QUICK), n_init=3)
    other = fit_dense(X, targets, Rule(10, 2, **QUICK), n_init=3, seed=1)
    np.testing.assert_array_equal(one.selection.ranking, two.selection.ranking)
    np.testing.assert_array_equal(one.model.layers[-1][0], two.model.layers[-1][0])
    assert not np.array_equal(one.model.layers[-1][0], other.model.layers[-1][0])


@pytest.mark.parametrize("gamma_rows", ["auto", "joint"])
def test_networks_are_chosen_on_rows_that_they_did_not_train_on(gamma_rows):
    problem, rule, plan = Problem(*xor(n=300)), Rule(10, 2, **QUICK), replace(schedule(), gamma_rows=gamma_rows)
    ordered, _, _, features = in_canonical_order(problem)
    loss, design = get_loss("logistic"), lambda: Design(ordered.X, None, False, None, features)
    rows = rows_in_parts(problem.targets, 4, 0)
    parts = [np.sort(rows[part::4]) for part in range(4)]
    assert sorted(np.concatenate(parts)) == list(range(300))
    halves = [np.concatenate([parts[i], parts[i - 1]]) for i in range(4)]
    tried = [halves] if gamma_rows == "auto" else [[part] for part in parts]
    starts = [
        DenseRun(SMALL, ordered, rule, loss, plan, design(), (0, number), left_out)
        for number, left_out in enumerate(tried)
    ]
    for start in starts:
        start.train()
    best = max(starts, key=lambda start: start.removed)
    fit = DenseEngine(SMALL, n_init=4).fit(problem, rule, get_loss("logistic"), plan)
    np.testing.assert_array_equal(fit.model.layers[-1][0], best.network().layers[-1][0])
    assert fit.selection.indices.tolist() == sorted(best.memory.feature[:2]) == [2, 5]
    assert best.removed > 0.1


@pytest.mark.parametrize("n", [300, 1200])
@pytest.mark.filterwarnings("default:The network removes")
def test_a_network_near_chance_is_reported(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    targets = np.where(rng.random((n, 1)) > 0.5, 1.0, -1.0)
    with pytest.warns(ConvergenceWarning, match=r"of a constant on rows held out.*network='pairs'.*raise n_init"):
        fit_dense(X, targets, Rule(10, 1, **QUICK), hidden=(2,))


@pytest.mark.filterwarnings("error:The network removes")
def test_a_network_that_learned_is_not():
    X, _ = xor()
    fit_dense(X, np.sign(X[:, [4]]), Rule(10, 1, ramp_steps=500))


def test_progress_is_told_in_the_thread_of_the_caller_and_its_errors_end_the_fit():
    X, targets = xor(n=60)
    seen, threads = [], set()

    def progress(*numbers):
        seen.append(numbers)
        threads.add(threading.current_thread())

    fit_dense(X, targets, Rule(10, 3, **QUICK), progress=progress)
    assert threads == {threading.current_thread()}
    assert [step for step, _, _ in seen] == sorted(step for step, _, _ in seen)
    assert seen[-1][1:] == (3, 100)

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_dense(X, targets, Rule(10, 3, ramp_steps=10**6), schedule(10**7), progress=interrupt)


@pytest.mark.parametrize(
    ("call", "message"),
    [(lambda sizes=sizes: DenseEngine(sizes), "hidden_layer_sizes must hold") for sizes in ((), (0,), (5, -1), (2.5,))]
    + [
        (lambda: DenseEngine(n_init=0), "n_init must be at least 1"),
        (lambda: fit_dense(*(part[:1] for part in xor(n=60)), Rule(10, 3)), "at least 2 rows to train on, got 1"),
        (lambda: fit_dense(*xor(n=60), Rule(10, 3), schedule(batch_size=1)), "batch_size of at least 2, got 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_mean_loss_and_its_gradient_are_weighted():
    problem = Problem(np.zeros((3, 1)), np.array([[1.0], [2.0], [5.0]]), np.array([1.0, 1.0, 2.0]))
    scores = np.array([[0.0], [2.0]], dtype=np.float32)
    value, gradient = mean_loss(get_loss("squared_error"), problem, scores, np.array([0, 1]))
    for i, shift in enumerate(np.float32(1e-2) * np.eye(2, dtype=np.float32)[:, :, None]):
        sides = [
            mean_loss(get_loss("squared_error"), problem, scores + s, np.array([0, 1]))[0] for s in (shift, -shift)
        ]
        assert gradient[i, 0] == pytest.approx((sides[0] - sides[1]) / 2e-2, abs=1e-2)
    assert value > 0


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_no_constant_is_better_than_the_best(loss):
    problem = Problem(np.zeros((5, 1)), np.array([[1.0], [2.0], [2.5], [3.0], [9.0]]))
    rows = np.arange(5)
    best = constant_loss(get_loss(loss), problem, rows)
    tried = [
        mean_loss(get_loss(loss), problem, np.full((5, 1), level, dtype=np.float32), rows)[0]
        for level in np.linspace(0, 9, 50)
    ]
    assert best <= min(tried) + 1e-4
    assert best == pytest.approx(min(tried), abs=0.05)
