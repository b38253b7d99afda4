"""What an estimator chooses from the data (M and the network), on which folds, and fits that share a prepared table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import Auto, E2EFSClassifier, E2EFSPath, E2EFSRegressor, Selection, Training
from tamiz.errors import UnknownNameError
from tamiz.estimators.chooser import (
    LEAST_EVIDENCE,
    STRONG_EVIDENCE,
    Choice,
    _find_idle,
    choose_guarded,
    choose_simplest,
    find_evidence,
    find_scorer,
    inner_folds,
    round_numbers,
    row_scores,
)
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, Additive
from tamiz.rows.rows import Rows

QUICK = {"training": Training(ramp_steps=500, refinement_epochs=10), "random_state": 0}
SCORES = np.array([[0.60, 0.62, 0.64], [0.80, 0.86, 0.80], [0.80, 0.90, 0.82], [0.79, 0.80, 0.82]])


@pytest.mark.parametrize(
    ("scores", "rule", "expected"),
    [
        (SCORES, "one_se", 1),
        (SCORES, "best", 2),
        (SCORES, 0.01, 2),
        (SCORES, 0.02, 1),
        (SCORES, 0.22, 0),
        (np.array([[0.8, 0.8], [0.9, 0.9]]), 0.1, 0),  # a tolerance takes in its own end
        (np.array([[0.5, 0.5], [0.9, 0.9], [0.9, 0.9]]), "best", 1),  # ties go to the simplest
        (np.array([[0.5], [0.9]]), "one_se", 1),  # one split has no error
        (np.array([[0.9, np.nan], [0.5, 0.5]]), 1.0, 1),  # what could not be fitted is not taken
    ],
)
def test_the_simplest_that_is_good_enough(scores, rule, expected):
    assert choose_simplest(scores, rule) == expected


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match="no candidate has a score"):
        choose_simplest(np.full((2, 2), np.nan))


def test_the_guard_leaves_the_first_only_for_a_gain_beyond_its_standard_error():
    rng = np.random.default_rng(0)
    hits = (rng.random(200) < 0.7).astype(float)
    other, best, nothing = hits.copy(), hits.copy(), np.full(200, np.nan)
    other[:1] = 1 - other[:1]
    assert choose_guarded(np.array([hits, other, hits, nothing])) == 0
    wrong = np.flatnonzero(hits == 0)
    other = hits.copy()
    other[wrong[:10]] = 1
    assert choose_guarded(np.array([hits, other, nothing])) == 1
    assert choose_guarded(np.array([hits, other]), 100.0) == 0
    best[wrong[:11]] = 1  # one row more: not beyond the error of that gain
    assert choose_guarded(np.array([hits, other, best])) == 1
    best[wrong[:30]] = 1
    assert choose_guarded(np.array([hits, other, best])) == 2


def test_the_record_is_ready_for_json():
    record = Choice(["linear", "mlp"], np.array([[0.5, 0.7], [np.nan, 0.9]]), 0, 0.1, "r2", {"mlp": "memory"}).to_dict()
    assert json.loads(json.dumps(record)) == record
    assert (record["mean"], record["chosen"], record["reasons"]) == ([0.6, None], "linear", {"mlp": "memory"})


def folds(y, task="regression", cv=5, **options):
    return inner_folds(Rows(np.zeros((len(y), 1)), y, **options), task, cv, 0, "M='auto'")


def test_folds():
    y = np.repeat([0, 1], [12, 3])
    splits = folds(y, "classification")  # stratified, as many as the smallest class has rows
    assert [(y[test] == 1).sum() for _, test in splits] == [1, 1, 1]
    numbers = np.arange(9.0)
    assert len(folds(numbers, cv=None)) == 4
    given = folds(numbers, cv=KFold(3))
    assert given[0][1].tolist() == [0, 1, 2]
    assert len(folds(numbers, cv=[given[1]])) == 1


def test_indices_of_cv_refer_to_the_rows_as_given_and_rows_of_weight_0_are_in_no_part():
    given = [(np.array([0, 1, 2, 3]), np.array([4, 5])), (np.array([2, 3, 4, 5]), np.array([0, 1]))]
    splits = folds(np.arange(6) % 2, "classification", given, sample_weight=[0, 1, 1, 1, 1, 1])
    assert [[part.tolist() for part in split] for split in splits] == [[[1, 2, 3], [4, 5]], [[2, 3, 4, 5], [1]]]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_stay_together_and_time_runs_forward(task):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60) if task == "classification" else rng.normal(size=60)
    groups, time = np.repeat(np.arange(12), 5), rng.permutation(60) // 3
    splits = folds(y, task, 4, groups=groups)
    assert len(splits) == 4
    assert not any(np.isin(groups[test], groups[train]).any() for train, test in splits)
    splits = folds(y, task, 4, time=time)
    assert len(splits) == 4
    assert all(time[train].max() < time[test].min() for train, test in splits)
    for options, message in (
        ({"groups": groups[:-1]}, "one value for each of the 60 rows"),
        ({"groups": groups, "time": time}, "groups or time, not both"),
        ({"groups": np.zeros(60)}, "group of rows|2 groups"),
    ):
        with pytest.raises(ValueError, match=message):
            folds(y, task, 4, **options)


BAD_FOLDS = [
    ((["b", "b", "b", "b", "lonely"], "classification"), {}, "Class 'lonely' has 1 row, but M='auto' needs at least 2"),
    ((np.arange(9.0), "regression", 1), {}, "at least 2 folds"),
    ((np.arange(3.0), "regression"), {}, "at least 4 rows"),
    ((np.arange(9.0), "regression", []), {}, "cv gives no split"),
    (([0, 1, 0], "classification", [([1, 2], [0])]), {"sample_weight": [0, 1, 1]}, "without rows of a weight above 0"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), BAD_FOLDS)
def test_bad_folds(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        folds(*arguments, **options)


def test_scores_of_rows_average_to_the_score():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    assert row_scores(guess, y, "classification").mean() == pytest.approx(balanced_accuracy_score(y, guess))
    truth, guess = rng.normal(size=60), rng.normal(size=60)
    for scale in (1.0, 1e200):
        found = row_scores(guess * scale, truth * scale, "regression").mean()
        assert 1 + found == pytest.approx(r2_score(truth, guess))
    labels = np.array([[0, 1], [1, 1]])
    assert row_scores(np.array([[0, 1], [0, 1]]), labels, "classification").tolist() == [1.0, 0.5]


def test_scorers(table):
    X, y = table
    model = DummyClassifier(strategy="constant", constant=0).fit(X, y)
    for scoring, expected in ((None, 0.5), ("accuracy", (y == 0).mean()), (lambda *_: 3.0, 3.0)):
        assert find_scorer(model, scoring, y, "classification")[1](model, X, y) == pytest.approx(expected)
    with pytest.raises(TypeError, match="scoring must be a name"):
        find_scorer(model, 3, y, "classification")


@pytest.mark.parametrize(
    ("arguments", "last"),
    [((1,), [1]), ((7,), [1, 2, 3, 5, 7]), ((60,), [40, 50, 60]), ((40_000,), [300, 400, 500]), ((2000, 600), [600])],
)
def test_round_numbers(arguments, last):
    assert round_numbers(*arguments)[-len(last) :] == last


@pytest.fixture(scope="module")
def three_true():
    """200 x 24; the class is the sign of the sum of three columns and some noise."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 24))
    return X, X[:, [2, 9, 17]].sum(axis=1) + 0.5 * rng.normal(size=200) > 0


