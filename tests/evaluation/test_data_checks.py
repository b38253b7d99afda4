"""Warnings of what makes scores look better than they are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tamiz.evaluation.alerts import (
    count_copies,
    describe_selection_risks,
    describe_table_risks,
    find_identifiers,
)


def test_copies_are_counted_but_not_where_chance_makes_them():
    generator = np.random.default_rng(0)
    X = np.tile(generator.normal(size=(15, 10)), (4, 1))
    y = np.tile(generator.integers(0, 2, 15), 4)
    assert count_copies(X, y) == 45
    assert count_copies(sp.csr_matrix(X), y) == 45
    assert "45 of 60 rows are copies" in describe_table_risks(X, y, list("abcdefghij"))[0]
    assert count_copies(X[:15], y[:15]) == 0
    survey = generator.integers(0, 2, size=(200, 5)).astype(float)
    assert count_copies(survey, np.zeros(200)) == 0
    assert describe_table_risks(survey, np.zeros(200), list("abcde")) == []


def test_running_numbers_and_identifiers_are_found():
    generator = np.random.default_rng(0)
    ticket = generator.permutation(100_000)[:50]
    age = generator.integers(20, 90, 50)
    X = np.column_stack([np.arange(50) + 1, ticket, age, generator.normal(size=50), np.ones(50)])
    assert find_identifiers(X) == {0: "a running number", 1: "an identifier"}
    assert find_identifiers(X[:10]) == {}
    words = describe_table_risks(X, age, ["row", "ticket", "age", "x", "one"])
    assert words[0].startswith("Column 'row' looks like a running number")
    assert words[1].startswith("Column 'ticket' looks like an identifier")
    assert find_identifiers(sp.csr_matrix(X)) == {}


def test_kept_columns_that_few_folds_kept_and_constant_ones():
    X = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 1.0]])
    support, share = np.array([True, True, False]), np.array([0.4, 1.0, 0.6])
    for table in (X, sp.csr_matrix(X)):
        rare, constant = describe_selection_risks(support, share, table, ["a", "b", "c"])
        assert rare == "1 of 2 kept columns was kept by fewer than half of the folds: 'a'."
        assert constant.startswith("Kept although constant: 'b'.")
    assert describe_selection_risks(np.array([False, False, True]), np.ones(3), X, ["a", "b", "c"]) == []
