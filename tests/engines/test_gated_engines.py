"""Groups, columns that are always read and budgets, the same in every engine."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core import Rule
from tamiz.core.losses import get_loss
from tamiz.engines import Problem, Schedule
from tamiz.engines.additive import AdditiveEngine
from tamiz.engines.contract import fit_with_rule
from tamiz.engines.dense import DenseEngine
from tamiz.engines.linear import LinearEngine
from tamiz.engines.pairs import PairEngine

QUICK = {"ramp_steps": 150, "mask_learning_rate": 0.03}


def torch_engine():
    pytest.importorskip("torch")
    from torch import nn

    from tamiz.torch.engine import TorchEngine

    return TorchEngine(lambda n_inputs, n_outputs: nn.Linear(n_inputs, n_outputs))


ENGINES = {
    "linear": LinearEngine,
    "additive": AdditiveEngine,
    "dense": lambda: DenseEngine((6,), n_init=1),
    "torch": torch_engine,
    "pairs": PairEngine,
    "few pairs": lambda: PairEngine(n_screened=3),
}
pytestmark = pytest.mark.filterwarnings("ignore:The network removes")


def schedule():
    return Schedule(0.01, 0.01, 8, 0, 150, refinement_steps=20, refinement_l2=0.01, refinement_rates=(0.01,))


def table(n_columns=18, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_columns)).astype(np.float32)
    return X, np.where(X[:, 4] - X[:, 9] > 0, np.float32(1), np.float32(-1))[:, None]


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]()


@pytest.mark.parametrize("sparse", [False, True])
def test_exactly_m_groups_and_all_columns_that_are_always_read(engine, sparse):
    X, y = table()
    groups = np.array([3, 0, -1, 1, 2, 2, 4, 0, 1, 3, -1, 4, 5, 5, 5, 2, 0, 1])
    problem = Problem(sp.csr_matrix(X) if sparse else X.copy(), y, groups=groups)
    fit = engine.fit(problem, Rule(6, 2, **QUICK), get_loss("squared_hinge"), schedule())
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


def test_order_of_columns_does_not_matter(engine):
    X, y = table()
    groups = np.arange(18) // 3
    order = np.random.default_rng(1).permutation(18)
    loss, rule = get_loss("squared_hinge"), Rule(6, 2, **QUICK)
    if isinstance(engine, DenseEngine) or type(engine).__name__ == "TorchEngine":
        return  # weights are drawn column by column
    one = engine.fit(Problem(X.copy(), y, groups=groups), rule, loss, schedule())
    other = engine.fit(Problem(X[:, order], y, groups=groups[order]), rule, loss, schedule())
    np.testing.assert_array_equal(one.selection.ranking, other.selection.ranking)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_budget_is_kept_and_used(engine, grouped):
    X, y = table()
    groups = np.append(np.arange(17) // 2, -1) if grouped else None
    n = 9 if grouped else 18
    costs = np.random.default_rng(2).integers(1, 8, size=n).astype(float)
    rule = Rule(n, 0, costs=costs, budget=12.0, **QUICK)
    fit = fit_with_rule(engine, Problem(X.copy(), y, groups=groups), rule, get_loss("squared_hinge"), schedule())
    kept = fit.selection.support
    spent = costs[kept].sum()
    assert spent <= 12 < spent + costs[~kept].min()
    read = Problem(X, y, groups=groups).columns_of(kept)
    assert fit.model.scores(X[:, read]).shape == (60, 1)


def test_equal_costs_are_a_count():
    """With costs of one a budget of M selects what M selects: the rule is the same one."""
    X, y = table(40)
    loss = get_loss("squared_hinge")
    for variant in ("soft", "hard"):
        counted = LinearEngine().fit(
            Problem(X, y, groups=np.arange(40)), Rule(40, 5, variant=variant, **QUICK), loss, schedule()
        )
        rule = Rule(40, 0, variant=variant, costs=np.ones(40), budget=5.0, **QUICK)
        paid = fit_with_rule(LinearEngine(), Problem(X, y), rule, loss, schedule())
        np.testing.assert_array_equal(paid.selection.ranking, counted.selection.ranking)
        np.testing.assert_allclose(paid.model.coef, counted.model.coef, atol=1e-5)


def test_an_expensive_column_gives_way_to_a_cheap_one_as_good():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 10)).astype(np.float32)
    X[:, 7] = X[:, 2] + 0.01 * rng.normal(size=200)
    y = np.sign(X[:, [2]])
    costs = np.ones(10)
    costs[2] = 3.0
    rule = Rule(10, 0, costs=costs, budget=3.0, ramp_steps=1000)
    fit = fit_with_rule(LinearEngine(), Problem(X, y), rule, get_loss("squared_hinge"), schedule())
    assert fit.selection.support[7]
    assert not fit.selection.support[2]