def test_m_comes_out_by_itself(three_true):
    X, y = three_true
    model = E2EFSClassifier("auto", **QUICK).fit(X, y)
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
    assert same.selection_.choices == {}
    states = ({**QUICK, "random_state": np.random.RandomState(3)} for _ in range(2))
    one, two = (E2EFSClassifier("auto", cv=2, **state).fit(X, y) for state in states)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_rule_scoring_folds_and_least_m(three_true, numbers):
    X, y = three_true
    model = E2EFSClassifier(Auto(rule=1.0, minimum=4), cv=StratifiedKFold(3), scoring="accuracy", **QUICK).fit(X, y)
    assert model.n_features_to_select_ == 4  # everything is within 1.0 of the best
    assert [name for name in model.cv_results_ if name.startswith("split")][-1] == "split2_test_score"
    assert model.selection_.choices["n_features_to_select"]["scoring"] == "accuracy"
    best = clone(model).set_params(n_features_to_select__rule="best").fit(X, y)
    assert best.n_features_to_select_ == best.cv_results_["n_features"][best.cv_results_["mean_test_score"].argmax()]
    regressor = E2EFSRegressor(Auto(rule=0.02), cv=3, **QUICK).fit(*numbers)
    assert regressor.get_support(indices=True).tolist() == [3, 7]
    assert regressor.selection_.choices["n_features_to_select"]["scoring"] == "r2"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scoring": "acuracy"}, UnknownNameError, "Unknown scoring 'acuracy'. Did you mean 'accuracy'"),
        ({"scoring": "r2"}, ValueError, "scoring='r2' is for numbers, but y holds classes"),
        ({"n_features_to_select": Auto(minimum=25)}, ValueError, "The least M is 25, but there are 24 columns"),
        ({"cv": 1}, ValueError, "cv"),
        ({"n_features_to_select": "automatic"}, ValueError, "n_features_to_select"),
    ],
)
def test_bad_parameters(three_true, change, error, message):
    model = E2EFSClassifier("auto", **QUICK).set_params(**change)
    with pytest.raises(error, match=message):
        model.fit(three_true[0], np.where(three_true[1], "yes", "no"))
    assert not hasattr(model, "selection_")


