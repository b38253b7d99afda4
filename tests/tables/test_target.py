"""Classes or numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.tables import TableError, TextColumn
from tamiz.tables.target import resolve_target


@pytest.mark.parametrize(
    ("values", "task", "labels"),
    [
        ([0.0, 1.0] * 10, "classification", ["0", "1"]),
        ([0.25, 0.75] * 10, "regression", None),  # a fractional part: numbers
        ([1.0, 2.0, 3.0] * 10, "classification", ["1", "2", "3"]),
        (np.arange(30.0), "regression", None),
        (np.linspace(0, 1, 30), "regression", None),
        ([1.0, 2.0, 3.0, 4.0], "regression", None),  # too few rows for four classes
    ],
)
def test_the_task_of_numbers(values, task, labels, table_of):
    said = []
    found = resolve_target(table_of(np.ones((len(values), 1)), target=np.asarray(values)), None, said.append)
    assert found.task == task
    assert said[-1].startswith(f"Task: {task}")
    if labels is not None:
        assert sorted(set(found.y)) == labels


def test_text_of_numbers_is_numbers_and_rows_without_target_go(table_of):
    target = TextColumn.from_values(["1.5", None, "2.5", "3.5"])
    said = []
    found = resolve_target(table_of(np.ones((4, 1)), target=target), None, said.append)
    assert found.task == "regression"
    assert found.y.tolist() == [1.5, 2.5, 3.5]
    assert found.rows.tolist() == [0, 2, 3]
    assert "1 row(s) without" in said[0]


def test_the_task_can_be_overruled(table_of):
    table = table_of(np.ones((4, 1)), target=np.array([0.0, 1.0, 0.0, 1.0]))
    assert resolve_target(table, "regression", lambda sentence: None).y.dtype == np.float64
    mixed = table_of(np.ones((4, 1)), target=TextColumn.from_values(["1", "2", "high", "high"]))
    assert set(resolve_target(mixed, "classification", lambda sentence: None).y) == {"1", "2", "high"}


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["1", "2", "high"], None, "mixes numbers and text .*'high'"),
        (["a", "a", "a"], None, "is constant"),
        ([1.0, 1.0], None, "is constant"),
        ([1.0, 1.0], "regression", "is constant"),
        ([np.nan, np.nan], None, "no values at all"),
        ([1.0, np.inf], None, "infinity"),
        (["1", "inf"], None, "infinity"),
        (["2024-01-01", "2024-01-02"], None, "dates"),
        (["a", "b"], "regression", "holds text"),
        ([1.0, 2.0], "ranking", "Unknown task"),
        ([f"name{i}" for i in range(50)], None, "50 classes for 50 rows"),
    ],
)
def test_targets_that_cannot_be_used(values, task, message, table_of):
    target = np.array(values) if isinstance(values[0], float) else TextColumn.from_values(values)
    with pytest.raises(TableError, match=message):
        resolve_target(table_of(np.ones((len(values), 1)), target=target), task, lambda sentence: None)
