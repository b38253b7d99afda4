"""What the models of the folds say of rows that they had not seen."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.evaluation.cross_validation import evaluate_selection
from tamiz.evaluation.fold_work import COLUMN_SETS, gather_held_out
from tamiz.evaluation.folds import make_folds


def make_classifier(m, seed, loss="logistic"):
    return E2EFSClassifier(n_features_to_select=m, loss=loss, random_state=seed)


def make_regressor(m, seed):
    return E2EFSRegressor(n_features_to_select=m, random_state=seed)


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    return X, X[:, 2] - X[:, 4]


def evaluate(X, y, make, task, folds):
    return evaluate_selection(lambda a, b: (X[a], X[b]), y, make, 2, folds, task=task, n_random=2)


def test_every_row_is_predicted_by_the_fold_that_held_it_out(table):
    X, value = table
    y = np.where(value > 0, "up", "down")
    folds = make_folds(y, "classification", 3, n_repeats=2)
    evaluation = evaluate(X, y, make_classifier, "classification", folds)
    held = gather_held_out(evaluation.folds, folds, y)
    assert held.rows.tolist() == list(range(60))
    assert set(held.fold) == {0, 1, 2}  # the first repeat
    assert np.array_equal(held.predicted, evaluation.predicted)
    assert set(held.outputs) == set(COLUMN_SETS)
    train, test = folds[1]
    model = make_classifier(2, 1).fit(X[train], y[train])
    np.testing.assert_allclose(held.outputs["kept"][test], model.decision_function(X[test]), rtol=1e-5)
    np.testing.assert_allclose(held.probabilities[test], model.predict_proba(X[test]), rtol=1e-5)
    np.testing.assert_allclose(evaluation.folds[1].effects, model.coef_)


def test_losses_without_probabilities_and_numbers(table):
    X, value = table
    y = np.where(value > 0, 1, 0)
    folds = make_folds(y, "classification", 2)
    hinge = evaluate(X, y, lambda m, seed: make_classifier(m, seed, "squared_hinge"), "classification", folds)
    assert gather_held_out(hinge.folds, folds, y).probabilities is None
    folds = make_folds(value, "regression", 2)
    numbers = evaluate(X, value, make_regressor, "regression", folds)
    held = gather_held_out(numbers.folds, folds, value)
    np.testing.assert_allclose(held.outputs["kept"], held.predicted)


def test_outputs_are_the_same_in_processes(table):
    X, value = table
    y = np.where(value > 0, "up", "down")
    folds = make_folds(y, "classification", 2)
    in_threads = evaluate(X, y, make_classifier, "classification", folds)
    in_processes = evaluate_selection(
        Rows(X), y, make_classifier, 2, folds, task="classification", n_random=2, processes=True
    )
    first, second = (gather_held_out(e.folds, folds, y) for e in (in_threads, in_processes))
    for name in COLUMN_SETS:
        np.testing.assert_array_equal(first.outputs[name], second.outputs[name])


class Rows:
    """Give the rows of a fold; can be sent to other processes."""

    def __init__(self, X):
        self.X = X

    def __call__(self, train, test):
        return self.X[train], self.X[test]