def test_the_simplest_network_that_does_as_well(three_true):
    X, y = three_true
    model = E2EFSClassifier(3, network="auto", cv=3, **QUICK).fit(X, y)
    choice = model.selection_.choices["network"]
    assert (model.network_, choice["candidates"]) == ("linear", list(AUTOMATIC_NETWORKS))
    assert all(reason.startswith("not tried: no sign of") for reason in choice["reasons"].values())
    curves = {
        "training": Training(ramp_steps=1000, refinement_epochs=20),
        "network": "auto",
        "cv": 3,
        "random_state": 0,
    }
    ring = E2EFSClassifier(1, **curves).fit(X, np.abs(X[:, 5]) > 0.7)
    assert (ring.network_, ring.get_support(indices=True).tolist()) == ("additive", [5])
    assert ring.copy_for(2).network == "additive"
    product = E2EFSRegressor(2, **curves).fit(X, X[:, 5] * X[:, 9])
    assert (product.network_, product.get_support(indices=True).tolist()) == ("pairs", [5, 9])
    many = np.digitize(X[:, 5] * X[:, 9], [-0.8, -0.2, 0.2, 0.8])
    reasons = E2EFSClassifier(2, **curves).fit(X, many).selection_.choices["network"]["reasons"]
    assert reasons["pairs"] == reasons["pair search"] == "not tried: 5 outputs"
    assert "mlp" not in reasons  # fewer than 500 rows, but the only one that sees products of so many outputs


