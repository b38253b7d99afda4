"""Estimators as the commands make them."""

import pickle

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.cli.estimator import ModelOptions, fit_model, make_estimator, model_maker


def test_options_become_parameters():
    options = ModelOptions(
        variant="hard", loss="logistic", class_weight="none", parameters={"training": Training(ramp_steps=700)}
    )
    made = make_estimator(options, "classification", 3, 5)
    assert isinstance(made, E2EFSClassifier)
    expected = {
        "n_features_to_select": 3,
        "variant": "hard",
        "loss": "logistic",
        "random_state": 5,
        "training__ramp_steps": 700,
    }
    assert {name: made.get_params()[name] for name in expected} == expected
    assert made.class_weight is None
    assert make_estimator(ModelOptions(), "classification", 3, 0).class_weight == "balanced"
    assert isinstance(make_estimator(ModelOptions(), "regression", 3, 0), E2EFSRegressor)


def test_a_budget_decides_the_number():
    made = make_estimator(ModelOptions(parameters={"budget": 4, "costs": [1, 2, 3]}), "regression", 2, 0)
    assert made.n_features_to_select is None


def test_what_makes_models_goes_to_other_processes():
    make = pickle.loads(pickle.dumps(model_maker(ModelOptions(), "regression")))
    assert make(4, 1).get_params()["n_features_to_select"] == 4


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_all_rows_are_fitted(task):
    X = np.random.default_rng(0).normal(size=(40, 5))
    y = X[:, 2] > 0 if task == "classification" else X[:, 2]
    options = ModelOptions(parameters={"training": Training(ramp_steps=300)})
    fitted = fit_model(options, task, 1, 0, X, y, np.ones(40))
    assert fitted.get_support(indices=True).tolist() == [2]
