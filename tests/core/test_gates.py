"""What gamma decides over: groups, forced columns and costs by names and numbers, and every error in them."""

import numpy as np
import pytest

from tamiz.core.gates import DROPPED, KEPT, read_gates
from tamiz.errors import UnknownNameError

NAMES = np.array(["age", "dose", "red", "green", "blue"], dtype=object)


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (["a", "b", "c", "c", "c"], ["a", "b", "c"]),
        (np.array([7, 5, 9, 9, 9]), ["7", "5", "9"]),
        ([["red", "green", "blue"]], ["age", "dose", "red+green+blue"]),
        ([[2, 3, -1], [0]], ["age", "dose", "red+green+blue"]),
        ({"colour": ["red", "green", "blue"]}, ["age", "dose", "colour"]),
        ([np.array([2, 3, 4])], ["age", "dose", "red+green+blue"]),
    ],
)
def test_groups_by_labels_lists_and_mappings(groups, labels):
    gates, names = read_gates(5, 1, groups=groups, names=NAMES)
    assert gates.group.tolist() == [0, 1, 2, 2, 2]
    assert names.tolist() == labels


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"n_features_to_select": 2, "groups": [[2, 3, 4]], "keep": ["green"], "drop": [0]}, [DROPPED, 0, KEPT]),
        ({"n_features_to_select": 3, "keep": ["dose", 0], "drop": {"blue"}}, [KEPT, KEPT, 0, 1, DROPPED]),
        ({"n_features_to_select": 2, "keep": np.array([False, True, False, False, False])}, [0, KEPT, 1, 2, 3]),
        ({"n_features_to_select": 2, "keep": [False, True, False, False, False]}, [0, KEPT, 1, 2, 3]),
        # Nothing is left to decide; what cannot fit is left out, what costs nothing is kept.
        ({"n_features_to_select": 2, "keep": [1, 3]}, [DROPPED, 0, DROPPED, 1, DROPPED]),
        ({"keep": [0], "costs": [4, 0, 2, 3, 9], "budget": 8}, [KEPT, KEPT, 0, 1, DROPPED]),
    ],
)
def test_forced_columns_by_names_numbers_and_masks(options, feature):
    assert read_gates(5, **options, names=NAMES)[0].feature.tolist() == feature


def test_a_group_costs_the_sum_of_its_columns_unless_it_is_named():
    groups = {"colour": [2, 3, 4]}
    by_column, _ = read_gates(5, groups=groups, costs=[1, 2, 1, 1, 1], budget=4, names=NAMES)
    assert by_column.costs.tolist() == [1, 2, 3]
    by_name, _ = read_gates(5, groups=groups, costs={"colour": 2, "dose": 3}, budget=4, names=NAMES)
    assert by_name.costs.tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [[0, 1], [1, 2]]}, "column 'dose' is in two groups"),
        ({"groups": [[0, 0]]}, "column 'age' is twice in one group"),
        ({"groups": [["rad", "blue"]]}, "groups: there is no column 'rad'. Did you mean 'red'"),
        ({"groups": [1, 2, 3]}, "3 labels for 5 columns"),
        ({"groups": [[]]}, "a group without columns"),
        ({"groups": 3}, "a label for each column, or lists of columns"),
        ({"keep": ["dos"]}, "keep: there is no column 'dos'. Did you mean 'dose'"),
        ({"keep": "dose"}, "keep must be a list"),
        ({"drop": [9]}, "drop: there is no column 9; columns are numbered from 0 to 4"),
        ({"drop": [1.5]}, "drop takes names or numbers of columns"),
        ({"keep": np.array([True, False])}, "a mask over 2 columns, there are 5"),
        ({"keep": ["age"], "drop": [0]}, "at odds: 'age' is in both"),
        ({"costs": [1, 1, 1, 1, 1]}, "costs need a budget"),
        ({"budget": 2, "costs": [1, 1]}, "costs holds 2 numbers for 5 columns"),
        ({"budget": 2, "costs": [1, 1, 1, 1, -1]}, "the cost of column 4 must be a finite number from 0 on"),
        ({"budget": 2, "costs": {"ago": 1}}, "costs: there is no column 'ago'. Did you mean 'age'"),
        ({"budget": 2, "costs": {"age": "much"}}, "the cost of 'age' must be a number"),
        ({"budget": "2", "costs": [1, 1, 1, 1, 1]}, "budget must be a number"),
        ({"budget": 2, "costs": [1, 1, 1, 1, 1], "n_features_to_select": 2}, "takes the place of n_features_to_select"),
        ({"groups": [0, 0, 1, 1, 1], "n_features_to_select": 3}, "more than the 2 feature"),
        ({"n_features_to_select": 1, "keep": [0, 1]}, "keep holds 2 features, more than n_features_to_select=1"),
        ({"n_features_to_select": 4, "drop": [0, 1]}, "drop leaves 3 of 5 features, fewer than n_features_to_select=4"),
        ({"n_features_to_select": 1, "drop": [0, 1, 2, 3, 4]}, "drop leaves no feature"),
        ({"budget": 0.5, "costs": [1, 2, 3, 4, 5]}, "budget of 0.5 is below the cheapest feature, which costs 1"),
        ({"budget": 2.0, "costs": [1, 2, 3, 4, 5], "keep": [2]}, "in keep cost 3, more than the budget of 2"),
        ({"budget": np.nan, "costs": [1, 2, 3, 4, 5]}, "budget must be a number, finite"),
        ({"budget": 2.0}, "a budget needs costs"),
    ],
)
def test_what_is_wrong_is_reported(options, message):
    with pytest.raises((ValueError, UnknownNameError), match=message):
        read_gates(5, **options, names=NAMES)


def test_without_options_every_column_is_a_feature():
    gates, labels = read_gates(5, 2)
    assert labels is None
    assert gates.rule_options() == {"n_features": 5, "n_features_to_select": 2, "costs": None, "budget": None}
    ranking, support = gates.rank_columns(np.array([3, 1, 5, 2, 4]), 2)
    assert ranking.tolist() == [3, 1, 5, 2, 4]
    assert support.tolist() == [False, True, False, True, False]


def test_kept_groups_come_first_and_dropped_ones_last():
    gates, _ = read_gates(6, 2, groups=[0, 0, 1, 2, 3, 3], keep=[4], drop=[0])
    assert gates.feature.tolist() == [DROPPED, 0, 1, KEPT]
    assert (gates.n_features, gates.n_features_to_select, gates.expected_size) == (2, 1, 2)
    ranking, support = gates.rank_columns(np.array([2, 1]), 1)
    assert ranking.tolist() == [5, 6, 4, 3, 1, 2]
    assert support.tolist() == [False, False, False, True, True, True]


def test_where_all_fits_there_is_no_budget_left_to_keep():
    gates, _ = read_gates(3, costs=[0.1] * 3, budget=0.3)  # the sum of rounded numbers is above 0.3
    assert (gates.budget, gates.n_features_to_select, gates.n_features) == (None, 3, 3)
    gates, _ = read_gates(5, keep=[0], costs=[4, 0, 2, 3, 9], budget=8)
    assert (gates.costs.tolist(), gates.budget) == ([2.0, 3.0], 4.0)


def test_names_need_names():
    with pytest.raises(ValueError, match="the columns have no names, so 'age' says nothing"):
        read_gates(5, 2, keep=["age"])
