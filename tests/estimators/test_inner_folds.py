from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, Training
from tamiz.errors import UnknownNameError
from tamiz.estimators.chooser import find_scorer, inner_folds, row_scores
from tamiz.rows.rows import Rows


def test_classes_are_stratified_with_as_many_folds_as_the_smallest_has_rows():
    y = np.repeat([0, 1], [12, 3])
    splits = inner_folds(Rows(np.zeros((15, 1)), y), "classification", 5, 0, "auto")
    assert len(splits) == 3
    assert all((y[test] == 1).sum() == 1 for _, test in splits)


def test_one_row_of_a_class():
    rows = Rows(np.zeros((5, 1)), ["b", "b", "b", "b", "lonely"])
    with pytest.raises(ValueError, match="Class 'lonely' has 1 row, but n_features_to_select='auto' needs at least 2"):
        inner_folds(rows, "classification", 5, 0, "n_features_to_select='auto'")


def test_other_folds():
    rows = Rows(np.zeros((9, 1)), np.arange(9.0))
    assert len(inner_folds(rows, "regression", None, 0, "auto")) == 4
    given = inner_folds(rows, "regression", KFold(3), 0, "auto")
    assert given[0][1].tolist() == [0, 1, 2]
    assert len(inner_folds(rows, "regression", [given[1]], 0, "auto")) == 1
    with pytest.raises(ValueError, match="at least 2 folds"):
        inner_folds(rows, "regression", 1, 0, "auto")
    with pytest.raises(ValueError, match="at least 4 rows"):
        inner_folds(Rows(np.zeros((3, 1)), np.arange(3.0)), "regression", 5, 0, "auto")
    with pytest.raises(ValueError, match="cv gives no split"):
        inner_folds(rows, "regression", [], 0, "auto")


def test_indices_of_cv_refer_to_the_rows_as_given_and_rows_of_weight_0_are_in_no_part():
    y = np.arange(6) % 2
    rows = Rows(np.zeros((6, 1)), y, sample_weight=[0, 1, 1, 1, 1, 1])
    given = [(np.array([0, 1, 2, 3]), np.array([4, 5])), (np.array([2, 3, 4, 5]), np.array([0, 1]))]
    splits = inner_folds(rows, "classification", given, 0, "auto")
    assert [[part.tolist() for part in split] for split in splits] == [[[1, 2, 3], [4, 5]], [[2, 3, 4, 5], [1]]]
    with pytest.raises(ValueError, match="without rows of a weight above 0"):
        inner_folds(rows, "classification", [(np.array([1, 2]), np.array([0]))], 0, "auto")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_stay_together_and_time_runs_forward(task):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60) if task == "classification" else rng.normal(size=60)
    groups = np.repeat(np.arange(12), 5)
    splits = inner_folds(Rows(np.zeros((60, 1)), y, groups=groups), task, 4, 0, "auto")
    assert len(splits) == 4
    assert not any(np.isin(groups[test], groups[train]).any() for train, test in splits)
    time = rng.permutation(60) // 3
    splits = inner_folds(Rows(np.zeros((60, 1)), y, time=time), task, 4, 0, "auto")
    assert len(splits) == 4
    assert all(time[train].max() < time[test].min() for train, test in splits)
    with pytest.raises(ValueError, match="one value for each of the 60 rows"):
        Rows(np.zeros((60, 1)), y, groups=groups[:-1])
    with pytest.raises(ValueError, match="groups or time, not both"):
        inner_folds(Rows(np.zeros((60, 1)), y, groups=groups, time=time), task, 4, 0, "auto")
    with pytest.raises(ValueError, match=r"group of rows|2 groups"):
        inner_folds(Rows(np.zeros((60, 1)), y, groups=np.zeros(60)), task, 4, 0, "auto")


def test_scores_of_rows_average_to_the_score():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    found = row_scores(guess, y, "classification").mean()
    assert found == pytest.approx(balanced_accuracy_score(y, guess))
    truth, guess = rng.normal(size=60), rng.normal(size=60)
    for scale in (1.0, 1e200):
        assert 1 + row_scores(guess * scale, truth * scale, "regression").mean() == pytest.approx(
            r2_score(truth, guess)
        )
    labels = np.array([[0, 1], [1, 1]])
    assert row_scores(np.array([[0, 1], [0, 1]]), labels, "classification").tolist() == [1.0, 0.5]


def test_scorers(table):
    from sklearn.dummy import DummyClassifier

    X, y = table
    model = DummyClassifier(strategy="constant", constant=0).fit(X, y)
    name, score = find_scorer(model, None, y, "classification")
    assert (name, score(model, X, y)) == ("balanced_accuracy", 0.5)
    name, score = find_scorer(model, "accuracy", y, "classification")
    assert (name, score(model, X, y)) == ("accuracy", (y == 0).mean())
    assert find_scorer(model, lambda estimator, X, y: 3.0, y, "classification")[1](model, X, y) == 3.0
    with pytest.raises(UnknownNameError, match=r"Unknown scoring 'acuracy'\. Did you mean 'accuracy'"):
        find_scorer(model, "acuracy", y, "classification")
    with pytest.raises(TypeError, match="scoring must be a name"):
        find_scorer(model, 3, y, "classification")


def repeated_patients(seed=0):
    """40 patients with 5 rows each, nearly copies: folds that split a patient tell by the patient, not by the disease."""
    rng = np.random.default_rng(seed)
    patients = np.repeat(np.arange(40), 5)
    y = rng.integers(0, 2, 40)[patients]
    return rng.normal(size=(40, 60))[patients] + 0.05 * rng.normal(size=(200, 60)), y, patients


def test_m_is_chosen_on_new_patients():
    X, y, patients = repeated_patients()
    model = E2EFSClassifier("auto", training=Training(ramp_steps=500, refinement_epochs=10), random_state=0)
    plain, grouped = model.fit(X, y).cv_results_, model.fit(X, y, groups=patients).cv_results_
    assert plain["mean_test_score"].max() > 0.9  # noise, known by heart
    assert grouped["mean_test_score"].max() < 0.75
    by_time = model.fit(X, y, time=patients).cv_results_
    assert by_time["mean_test_score"].max() < 0.75


def test_groups_reach_the_estimator_through_a_pipeline():
    X, y, patients = repeated_patients()
    model = E2EFSClassifier("auto", training=Training(ramp_steps=500, refinement_epochs=10), random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(groups=True)).fit(X, y, groups=patients)
    direct = E2EFSClassifier("auto", training=model.training, random_state=0)
    direct.fit(StandardScaler().fit_transform(X), y, groups=patients)
    np.testing.assert_array_equal(pipeline[-1].cv_results_["mean_test_score"], direct.cv_results_["mean_test_score"])


def test_every_inner_fit_is_reported_and_can_end_the_search(monkeypatch):
    monkeypatch.setattr("tamiz.estimators.chooser.AUTOMATIC_NETWORKS", ("linear", "additive"))
    X, y, _ = repeated_patients()
    seen = []
    model = E2EFSClassifier(3, network="auto", training=Training(ramp_steps=100, refinement_epochs=1), cv=2)
    chosen = model.choose(X, y, progress=lambda *report: seen.append(report))
    assert chosen.parameters["network"] in ("linear", "additive")
    assert seen[-1] == ("network", seen[-1][1], 4)
    assert sorted(report[1] for report in seen) == [report[1] for report in seen]

    def stop(*_):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        model.choose(X, y, progress=stop)
