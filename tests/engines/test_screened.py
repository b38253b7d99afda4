"""Screening before another engine: exactly M of all columns, ranks of those that were left out."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core import Rule
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.engines.pairs import screen

HINGE = get_loss("squared_hinge")


def table(n=300, f=120, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, f)).astype(np.float32)
    return X, np.where(X[:, [7]] * X[:, [100]] > 0, 1.0, -1.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_screened_problem_holds_the_columns_in_order(kind):
    X, y = table()
    offset = np.linspace(0, 1, 120).astype(np.float32) if kind is sp.csr_matrix else None
    found = screen(Problem(kind(X), y, offset=offset), Rule(120, 2), HINGE, 6)
    assert {7, 100} <= set(found.features)
    assert sorted(found.by_evidence[:6]) == found.features.tolist()
    assert sorted(found.by_evidence) == list(range(120))
    expected = X[:, found.features] + (0 if offset is None else offset[found.features])
    np.testing.assert_allclose(found.problem.X, expected, rtol=1e-6)


def test_groups_are_numbered_anew():
    X, y = table()
    found = screen(Problem(X, y, groups=np.arange(120) % 40), Rule(40, 2), HINGE, 5)
    assert {7, 20} <= set(found.features)  # columns 7 and 100
    assert found.problem.X.shape == (300, 15)
    assert found.problem.groups.tolist() == list(range(5)) * 3


def test_nothing_is_searched_where_all_are_kept():
    X, y = table()
    X = np.ascontiguousarray(X[:, :4])
    found = screen(Problem(X, y), Rule(4, 2), HINGE, 10)
    assert found.features.tolist() == found.by_evidence.tolist() == [0, 1, 2, 3]
    assert not np.shares_memory(found.problem.X, X)


def test_columns_that_are_always_read_stay_and_count_as_partners():
    X, y = table()
    groups = np.arange(120)
    groups[100] = -1  # alone column 7 tells nothing
    groups[101:] -= 1
    found = screen(Problem(X, y, groups=groups), Rule(119, 1), HINGE, 3)
    assert 7 in found.features
    assert found.features.size == 3
    assert found.by_evidence.size == 119
    columns = np.flatnonzero(np.isin(groups, [*found.features, -1]))
    np.testing.assert_array_equal(found.problem.X, X[:, columns])
    assert sorted(found.problem.groups) == [-1, 0, 1, 2]
    assert set(found.best[:2].tolist()) == {int(np.searchsorted(found.features, 7)), 3}
    assert found.problem.X[:, found.problem.groups == -1].tolist() == X[:, [100]].tolist()


@pytest.mark.parametrize(("n_screened", "share"), [(1, 1.0), (4, 1.0), (1, 2.0), (1, 100.0)])
def test_more_is_screened_than_a_budget_pays_for(n_screened, share):
    X = table()[0][:200, :30]
    costs = np.random.default_rng(1).uniform(1, 5, 30)
    rule = Rule(30, 0, costs=costs, budget=9.0)
    found = screen(Problem(X, np.sign(X[:, [3]])), rule, HINGE, n_screened, share=share)
    n, spent = found.features.size, costs[found.features].sum()
    assert n >= n_screened
    assert spent > 9.0 * share or n == 30
    fewer = found.by_evidence[: n - 1]
    assert n == n_screened or costs[fewer].sum() <= 9.0 * share * (1 + 1e-6)
    small = found.rule(rule)
    np.testing.assert_array_equal(small.costs, costs[found.features])
    assert (small.n_features, small.budget) == (n, 9.0)
