"""What an estimator chooses from the data: M, the weight decay, the network."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from tamiz import Auto, E2EFSClassifier, E2EFSPath, E2EFSRegressor, Selection, Training
from tamiz.engines.schedule import SelectionL2
from tamiz.errors import UnknownNameError
from tamiz.estimators.chooser import round_numbers
from tamiz.estimators.networks import NETWORKS, Additive

QUICK = {"training": Training(ramp_steps=500, refinement_epochs=10), "random_state": 0}


@pytest.fixture(scope="module")
def three_true():
    """200 x 24; the class is the sign of the sum of three columns and some noise."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 24))
    return X, X[:, [2, 9, 17]].sum(axis=1) + 0.5 * rng.normal(size=200) > 0


def test_round_numbers():
    assert round_numbers(1) == [1]
    assert round_numbers(7) == [1, 2, 3, 5, 7]
    assert round_numbers(60)[6:] == [15, 20, 30, 40, 50, 60]
    assert round_numbers(40_000)[-3:] == [300, 400, 500]
    assert round_numbers(2000, least=600) == [600]
    with pytest.raises(ValueError, match="The least M is 8, but there are 7 columns"):
        round_numbers(7, least=8)


def test_m_comes_out_by_itself(three_true):
    X, y = three_true
    model = E2EFSClassifier("auto", **QUICK).fit(X, y)
    assert model.n_features_to_select_ == 3
    assert model.get_support(indices=True).tolist() == [2, 9, 17]
    results = model.cv_results_
    assert results["n_features"].tolist() == [1, 2, 3, 5, 7, 10, 15, 20, 24]
    splits = np.array([results[f"split{i}_test_score"] for i in range(5)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    choice = model.selection_.choices["n_features_to_select"]
    assert (choice["chosen"], choice["rule"], choice["scoring"]) == (3, "one_se", "balanced_accuracy")
    assert Selection.from_json(model.selection_.to_json()).choices == model.selection_.choices
    assert clone(model).get_params()["n_features_to_select"] == "auto"
    same = E2EFSClassifier(3, **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert not hasattr(same, "cv_results_")


def test_rule_scoring_folds_and_least_m(three_true):
    X, y = three_true
    model = E2EFSClassifier(Auto(rule=1.0, minimum=4), cv=StratifiedKFold(3), scoring="accuracy", **QUICK)
    model.fit(X, y)
    assert model.n_features_to_select_ == 4  # everything is within 1.0 of the best
    assert "split2_test_score" in model.cv_results_
    assert "split3_test_score" not in model.cv_results_
    assert model.selection_.choices["n_features_to_select"]["scoring"] == "accuracy"
    best = clone(model).set_params(n_features_to_select__rule="best").fit(X, y)
    assert best.n_features_to_select_ == best.cv_results_["n_features"][best.cv_results_["mean_test_score"].argmax()]


def test_numbers_and_names(numbers):
    pd = pytest.importorskip("pandas")
    X, y = numbers
    model = E2EFSRegressor(Auto(rule=0.02), cv=3, **QUICK).fit(pd.DataFrame(X, columns=[f"c{i}" for i in range(20)]), y)
    assert sorted(model.selection_.names) == ["c3", "c7"]
    assert model.selection_.choices["n_features_to_select"]["scoring"] == "r2"
    assert model.feature_names_in_[0] == "c0"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scoring": "acuracy"}, UnknownNameError, "Unknown scoring 'acuracy'. Did you mean 'accuracy'"),
        ({"n_features_to_select": Auto(minimum=25)}, ValueError, "The least M is 25, but there are 24 columns"),
        ({"cv": 1}, ValueError, "cv"),
        ({"n_features_to_select": "automatic"}, ValueError, "n_features_to_select"),
    ],
)
def test_bad_parameters(three_true, change, error, message):
    model = E2EFSClassifier("auto", **QUICK).set_params(**change)
    with pytest.raises(error, match=message):
        model.fit(*three_true)
    assert not hasattr(model, "selection_")


def test_a_score_of_numbers_for_classes(three_true):
    X, y = three_true
    with pytest.raises(ValueError, match="scoring='r2' is for numbers, but y holds classes"):
        E2EFSClassifier("auto", scoring="r2", **QUICK).fit(X, np.where(y, "yes", "no"))


@pytest.mark.parametrize("parameter", ["n_features_to_select", "network"])
def test_one_row_of_a_class(three_true, parameter):
    X, y = three_true
    labels = np.where(y, "yes", "no").astype(object)
    labels[0] = "lonely"
    model = E2EFSClassifier(2, **QUICK).set_params(**{parameter: "auto"})
    with pytest.raises(ValueError, match=f"Class 'lonely' has 1 row, but {parameter}='auto' needs"):
        model.fit(X, labels)
    assert model.set_params(**{parameter: "linear" if parameter == "network" else 2}).fit(X, labels).l2_ > 0


def test_few_rows_of_two_classes_keep_the_rule_and_cost_nothing(table):
    model = E2EFSClassifier(2, **QUICK).fit(*table)
    assert model.l2_ == 100 / 80
    assert model.selection_.choices == {}


def test_the_decay_is_chosen_with_a_guard():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 60))
    y = X[:, :3].sum(axis=1)
    clear = E2EFSRegressor(5, training=Training(ramp_steps=1000, refinement_epochs=10), random_state=0)
    clear.fit(X, y)  # told precisely: a weaker decay than the rule is better
    choice = clear.selection_.choices["l2"]
    rule = 100 / 120
    np.testing.assert_allclose(choice["candidates"], [rule, rule / 10, rule / 100])
    assert clear.l2_ == choice["chosen"] < rule
    assert choice["rule"] == "guarded"
    json.dumps(clear.selection_.to_dict())
    noise = clone(clear).fit(X[:, 3:], rng.normal(size=120))  # nothing to gain: the rule stays
    assert noise.selection_.choices["l2"]["chosen"] == pytest.approx(rule)
    given = clone(clear).set_params(l2=0.01).fit(X, y)
    assert given.l2_ == 0.01
    assert given.selection_.choices == {}
    again = clear.copy_for(4)
    assert (again.l2, again.n_features_to_select) == (SelectionL2(clear.l2_), 4)
    assert isinstance(again.l2, SelectionL2)
    np.testing.assert_array_equal(clear.copy_for(5).fit(X, y).coef_, clear.coef_)


