"""Scores of a screening: pairs and single columns, every kind of target, few rows, constants."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.pairs import find_pairs
from tamiz.pairs.search import screening_scores


def best(scores, n):
    return sorted(np.argsort(-scores, kind="stable")[:n].tolist())


def normal(n=300, f=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, f))


def test_scores_are_those_of_the_search():
    X = normal()
    y = np.sign(X[:, 3] * X[:, 30])
    scores = screening_scores(X, y[:, None], is_classification=True)
    np.testing.assert_allclose(scores, find_pairs(X, y > 0, n_permutations=0).scores, rtol=1e-3, atol=1e-3)
    assert best(scores, 2) == [3, 30]


def test_single_columns_count_too():
    X = normal()
    assert best(screening_scores(X, X[:, [8]] ** 2, is_classification=False), 1) == [8]


def test_classes_labels_and_several_numbers():
    X = normal(600)
    quarter = (X[:, 3] > 0).astype(int) + 2 * (X[:, 5] * X[:, 6] > 0)
    one_of_four = np.where(quarter[:, None] == np.arange(4), 1.0, -1.0)
    assert best(screening_scores(X, one_of_four, is_classification=True), 3) == [3, 5, 6]
    labels = np.column_stack([X[:, 3] > 0, X[:, 5] * X[:, 6] > 0, np.ones(600)])
    assert best(screening_scores(X, 2.0 * labels - 1, is_classification=True), 3) == [3, 5, 6]
    numbers = np.column_stack([X[:, 3], X[:, 5] * X[:, 6], np.zeros(600)])
    assert best(screening_scores(X, numbers, is_classification=False), 3) == [3, 5, 6]


def test_weights_of_classes_do_not_count_those_of_rows_do():
    X = normal(500)
    y = np.where((X[:, 3] * X[:, 30] > 1.2), 1.0, -1.0)[:, None]
    balanced = np.where(y[:, 0] > 0, 1 / np.mean(y > 0), 1 / np.mean(y < 0))
    plain = screening_scores(X, y, is_classification=True)
    np.testing.assert_allclose(screening_scores(X, y, is_classification=True, sample_weight=balanced), plain)
    half = np.arange(500) % 2 == 0
    mixed = np.where(half, np.sign(X[:, 3] * X[:, 30]), np.sign(X[:, 7] * X[:, 9]))[:, None]
    weighted = screening_scores(X, mixed, is_classification=True, sample_weight=np.where(half, 1.0, 0.01))
    assert best(weighted, 2) == [3, 30]


def test_a_group_has_one_score():
    X = normal()
    scores = screening_scores(X, np.sign(X[:, [3]] * X[:, [30]]), is_classification=True, groups=np.arange(40) % 20)
    assert scores.shape == (20,)
    assert best(scores, 2) == [3, 10]


def test_sparse_tables():
    X = np.where(np.random.default_rng(1).random((400, 40)) > 0.5, normal(400), 0.0)
    y = np.sign(X[:, [3]] * X[:, [30]] + 1e-3)
    for kind in (sp.csr_matrix, sp.csc_array):
        assert best(screening_scores(kind(X), y, is_classification=True), 2) == [3, 30]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_few_rows_are_judged_by_correlations(kind):
    X = normal(10, 6)
    X[:, 2] = 7.0
    scores = screening_scores(kind(X), X[:, [4]], is_classification=False)
    assert scores[4] == pytest.approx(1.0)
    assert scores[2] == -np.inf
    assert (np.abs(scores[[0, 1, 3, 5]]) < 1).all()


def test_a_target_that_says_nothing():
    assert (screening_scores(normal(), np.ones((300, 1)), is_classification=True) == -np.inf).all()
    assert (screening_scores(normal(), np.ones((300, 2)), is_classification=False) == -np.inf).all()


def test_very_wide_tables_are_sketched(monkeypatch):
    monkeypatch.setattr("tamiz.pairs.search.MAX_FULL_COLUMNS", 30)
    X = normal(600)
    assert best(screening_scores(X, np.sign(X[:, [3]] * X[:, [30]]), is_classification=True), 2) == [3, 30]
