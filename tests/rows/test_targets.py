from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from tamiz.core.losses import LOSSES, Loss, get_loss
from tamiz.rows.targets import (
    as_target,
    check_no_missing,
    class_weights,
    decide_task,
    encode_classes,
    encode_target,
)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False], "classification"),
        (np.array(["x", None], dtype=object), "classification"),
        (pd.Series([1, 2, 3, 4], dtype="category"), "classification"),
        (pl.Series(["1", "2", "3"], dtype=pl.Enum(["1", "2", "3"])), "classification"),
        ([0, 1], "classification"),
        ([0.0, 1.0, np.nan], "classification"),  # missing values do not decide
        ([-1.0, 1.0, 1.0], "classification"),
        (np.arange(15) % 3, "classification"),
        (np.arange(100) % 20, "classification"),
        (np.array([1, 2, 3] * 5, dtype=object), "classification"),
        (np.eye(4, dtype=int), "classification"),
        ([0.5, 1.0], "regression"),
        ([0.25, 0.75] * 10, "regression"),
        (np.arange(14) % 3, "regression"),  # fewer than five rows for each
        (np.arange(1000) % 21, "regression"),
        (np.arange(30), "regression"),
        (np.arange(30.0), "regression"),
        (pd.Series([1, 2, 3, None], dtype="Int64"), "regression"),
        (np.random.default_rng(0).normal(size=(9, 2)), "regression"),
    ],
)
def test_the_task_of_a_target(y, task):
    if isinstance(y, pd.Series) and y.isna().any():
        y = y.astype(float)
    assert decide_task(y) == task
    other = "regression" if task == "classification" else "classification"
    assert decide_task(y, other) == other


def test_targets_come_in_many_forms():
    assert as_target(None) is None
    assert as_target(sp.csr_matrix([[0, 1]])).tolist() == [[0, 1]]
    assert as_target(pd.Series([1, 2], dtype="Int64")).dtype.kind == "i"
    assert as_target(["a", 1]).dtype.kind == "U"
    assert encode_classes(pd.Series(["b", "a", "b"]))[1].dtype == np.int64


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.task == "classification"])
def test_classes_in_the_form_of_each_loss(name):
    loss = get_loss(name)
    encoded = encode_target(["a", "c", "b"], loss)
    assert encoded.values.tolist() == [[1, -1, -1], [-1, -1, 1], [-1, 1, -1]]
    assert encoded.classes.tolist() == ["a", "b", "c"]
    assert encoded.codes.tolist() == [0, 2, 1]
    assert encode_target([0, 1], loss).values.shape == (2, 1 + loss.exclusive)


def test_several_labels_per_row():
    labels = np.array([[0, 1], [1, 1]])
    encoded = encode_target(labels, get_loss("squared_hinge"))
    assert encoded.values.tolist() == [[-1, 1], [1, 1]]
    assert not encoded.one_dimensional


def test_a_loss_says_of_itself_how_its_target_is_encoded():
    huber = get_loss("huber")
    toy = Loss("toy", "regression", huber.kernel, huber.torch, huber.gain, robust=True)
    y = [1.0, 2.0, 3.0, 4.0, 1000.0]
    assert encode_target(y, toy).mean.tolist() == [3.0]
    # Where half of the numbers are equal, it takes the deviation.
    assert encode_target([1.0, 1.0, 1.0, 5.0], huber).mean.tolist() == [2.0]
    assert encode_target(y, get_loss("squared_error")).mean.tolist() == [202.0]


@pytest.mark.parametrize("name", ["squared_error", "huber"])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_numbers_are_scaled_and_can_be_had_back(name, size):
    y = np.random.default_rng(0).normal(3, 2, size=(40, 2)) * size
    encoded = encode_target(y, get_loss(name))
    np.testing.assert_allclose(encoded.values * encoded.scale + encoded.mean, y, rtol=1e-5, atol=1e-5 * size)
    assert not encoded.one_dimensional
    assert encode_target(y[:, 0], get_loss(name)).one_dimensional


def test_weights_of_classes():
    classes, codes, ones = np.array(["a", "b"]), np.array([0, 0, 0, 1]), np.ones(4)
    assert class_weights(None, classes, codes, ones).tolist() == [1, 1]
    assert class_weights({"b": 3}, classes, codes, ones).tolist() == [1, 3]
    assert class_weights({"a": 2, "b": 3, "lacking": 1}, classes, codes, ones).tolist() == [2, 3]
    np.testing.assert_allclose(class_weights("balanced", classes, codes, np.array([1, 1, 2, 4.0])), [2, 2])


def weigh(weight):
    return class_weights(weight, np.array(["a", "b"]), np.array([0, 1]), np.ones(2))


def encode(y, loss="squared_error"):
    return encode_target(y, get_loss(loss))


NAN = r"contains NaN \(first in row 1\). Drop those rows or fix the target"
BAD = [
    (lambda: decide_task([0, 1], "sort"), "task must be one of 'auto', 'classification', 'regression', got 'sort'"),
    (lambda: check_no_missing([1.0, np.nan]), NAN),
    (lambda: check_no_missing(["a", None]), NAN),
    (lambda: check_no_missing(np.array(["a", pd.NA], dtype=object)), NAN),
    (lambda: check_no_missing([1, pd.NaT]), NAN),
    (lambda: encode_classes([0.5, 1.0]), "Unknown label type: continuous"),
    (lambda: encode_classes([0.0, np.nan]), "contains NaN"),
    (lambda: encode_classes(np.ones((3, 2))), "1d array"),
    (lambda: encode_classes(np.zeros(3)), r"only one class \(0.0\)"),  # shown as a plain value
    (lambda: encode_classes(np.array(["a", "a"])), r"only one class \('a'\)"),
    (lambda: encode_classes([True, True]), r"only one class \(True\)"),
    (lambda: encode([[0, 1], [1, 1]], "softmax"), "loss='softmax' takes one class per row"),
    (lambda: encode(np.array([[0, 1], [1, 2]]), "logistic"), "several columns of classes"),
    (lambda: encode(np.ones(4)), "the same in every row"),
    (lambda: encode([1.0, np.inf]), "infinity"),
    (lambda: encode(np.ones((4, 0))), "0 feature|no columns"),
    (lambda: encode(["p", "q"]), "y holds text, but regression needs numbers; for classes take a classifier"),
    (lambda: as_target("income"), "y must hold the values of the target, got the name 'income'"),
    (lambda: weigh("even"), "must be 'balanced', a dict"),
    (lambda: weigh({"c": 1.0}), r"names 'c', but the classes of y are \['a', 'b'\]"),
    (lambda: weigh({"a": -1.0}), "numbers from 0"),
    (lambda: weigh({"a": 0.0, "b": 0.0}), "not all of them 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_targets(call, message):
    with pytest.raises(ValueError, match=message):
        call()