@pytest.mark.parametrize("weighted", [False, True])
def test_the_linear_network_is_fitted_once_where_nothing_speaks_against_it(monkeypatch, three_true, weighted):
    """The fit whose residuals were looked at is the result, with all that a fit of the linear network has."""
    X, y = pd.DataFrame(three_true[0]).add_prefix("c"), three_true[1]
    weights = np.arange(len(y)) % 3 if weighted else None
    plain = E2EFSClassifier(3, drop=["c0"], **QUICK).fit(X, y, weights)
    calls, run = [], E2EFSClassifier._run
    monkeypatch.setattr(E2EFSClassifier, "_run", lambda self, *args, **kw: calls.append(1) or run(self, *args, **kw))
    auto = E2EFSClassifier(3, network="auto", drop=["c0"], **QUICK).fit(X, y, weights)
    assert (len(calls), auto.network_, auto.selection_.choices["network"]["chosen"]) == (1, "linear", "linear")
    assert {name for name in vars(auto) if name.endswith("_")} == {name for name in vars(plain) if name.endswith("_")}
    np.testing.assert_array_equal(auto.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(auto.ranking_, plain.ranking_)
    np.testing.assert_array_equal(auto.feature_names_in_, plain.feature_names_in_)


def test_few_rows_try_no_network_behind_one_that_is_clear_and_no_mask_of_products():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    for y, chosen, other in (
        (X[:, 2] * X[:, 5] > 0, "pair search", ("pairs", "fewer than 200 rows")),
        (np.abs(X[:, 2]) > 0.7, "additive", ("pair search", "a simpler one was better than linear")),
    ):
        choice = E2EFSClassifier(2, network="auto", **QUICK).fit(X, y).selection_.choices["network"]
        assert (choice["chosen"], choice["reasons"][other[0]]) == (chosen, f"not tried: {other[1]}")


@pytest.mark.parametrize(
    ("curves", "products", "n_outputs", "n_rows", "tried"),
    [
        (0, 0, 1, 100, ()),
        (9, 0, 1, 100, ("additive", "pair search")),
        (9, 0, 1, 900, ("additive", "pair search")),
        (9, 0, 9, 100, ("additive",)),
        (0, 9, 1, 100, ("pair search",)),
        (9, 9, 1, 100, ("pair search",)),  # it has curves as well
        (9, 9, 1, 300, ("additive", "pair search", "pairs")),
        (0, 9, 1, 900, ("pair search", "pairs", "mlp of pair search", "mlp")),
        (9, 9, 9, 100, ("additive", "mlp of pair search", "mlp")),
        (6, 6, 1, 999, ("additive", "pair search", "pairs", "mlp of pair search", "mlp")),
        (6, 6, 1, 1000, ()),  # many rows show effects clearly
    ],
)
def test_networks_that_are_tried(curves, products, n_outputs, n_rows, tried):
    idle = _find_idle(curves, products, n_outputs, n_rows)
    assert tuple(name for name in AUTOMATIC_NETWORKS if name not in idle) == ("linear", *tried)


@pytest.mark.parametrize(
    ("evidence", "n_few", "gained", "lost", "chosen", "n_folds"),
    [
        (LEAST_EVIDENCE, 500, 9, 8, "additive", 2),  # of few rows any gain will do,
        (LEAST_EVIDENCE, 500, 8, 9, "linear", 2),
        (LEAST_EVIDENCE, 500, 9, 1, "additive", 1),  # and one fold where it is clear
        (LEAST_EVIDENCE, 500, 1, 9, "linear", 1),
        (STRONG_EVIDENCE, 500, 8, 9, "additive", 2),  # with strong evidence also a small loss,
        (STRONG_EVIDENCE, 500, 3, 9, "linear", 2),
        (STRONG_EVIDENCE, 500, 0, 9, "linear", 1),
        (LEAST_EVIDENCE, 100, 9, 8, "linear", 2),  # of many rows a gain beyond its error,
        (LEAST_EVIDENCE, 100, 9, 1, "additive", 2),
        (STRONG_EVIDENCE, 100, 9, 8, "additive", 2),  # with strong evidence any gain
        (STRONG_EVIDENCE, 100, 8, 9, "linear", 2),
    ],
)
def test_few_rows_and_strong_evidence_ask_a_standard_error_less_each(
    monkeypatch, evidence, n_few, gained, lost, chosen, n_folds
):
    """The scores of the rows are given: the additive network hits so many that the linear one misses, and the reverse."""
    calls = []

    def scores(predicted, y, task):
        calls.append(1)
        part = slice(gained) if len(calls) % 2 else slice(gained, gained + lost)
        hits = np.ones(30)
        hits[part] = 0
        return hits

    monkeypatch.setattr("tamiz.estimators.chooser.DENSE_ROWS", n_few)
    monkeypatch.setattr("tamiz.estimators.chooser.AUTOMATIC_NETWORKS", {"linear": "linear", "additive": "additive"})
    monkeypatch.setattr("tamiz.estimators.chooser.find_evidence", lambda *_, **__: (evidence + 1, -np.inf))
    monkeypatch.setattr("tamiz.estimators.chooser.row_scores", scores)
    X = np.random.default_rng(0).normal(size=(150, 4))
    choice = E2EFSClassifier(1, network="auto", **QUICK).fit(X, X[:, 0] > 0).selection_.choices["network"]
    assert (choice["chosen"], len(choice["scores"][0])) == (chosen, n_folds)


def test_evidence_of_curves_and_products():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 40)) * (rng.random(size=(1200, 40)) < 0.7)
    binary, rest = (X != 0).astype(float), rng.normal(size=(1200, 5))
    for residuals, expected in (
        (rest, (False, False)),
        (X[:, [3]] + rest, (False, False)),
        (3 * X[:, [3]] ** 2 + rest, (True, False)),
        (9 * X[:, [3]] * X[:, [7]] + rest, (False, True)),
        (0 * rest, (False, False)),
    ):
        found = find_evidence(X, residuals, 0, equal_variances=True)
        assert tuple(evidence > 2 * LEAST_EVIDENCE for evidence in found) == expected
        assert find_evidence(sp.csr_matrix(X), residuals, 0, equal_variances=True) == found
    wide = np.hstack([X, rng.normal(size=(1200, 2000))])
    for equal in (True, False):
        assert find_evidence(wide, 3 * X[:, [3]] ** 2 + rest, 0, equal_variances=equal)[0] > LEAST_EVIDENCE
        found = find_evidence(binary, binary[:, [3]] + rest, 0, equal_variances=equal)
        assert found[0] < LEAST_EVIDENCE  # the square of a binary column is a line
        levels = np.eye(3)[rng.integers(0, 3, 1200)]
        assert find_evidence(levels, levels[:, [0]] + 0.1 * rest, 0, equal_variances=equal)[1] < LEAST_EVIDENCE


