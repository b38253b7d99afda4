"""Eliminate exactly as many features as allowed, rank the rest, project."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core import eliminate, fill_budget, project, rank_survivors


@given(hnp.arrays(np.float64, st.integers(1, 15), elements=st.floats(-2, 2)), st.integers(1, 15), st.booleans())
def test_no_more_die_than_may_and_the_largest_survive(value, m, forced):
    m = min(m, value.size)
    rank = eliminate(value, np.zeros(value.size, dtype=int), m, forced)
    died, low = rank > 0, np.ones(value.size, bool) if forced else value <= 0
    assert died.sum() == min(low.sum(), value.size - m)
    assert not (died & ~low).any()
    # The ranks of the dead are the worst ones, in the order of their values; of equal ones the later index is worse.
    gone = sorted(np.flatnonzero(died), key=lambda i: (value[i], -i))
    assert [rank[i] for i in gone] == list(range(value.size, value.size - len(gone), -1))
    for i in np.flatnonzero(low & ~died):
        assert all((value[i], -i) > (value[j], -j) for j in gone)


def test_survivors_take_the_best_ranks_by_value_ties_by_index():
    rank = rank_survivors(np.array([0.5, 0.9, 0.5, -1.0]), np.array([0, 0, 0, 4]))
    assert rank.tolist() == [2, 1, 3, 4]


def test_projection():
    assert project(np.array([-1.0, 0.25, 2.0])).tolist() == [0.0, 0.25, 1.0]


def test_a_budget_eliminates_from_the_worst_until_the_rest_fits():
    value, costs = np.array([-0.1, -0.4, 0.5, -0.2]), np.array([2.0, 1.0, 3.0, 4.0])
    assert eliminate(value, np.zeros(4, int), 0, costs=costs, limit=5.0).tolist() == [0, 4, 0, 3]
    assert eliminate(value, np.zeros(4, int), 0, costs=costs, limit=9.5).tolist() == [0, 4, 0, 0]
    assert eliminate(np.ones(4), np.zeros(4, int), 0, costs=costs, limit=1.0).tolist() == [0, 0, 0, 0]


def test_filling_takes_whatever_fits_in_the_order_of_the_ranks():
    rank, costs = np.array([2, 1, 3, 4, 5]), np.array([9.0, 5.0, 3.0, 4.0, 1.0])
    filled, n_kept = fill_budget(rank, 1, costs, limit=10.0)
    assert (filled.tolist(), n_kept) == ([4, 1, 2, 5, 3], 3)
    assert fill_budget(rank, 1, costs, limit=5.5)[1] == 1
