"""Folds, and how many of them run side by side."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.cli.console import Terminal
from tamiz.cli.errors import CommandError
from tamiz.cli.options import TableOptions
from tamiz.cli.prepare import load_table, parse_k


def test_medians_and_categories_of_a_fold_come_from_its_training_rows(write_csv):
    rows = "".join(f"{'' if i == 0 else i},{'ab'[i % 2]}\n" for i in range(10))
    data = load_table(TableOptions(file=write_csv("x,y\n" + rows), target=["y"], n_folds=2), Terminal(quiet=True))
    train, test = np.array([0, 1, 3]), np.array([2, 9])
    X_train, X_test = data.prepare(train, test)
    assert X_train.ravel().tolist() == [2, 1, 3]
    assert X_test.ravel().tolist() == [2, 9]
    assert data.y.tolist() == list("ab" * 5)


def test_the_number_of_features_is_checked_before_anything_slow(small_csv):
    seen = []

    def check(n_features):
        seen.append(n_features)
        raise CommandError("enough")

    with pytest.raises(CommandError, match="enough"):
        load_table(TableOptions(file=small_csv, target=["ill"]), Terminal(quiet=True), check)
    assert seen == [8]


def test_no_more_jobs_than_folds_or_memory_allow(small_csv, monkeypatch):
    options = TableOptions(file=small_csv, target=["ill"], n_folds=3, n_jobs=8)
    assert load_table(options, Terminal(quiet=True)).n_jobs == 3
    monkeypatch.setattr("tamiz.cli.prepare.available_memory", lambda: 1)
    assert load_table(TableOptions(file=small_csv, target=["ill"]), Terminal(quiet=True)).n_jobs == 1


def test_m_that_is_no_number():
    with pytest.raises(CommandError, match="-k must be a number"):
        parse_k("some")
