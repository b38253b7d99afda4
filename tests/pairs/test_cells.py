"""Cells of two columns, which pictures are made of."""

import numpy as np
import pytest

from tamiz.pairs.columns import read_columns
from tamiz.pairs.result import cut_axis, describe_cells
from tamiz.pairs.target import read_target


@pytest.mark.parametrize(("n_rows", "n_cells"), [(30, 3), (300, 6), (5000, 8)])
def test_cells_by_rank_hold_about_equally_many_rows(n_rows, n_cells):
    axis = cut_axis(read_columns(np.random.default_rng(0).normal(size=(n_rows, 1))), 0)
    counts = np.bincount(axis.codes)
    assert (axis.by_rank, len(counts)) == (True, n_cells)
    assert np.ptp(counts) <= 1
    assert (axis.lower[1:] > axis.upper[:-1]).all()


def test_few_values_are_cells_of_their_own_and_heavy_ties_leave_no_empty_cell():
    random = np.random.default_rng(0)
    few = cut_axis(read_columns(random.integers(0, 4, size=(100, 1)).astype(float)), 0)
    assert (few.by_rank, few.lower.tolist()) == (False, [0.0, 1.0, 2.0, 3.0])
    tied = np.where(random.random(500) < 0.7, 0.0, random.normal(size=500))[:, None]
    assert (np.bincount(cut_axis(read_columns(tied), 0).codes) > 0).all()


def test_a_group_of_one_hot_columns_is_cut_by_category():
    codes = np.tile([0, 1, 2], 20)
    table = read_columns(np.eye(3)[codes], groups=["colour"] * 3)
    np.testing.assert_array_equal(cut_axis(table, 0).codes, codes)


def test_means_shares_and_counts():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 0]] * 6)
    classes = describe_cells(read_columns(X), read_target(["a", "b", "c", "c"] * 6, None, 24), 0, 1)
    assert classes.classes == ("a", "b", "c")
    np.testing.assert_array_equal(classes.means, [[0, 2], [1, np.nan]])
    np.testing.assert_array_equal(classes.counts, [[6, 12], [6, 0]])
    numbers = describe_cells(read_columns(X), read_target([1.0, 3.5, 2.0, 4.0] * 6, None, 24, "regression"), 0, 1)
    np.testing.assert_allclose(numbers.means, [[1, 3], [3.5, np.nan]])
    np.testing.assert_allclose(numbers.shares, [[0, 0.8], [1, np.nan]])
