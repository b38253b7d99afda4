"""Splits of the paper's tables."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.paper.recipes import load_checked, load_split, split_rows


def test_splits_are_those_of_scikit_learn_and_do_not_depend_on_how_many_there_are():
    from sklearn.model_selection import RepeatedStratifiedKFold

    y = np.repeat([0, 1], [22, 40])
    expected = list(RepeatedStratifiedKFold(n_splits=3, n_repeats=20, random_state=42).split(np.zeros((62, 1)), y))
    for split in (0, 1, 17, 59):
        for mine, theirs in zip(split_rows(y, split), expected[split]):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.data
def test_parts_lack_the_columns_that_are_zero_in_the_training_rows(data_home):
    dataset, checksum = load_checked("dexter", data_home)
    parts = load_split("dexter", data_home, checksum, 1)
    train, test = split_rows(dataset.target, 1)
    assert parts.train.shape == (train.size, parts.columns.size)
    assert parts.test.shape == (test.size, parts.columns.size)
    assert parts.n_features == dataset.data.shape[1] > parts.columns.size
    assert np.asarray((parts.train != 0).sum(axis=0)).min() > 0


@pytest.mark.data
def test_of_gina_only_the_rows_that_the_paper_counts_are_split(data_home):
    _, checksum = load_checked("gina_rebuilt", data_home)
    parts = load_split("gina_rebuilt", data_home, checksum, 0)
    assert parts.train.shape[0] + parts.test.shape[0] == parts.y_train.size + parts.y_test.size == 3153