def test_several_classes_have_a_rule_and_candidates_of_their_own(three_classes):
    X, y = three_classes
    model = E2EFSClassifier(3, **QUICK).fit(X, y)
    rule = 100 / 120 / 3**2
    np.testing.assert_allclose(model.selection_.choices["l2"]["candidates"], [rule, rule * 10, rule / 10])
    assert model.get_support(indices=True).tolist() == [2, 5, 9]
    # Softmax over two classes has two outputs, but they are one problem: that of the paper.
    assert E2EFSClassifier(3, loss="softmax", **QUICK).fit(X, y == "a").l2_ == 100 / 120


def test_the_simplest_network_that_does_as_well(monkeypatch, three_true):
    # The dense network has its own tests; here it would take most of the time.
    monkeypatch.delitem(NETWORKS, "mlp")
    monkeypatch.setattr("tamiz.estimators.chooser.AUTOMATIC_NETWORKS", ("linear", "additive"))
    X, y = three_true
    model = E2EFSClassifier(3, network="auto", cv=3, **QUICK).fit(X, y)
    assert model.network_ == "linear"
    assert model.selection_.choices["network"]["candidates"] == ["linear", "additive"]
    ring = np.abs(X[:, 5]) > 0.7
    model = E2EFSClassifier(
        1, training=Training(ramp_steps=1000, refinement_epochs=20), network="auto", cv=3, random_state=0
    ).fit(X, ring)
    assert model.network_ == "additive"
    assert model.get_support(indices=True).tolist() == [5]
    assert model.copy_for(2).network == "additive"


