"""Tables from one matrix and its target."""

from pathlib import Path

import numpy as np
import pytest

from tamiz.errors import TableArgumentError, TableError
from tamiz.tables.matrix import check_matrix_options, matrix_table
from tamiz.tables.names import ReadOptions

NAMES = ["a", "b", "c"]


def make(target, options=None, numbers=None, **more):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3) if numbers is None else numbers
    return matrix_table(Path("x.npz"), "NPZ", numbers, target, NAMES, options or ReadOptions(), **more)


def test_columns_that_are_ignored_are_left_out_with_their_centres():
    table = make(np.array([0.0, 1.0]), ReadOptions(ignore=("b",)), centres=np.array([10.0, 20.0, 30.0]))
    np.testing.assert_array_equal(table.numbers, [[0, 2], [3, 5]])
    np.testing.assert_array_equal(table.centres, [10.0, 30.0])


@pytest.mark.parametrize("target", [np.array([[1.0], [2.0]]), np.array([1, 2]), np.array([True, False])])
def test_a_target_of_numbers(target):
    column = make(target).target_column
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, target.ravel())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.zeros(3), r"has shape \(3,\), but X has 2 rows"),
        (np.zeros((2, 2)), r"has shape \(2, 2\)"),
        (np.array([b"\xff", b"a"]), "bytes that are no text"),
        (np.array([None, "a"], dtype=object), "holds object, neither classes nor numbers"),
    ],
)
def test_targets_that_cannot_be_used(target, message):
    with pytest.raises(TableError, match=message):
        make(target)


def test_a_matrix_without_rows():
    with pytest.raises(TableError, match=r"x\.npz has no rows"):
        make(np.zeros(0), numbers=np.zeros((0, 3), dtype=np.float32))


def test_options_that_mean_nothing_here():
    check_matrix_options("NPZ", ReadOptions(target="y"))
    with pytest.raises(TableArgumentError, match="leave `target` out"):
        check_matrix_options("NPZ", ReadOptions(target="z"))
    with pytest.raises(TableArgumentError, match="`categorical` does not apply"):
        check_matrix_options("NPZ", ReadOptions(categorical=("a",)))