def test_linear_tables_are_seldom_left():
    """60 tables, among them rare classes and numbers; at the level of 0.05 more than 8 have a probability of 0.005."""
    left = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 12))
        y = X[:, :3].sum(axis=1) + rng.logistic(size=80)
        model = E2EFSRegressor if seed % 3 == 0 else E2EFSClassifier
        y = y if seed % 3 == 0 else y > np.quantile(y, 0.8 if seed % 3 == 1 else 0.5)
        left += model(3, network="auto", **QUICK).choose(X, y).parameters["network"] != "linear"
    assert left <= 8


def test_a_network_that_cannot_be_fitted_is_left_out_with_its_reason(monkeypatch, three_true):
    class TooLarge(Additive):
        def engine(self, training):
            raise MemoryError("too large")

    monkeypatch.setattr("tamiz.estimators.chooser.LEAST_EVIDENCE", -np.inf)  # the pair search is tried beside it
    monkeypatch.setitem(NETWORKS, "additive", TooLarge())
    X = three_true[0]
    model = E2EFSClassifier(1, network="auto", cv=3, **QUICK).fit(X, np.abs(X[:, 5]) > 0.7)
    choice = model.selection_.choices["network"]
    assert (choice["reasons"]["additive"], choice["mean"][1], choice["chosen"]) == ("too large", None, "pair search")
    assert model.copy_for(2).network.n_screened == 1  # the columns of the pair search, for any M


def test_a_network_that_is_no_better_is_left_early(monkeypatch, three_true):
    monkeypatch.setattr("tamiz.estimators.chooser.LEAST_EVIDENCE", -np.inf)
    X = three_true[0].copy()
    y = X[:, 0] > 0
    X[:, 0] = y  # a line makes no error: nothing can be better
    choice = E2EFSClassifier(1, network="auto", cv=3, **QUICK).fit(X, y).selection_.choices["network"]
    assert (choice["chosen"], [len(scores) for scores in choice["scores"]]) == ("linear", [1] * 6)
    assert choice["reasons"]["additive"] == "no better than simpler ones"


def test_weights_of_zero_leave_rows_out_of_the_inner_folds(three_true):
    X, y = three_true
    weights, spoiled = np.ones(200), X.copy()
    weights[:40], spoiled[:40] = 0, 1e6
    whole = E2EFSClassifier("auto", cv=3, **QUICK).fit(spoiled, y, sample_weight=weights)
    part = E2EFSClassifier("auto", cv=3, **QUICK).fit(X[40:], y[40:], sample_weight=np.ones(160))
    np.testing.assert_array_equal(whole.cv_results_["mean_test_score"], part.cv_results_["mean_test_score"])


def repeated_patients(seed=0):
    """40 patients with 5 rows each, nearly copies: folds that split a patient tell by the patient, not by the disease."""
    rng = np.random.default_rng(seed)
    patients = np.repeat(np.arange(40), 5)
    y = rng.integers(0, 2, 40)[patients]
    return rng.normal(size=(40, 60))[patients] + 0.05 * rng.normal(size=(200, 60)), y, patients