def test_a_network_that_cannot_be_fitted_is_left_out_with_its_reason(monkeypatch, three_true):
    class TooLarge(Additive):
        def engine(self, training):
            raise MemoryError("too large")

    monkeypatch.setattr("tamiz.estimators.chooser.AUTOMATIC_NETWORKS", ("linear", "additive", "no such name"))
    monkeypatch.setitem(NETWORKS, "additive", TooLarge())
    model = E2EFSClassifier(3, network="auto", cv=3, **QUICK).fit(*three_true)
    choice = model.selection_.choices["network"]
    assert (model.network_, choice["reasons"]) == ("linear", {"additive": "too large"})
    assert choice["mean"][1] is None


@pytest.mark.parametrize(("scoring", "n_scored"), [(None, 1), ("accuracy", 1), ("matthews_corrcoef", 3)])
def test_a_network_that_cannot_become_the_best_is_left_early(monkeypatch, three_true, scoring, n_scored):
    monkeypatch.setattr("tamiz.estimators.chooser.AUTOMATIC_NETWORKS", ("linear", "additive"))
    X = three_true[0].copy()
    y = X[:, 0] > 0
    X[:, 0] = y  # a line makes no error: nothing can be better
    choice = E2EFSClassifier(1, network="auto", cv=3, scoring=scoring, **QUICK).fit(X, y).selection_.choices["network"]
    assert choice["chosen"] == "linear"
    assert sum(score is not None for score in choice["scores"][1]) == n_scored
    assert bool(choice["reasons"]) == (n_scored == 1)


def test_a_seed_repeats_the_choice(three_true):
    X, y = three_true
    state = [E2EFSClassifier("auto", **{**QUICK, "random_state": np.random.RandomState(3)}).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(state[0].coef_, state[1].coef_)
    np.testing.assert_array_equal(state[0].cv_results_["mean_test_score"], state[1].cv_results_["mean_test_score"])


def test_weights_of_zero_leave_rows_out_of_the_inner_folds(three_true):
    X, y = three_true
    weights = np.ones(200)
    weights[:40] = 0
    spoiled = X.copy()
    spoiled[:40] = 1e6
    whole = E2EFSClassifier("auto", cv=3, **QUICK).fit(spoiled, y, sample_weight=weights)
    part = E2EFSClassifier("auto", cv=3, **QUICK).fit(X[40:], y[40:], sample_weight=np.ones(160))
    np.testing.assert_array_equal(whole.cv_results_["mean_test_score"], part.cv_results_["mean_test_score"])


def test_a_path_chooses_predicts_and_draws(three_true):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = three_true
    path = E2EFSPath([1, 3, 8], estimator=E2EFSClassifier(**QUICK), cv=3).fit(X, y)
    assert path.best_ == 3
    assert path.best_estimator_ is path.estimators_[3]
    np.testing.assert_array_equal(path.predict(X), path.estimators_[3].predict(X))
    assert path.transform(X).shape == (200, 3)
    assert path.cv_results_["n_features"].tolist() == [1, 3, 8]
    assert path.estimators_[8].selection_.choices["n_features_to_select"]["chosen"] == 3
    axes = path.plot()
    assert "3" in axes.get_legend_handles_labels()[1][0]
    pyplot.close(axes.figure)


def test_a_path_of_round_numbers_and_one_without_scores(three_true):
    X, y = three_true
    path = E2EFSPath(estimator=E2EFSClassifier(**QUICK), cv=None).fit(X[:, :6], y)
    assert path.n_features_to_select_ == [1, 2, 3, 5, 6]
    assert not hasattr(path, "best_")
    with pytest.raises(ValueError, match="With cv=None no M is chosen"):
        path.predict(X)
    with pytest.raises(ValueError, match="n_features_to_select=25 is more than the 24"):
        E2EFSPath([2, 25], estimator=E2EFSClassifier(**QUICK)).fit(X, y)
    with pytest.raises(UnknownNameError, match="Unknown scoring"):
        E2EFSPath([2], estimator=E2EFSClassifier(**QUICK), scoring="nothing").fit(X, y)
    with pytest.raises(ValueError, match="'rule' parameter of E2EFSPath"):
        E2EFSPath([2], estimator=E2EFSClassifier(**QUICK), rule=-1.0).fit(X, y)
