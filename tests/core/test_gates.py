"""What gamma decides over: groups, forced groups, budgets."""

import numpy as np
import pytest

from tamiz.core.gates import DROPPED, KEPT, make_gates


def test_without_options_every_column_is_a_feature():
    gates = make_gates(np.arange(5), 2)
    assert gates.is_plain
    assert gates.rule_options() == {"n_features": 5, "n_features_to_select": 2, "costs": None, "budget": None}
    ranking, support = gates.rank_columns(np.array([3, 1, 5, 2, 4]), 2)
    assert ranking.tolist() == [3, 1, 5, 2, 4]
    assert support.tolist() == [False, True, False, True, False]


def test_kept_groups_come_first_and_dropped_ones_last():
    group = np.array([0, 0, 1, 2, 3, 3])
    gates = make_gates(group, 2, keep=np.array([3]), drop=np.array([0]))
    assert gates.feature.tolist() == [DROPPED, 0, 1, KEPT]
    assert (gates.n_features, gates.n_features_to_select, gates.expected_size) == (2, 1, 2)
    ranking, support = gates.rank_columns(np.array([2, 1]), 1)
    assert ranking.tolist() == [5, 6, 4, 3, 1, 2]
    assert support.tolist() == [False, False, False, True, True, True]


def test_with_as_many_kept_as_m_nothing_is_left_to_decide():
    gates = make_gates(np.arange(4), 2, keep=np.array([1, 3]))
    assert gates.feature.tolist() == [DROPPED, 0, DROPPED, 1]
    assert gates.n_features == gates.n_features_to_select == 2
    assert gates.rank_columns(np.array([1, 2]), 2)[1].tolist() == [False, True, False, True]


def test_a_budget_leaves_out_what_cannot_fit_and_keeps_what_costs_nothing():
    costs = np.array([4.0, 0.0, 2.0, 3.0, 9.0])
    gates = make_gates(np.arange(5), keep=np.array([0]), costs=costs, budget=8.0)
    assert gates.feature.tolist() == [KEPT, KEPT, 0, 1, DROPPED]
    assert gates.costs.tolist() == [2.0, 3.0]
    assert gates.budget == 4.0


def test_where_all_fits_there_is_no_budget_left_to_keep():
    gates = make_gates(np.arange(3), costs=np.full(3, 0.1), budget=0.3)  # the sum of rounded numbers is above 0.3
    assert gates.budget is None
    assert gates.n_features_to_select == gates.n_features == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features_to_select": 1, "keep": [0, 1]}, "keep holds 2 features, more than n_features_to_select=1"),
        ({"n_features_to_select": 3, "drop": [0, 1]}, "drop leaves 2 of 4 features, fewer than n_features_to_select=3"),
        ({"n_features_to_select": 1, "keep": [0], "drop": [0]}, "keep and drop are at odds"),
        ({"n_features_to_select": 1, "drop": [0, 1, 2, 3]}, "drop leaves no feature"),
        ({"budget": 0.5, "costs": [1, 2, 3, 4]}, "budget of 0.5 is below the cheapest feature, which costs 1"),
        ({"budget": 2.0, "costs": [1, 2, 3, 4], "keep": [2]}, "in keep cost 3, more than the budget of 2"),
        ({"budget": 2.0, "costs": [1, -2, 3, 4]}, "finite numbers from 0 on"),
        ({"budget": np.nan, "costs": [1, 2, 3, 4]}, "budget must be a finite number"),
        ({"budget": 2.0}, "a budget needs costs"),
    ],
)
def test_what_is_at_odds_is_reported(options, message):
    arrays = {name: np.array(value) if isinstance(value, list) else value for name, value in options.items()}
    with pytest.raises(ValueError, match=message):
        make_gates(np.arange(4), **arrays)
