"""Problems as every engine takes them."""

import numpy as np
import pytest

from tamiz.engines.contract import Problem


def problem(groups=None, weights=None):
    return Problem(np.arange(8.0).reshape(2, 4), np.zeros((2, 3)), weights, groups=groups)


def test_sizes():
    one = problem()
    assert (one.n_samples, one.n_outputs, one.n_columns, one.n_features) == (2, 3, 4, 4)
    assert problem(np.array([0, 1, 1, -1])).n_features == 2


def test_kept_features_stand_for_their_columns():
    assert problem().columns_of(np.array([True, False, False, True])).tolist() == [True, False, False, True]
    grouped = problem(np.array([1, 0, 1, -1]))
    assert grouped.columns_of(np.array([False, True])).tolist() == [True, False, True, True]


def test_weights_have_a_mean_of_one():
    assert problem().unit_weights().tolist() == [1.0, 1.0]
    assert problem(weights=np.array([1.0, 3.0])).unit_weights().mean() == pytest.approx(1.0)


def test_columns_of_a_group_are_put_side_by_side():
    one = problem(np.array([1, 0, 1, 0]))
    sorted_problem, *_ = one.side_by_side()
    np.testing.assert_array_equal(sorted_problem.X, one.X[:, [1, 3, 0, 2]])
    assert sorted_problem.n_features == 2


def test_groups_must_be_numbered_without_gaps():
    with pytest.raises(ValueError, match="group"):
        problem(np.array([0, 2, 2, 0])).check_groups(3)
