"""Folds: every class in each, groups and time respected, and an error that says how many there can be."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.evaluation.folds import make_folds

UNEVEN = np.array(["a"] * 7 + ["b"] * 3)


def test_folds_of_classes_and_numbers():
    folds = make_folds(UNEVEN, "classification", 3, n_repeats=2)
    assert len(folds) == 6
    assert all(set(UNEVEN[test]) == {"a", "b"} for _, test in folds)
    assert len(make_folds(np.arange(4.0), "regression", 2)) == 2
    assert min(len(test) for _, test in make_folds(np.arange(11.0), "regression", 5)) == 2


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_stay_together(task):
    groups = np.repeat(np.arange(12), 3)
    y = np.resize([0, 1], 12)[groups]
    folds = make_folds(y if task == "classification" else y + 0.1 * groups, task, 4, 2, groups=groups)
    assert len(folds) == 8
    assert all(not set(groups[train]) & set(groups[test]) for train, test in folds)
    assert sorted(np.concatenate([test for _, test in folds[:4]])) == list(range(36))
    assert any(not np.array_equal(folds[0][1], test) for _, test in folds[4:])


def test_every_fold_trains_on_the_past():
    time = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 3))
    folds = make_folds(np.arange(30.0), "regression", 4, time=time)
    assert len(folds) == 4
    assert all(time[train].max() < time[test].min() for train, test in folds)


TWELVE, TWO = np.arange(12.0), np.resize([0, 1], 12)
IMPOSSIBLE = [  # target, task, folds, further arguments, message
    (UNEVEN, "classification", 4, {}, r"Class 'b' has 3 rows, fewer than the 4 folds"),
    (UNEVEN, "classification", 1, {}, "At least 2"),
    (np.arange(4.0), "regression", 5, {}, "fewer than two for each of the 5 folds"),
    (np.arange(8.0), "regression", 5, {}, r"There are 8 rows, fewer than two for each of the 5 folds\. Use 4 folds or fewer"),
    (TWO, "classification", 3, {"groups": np.repeat([1, 2], 6)}, "2 groups, fewer than the 3 folds"),
    (np.repeat([0, 1, 2], 4), "classification", 3, {"groups": np.repeat([0, 1, 2], 4)}, "of 3 classes.*other groups"),
    (TWELVE, "regression", 3, {"time": np.repeat([1, 2, 3], 4)}, "Use fewer folds"),
    (TWELVE, "regression", 3, {"time": np.arange(12), "n_repeats": 2}, "one repeat"),
    (np.repeat([0, 1], 6), "classification", 3, {"time": np.arange(12)}, "Fold 1 would train on 1 of 2 classes"),
    (TWELVE, "regression", 3, {"time": np.arange(12), "groups": np.arange(12)}, "not both"),
]  # fmt: skip


@pytest.mark.parametrize(("y", "task", "n_folds", "more", "message"), IMPOSSIBLE)
def test_folds_that_cannot_be_made(y, task, n_folds, more, message):
    with pytest.raises(ValueError, match=message):
        make_folds(y, task, n_folds, **more)