def test_m_is_chosen_on_new_patients():
    X, y, patients = repeated_patients()
    model = E2EFSClassifier("auto", **QUICK)
    plain, grouped = model.fit(X, y).cv_results_, model.fit(X, y, groups=patients).cv_results_
    assert plain["mean_test_score"].max() > 0.9  # noise, known by heart
    assert grouped["mean_test_score"].max() < 0.75
    assert model.fit(X, y, time=patients).cv_results_["mean_test_score"].max() < 0.75


def test_groups_reach_the_estimator_through_a_pipeline():
    X, y, patients = repeated_patients()
    model, direct = E2EFSClassifier("auto", **QUICK), E2EFSClassifier("auto", **QUICK)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(groups=True)).fit(X, y, groups=patients)
    direct.fit(StandardScaler().fit_transform(X), y, groups=patients)
    np.testing.assert_array_equal(pipeline[-1].cv_results_["mean_test_score"], direct.cv_results_["mean_test_score"])


def test_every_inner_fit_is_reported_and_can_end_the_search(monkeypatch):
    monkeypatch.setattr("tamiz.estimators.chooser.LEAST_EVIDENCE", -np.inf)
    X, y, _ = repeated_patients()
    seen = []
    model = E2EFSClassifier(3, network="auto", training=Training(ramp_steps=100, refinement_epochs=1), cv=2)
    chosen = model.choose(X, y, progress=lambda *report: seen.append(report))
    assert set(chosen.parameters) == {"network"}
    assert seen[-1] == ("network", seen[-1][1], 13)  # six networks on two folds, and one fit on all rows before
    assert sorted(report[1] for report in seen) == [report[1] for report in seen]

    def stop(*_):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        model.choose(X, y, progress=stop)


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
    plain = E2EFSPath(estimator=E2EFSClassifier(**QUICK), cv=None).fit(X[:, :6], y)
    assert plain.n_features_to_select_ == [1, 2, 3, 5, 6]
    assert not hasattr(plain, "best_")
    with pytest.raises(ValueError, match="With cv=None no M is chosen"):
        plain.predict(X)


GROUPS = [0, 0, 1, *range(2, 23)]


@pytest.mark.parametrize(
    "parameters", [{}, {"keep": [1]}, {"drop": [3, 4]}, {"groups": GROUPS}, {"network": "additive"}]
)
def test_one_preparation_serves_several_fits(three_true, parameters):
    X, y = three_true
    prepared = E2EFSClassifier(random_state=0).prepare(X, y)
    before = prepared.table.values.copy()
    for m in (2, 5):
        estimator = E2EFSClassifier(m, **QUICK, **parameters)
        ours, direct = estimator.fit_prepared(prepared), clone(estimator).fit(X, y)
        assert not hasattr(estimator, "selection_")
        assert np.array_equal(ours.ranking_, direct.ranking_)
        assert np.array_equal(ours.decision_function(X), direct.decision_function(X))
    assert np.array_equal(prepared.table.values, before)


def test_a_prepared_fit_chooses_nothing_and_can_be_ended(three_true):
    estimator = E2EFSClassifier(3, **QUICK)
    prepared = estimator.prepare(*three_true)

    def stop(step, n_alive, refined):
        raise TimeoutError(f"after step {step}")

    with pytest.raises(TimeoutError, match="after step"):
        estimator.fit_prepared(prepared, progress=stop)
    for change in ({"n_features_to_select": "auto"}, {"network": "auto"}):
        with pytest.raises(ValueError, match="chooses nothing"):
            clone(estimator).set_params(**change).fit_prepared(prepared)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"variant": "hard"}, {"groups": GROUPS}, {"network": "additive"}, {"random_state": None}],
)
def test_fitted_copies_are_fits_of_their_own(three_true, parameters):
    X, y = three_true
    weights = np.linspace(1, 2, y.size)
    model = E2EFSClassifier(4, **{**QUICK, **parameters}).fit(X, y)
    found = dict(model.fit_copies([1, 7, 3], X, y, sample_weight=weights))
    assert list(found) == [7, 3, 1]
    assert list(model.fit_copies([], X, y)) == []
    for m, ours in found.items():
        assert ours.n_features_to_select_ == m
        if model.random_state is not None:
            direct = model.copy_for(m).fit(X, y, sample_weight=weights)
            assert np.array_equal(ours.ranking_, direct.ranking_)
            assert np.array_equal(ours.decision_function(X), direct.decision_function(X))
            assert ours.get_params() == direct.get_params()
