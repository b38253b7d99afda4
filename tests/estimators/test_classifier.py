from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, Selection, Training

LOSSES = ["squared_hinge", "logistic", "softmax"]


def classifier(m=2, **parameters):
    return E2EFSClassifier(m, **{"random_state": 0, "l2": 0.01, **parameters, "training": Training(ramp_steps=1000)})


@pytest.mark.parametrize("variant", ["soft", "hard", "ranking"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_informative_columns_are_found_and_all_attributes_are_there(table, variant, loss):
    X, y = table
    clf = classifier(variant=variant, loss=loss).fit(X, y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert sorted(clf.ranking_.tolist()) == list(range(1, 31))
    assert clf.gamma_.tolist() == clf.get_support().astype(float).tolist()
    assert isinstance(clf.selection_, Selection)
    assert (clf.coef_.shape, clf.intercept_.shape, clf.decision_function(X).shape) == ((1, 30), (1,), (80,))
    assert clf.n_iter_ == clf.selection_.n_steps > 0
    assert clf.n_features_to_select_ == 2
    assert clf.classes_.tolist() == [0, 1]
    assert clf.score(X, y) > 0.85
    probabilities = clf.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[probabilities.argmax(axis=1)], clf.predict(X))
    if loss == "softmax":  # of two classes it is the logistic function of the score
        np.testing.assert_allclose(probabilities[:, 1], expit(clf.decision_function(X)))


@pytest.mark.parametrize("normalize", ["erf", "erf2", "standard", None])
def test_every_normalisation_finds_them(table, normalize):
    X, y = table
    clf = classifier(normalize=normalize).fit(X, y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert clf.score(X, y) > 0.9
    np.testing.assert_array_equal(clf.transform(X), X[:, [3, 7]])
    back = clf.inverse_transform(clf.transform(X))
    np.testing.assert_array_equal(back, np.where(clf.get_support(), X, 0.0))


@pytest.mark.parametrize("loss", LOSSES)
def test_several_classes_with_names(three_classes, loss):
    X, y = three_classes
    clf = classifier(3, loss=loss).fit(X, y)
    assert clf.get_support(indices=True).tolist() == [2, 5, 9]
    assert (clf.coef_.shape, clf.decision_function(X).shape) == ((3, X.shape[1]), (120, 3))
    assert set(clf.predict(X)) == {"a", "b", "c"}
    assert clf.score(X, y) > 0.85
    probabilities = clf.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[probabilities.argmax(axis=1)], clf.predict(X))


def test_probabilities_of_the_hinge_hold_on_new_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 20))
    y = rng.random(1200) < expit(2 * X[:, 3] - X[:, 7])
    scores = cross_val_score(classifier(l2="auto"), X, y, cv=3, scoring="neg_log_loss")
    plain = cross_val_score(LogisticRegression(), X[:, [3, 7]], y, cv=3, scoring="neg_log_loss")
    assert scores.mean() > plain.mean() - 0.02
    probability = classifier(l2="auto").fit(X[:600], y[:600]).predict_proba(X[600:])[:, 1]
    bins = np.digitize(probability, [0.2, 0.4, 0.6, 0.8])
    seen = [y[600:][bins == i].mean() - probability[bins == i].mean() for i in range(5)]
    assert np.abs(seen).max() < 0.15


def test_the_final_model_of_many_rows_is_a_logistic_regression_of_lines_or_bent_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(4000, 12))
    lines, bent = X[:, :4].sum(axis=1), np.tanh(2 * X[:, :4]).sum(axis=1)
    for effect, expected in ((lines / lines.std(), "standard"), (bent / bent.std(), "erf")):
        y = effect + 0.5 * rng.normal(size=4000) > 0
        models = {
            name: E2EFSClassifier(4, normalize=name, random_state=0).fit(X[:2000], y[:2000]) for name in ("erf", "auto")
        }
        assert (models["auto"].normalize_, models["auto"].loss_) == (expected, "logistic")
        assert (models["auto"].gamma_ == models["erf"].gamma_).all()
        scores = {name: model.score(X[2000:], y[2000:]) for name, model in models.items()}
        assert scores["auto"] - scores["erf"] >= (0.005 if expected == "standard" else 0.0)
        few = E2EFSClassifier(4, random_state=0).fit(X[:500], y[:500])
        assert (few.normalize_, few.loss_) == ("erf", "squared_hinge")


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_of_many_rows_are_those_of_a_logistic_regression(n_classes, as_sparse):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 9))
    centres = np.zeros((n_classes, 9))
    centres[:, :3] = rng.normal(size=(n_classes, 3))
    codes = np.sort(rng.integers(0, n_classes, 4000))  # sorted by class, as tables may be
    X += centres[codes]
    train, y = rng.random(4000) < 0.5, np.array(list("abcd"))[codes]
    table = sp.csr_matrix(X) if as_sparse else X
    clf = E2EFSClassifier(3, random_state=0).fit(table[train], y[train])
    assert clf.get_support(indices=True).tolist() == [0, 1, 2]
    plain = LogisticRegression(class_weight="balanced").fit(X[train][:, :3], y[train])
    assert (
        log_loss(y[~train], clf.predict_proba(table[~train]))
        < log_loss(y[~train], plain.predict_proba(X[~train][:, :3])) + 0.01
    )
    assert (clf.predict(table[~train]) == plain.predict(X[~train][:, :3])).mean() > 0.97


def test_probabilities_of_a_sorted_table_are_those_of_a_shuffled_one():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 22_000)  # what is read of many rows must not be one class
    X = (0.1 + 2 * y)[:, None] * rng.normal(size=(44_000, 3)) + y[:, None] * [1.0, 0.0, 0.0]
    shuffled, clf = rng.permutation(44_000), E2EFSClassifier(1, loss="squared_hinge", random_state=0)
    one, other = (clone(clf).fit(X[rows], y[rows]).predict_proba(X) for rows in (slice(None), shuffled))
    assert np.abs(one - other).max() < 0.03


def test_many_rows_without_a_constant_have_none():
    X = np.random.default_rng(4).normal(size=(1200, 3)) + 1
    clf = E2EFSClassifier(1, training=Training(fit_intercept=False), random_state=0).fit(X, X[:, 0] > 1)
    assert (clf.loss_, clf.intercept_.tolist()) == ("squared_hinge", [0.0])


def test_noise_of_many_rows_is_not_believed():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(1000, 2000)).astype(np.float32), rng.integers(0, 2, 1000)
    clf = E2EFSClassifier(20, random_state=0).fit(X, y)
    assert clf.loss_ == "logistic"
    new = rng.normal(size=(1000, 2000)).astype(np.float32)
    assert log_loss(rng.integers(0, 2, 1000), clf.predict_proba(new)) < np.log(2) + 0.04


def test_noise_is_not_believed_and_signs_stay():
    """10 of 500 columns of noise, 60 rows, 8 tables: a constant has a loss of .69, scores without calibration .79 and more."""
    losses = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(160, 500)), rng.integers(0, 2, 160)
        model = E2EFSClassifier(10, random_state=0).fit(X[:60], y[:60])
        losses.append(log_loss(y[60:], model.predict_proba(X[60:])))
        np.testing.assert_array_equal(model.predict(X), (model.predict_proba(X)[:, 1] > 0.5).astype(int))
    assert np.mean(losses) < 0.85


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_several_labels_a_row(table, loss, as_sparse):
    X, _ = table
    labels = np.column_stack([X[:, 3] > 0, X[:, 7] > 0, X[:, 3] < 0]).astype(int)
    clf = classifier(loss=loss).fit(X, sp.csr_matrix(labels) if as_sparse else labels)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    predicted = clf.predict(X)
    assert set(np.unique(predicted)) == {0, 1}
    assert (predicted == labels).mean() > 0.85
    assert clf.decision_function(X).shape == clf.predict_proba(X).shape == labels.shape


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize("normalize", ["erf", "erf2", "standard", None])
def test_a_sparse_table_gives_what_the_dense_one_gives(make, normalize):
    X = sp.random(100, 60, density=0.3, random_state=0).toarray()
    y = X[:, 3] + X[:, 20] - X[:, 50] > 0.1
    dense = classifier(5, normalize=normalize).fit(X, y)
    sparse_table = make(X)
    before = sparse_table.copy()
    sparse = classifier(5, normalize=normalize).fit(sparse_table, y)
    np.testing.assert_array_equal(sparse.ranking_ <= 5, dense.ranking_ <= 5)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-4)
    assert abs(sparse_table - before).nnz == 0
    # Either kind can be predicted on, whatever the fit saw.
    np.testing.assert_allclose(dense.decision_function(sparse_table), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(sparse.decision_function(X), sparse.decision_function(sparse_table), atol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalize", ["erf", None])
def test_the_table_of_the_user_is_never_written_to(table, order, dtype, normalize):
    X = np.asarray(table[0], dtype=dtype, order=order)
    before = X.copy()
    X.setflags(write=False)
    clf = classifier(normalize=normalize).fit(X, table[1])
    clf.predict(X)
    np.testing.assert_array_equal(X, before)


def test_same_seed_same_result_and_other_seed_other_weights(table):
    X, y = table
    one, two, other = (classifier(5, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.ranking_, two.ranking_)
    assert not np.array_equal(one.coef_, other.coef_)
    assert one.selection_.seed == 1
    state = np.random.RandomState(0)  # is drawn from
    assert len({classifier(random_state=state).fit(X, y).selection_.seed for _ in range(2)}) == 2


@pytest.mark.parametrize("m", [1, 30, 0.1, None])
def test_exactly_so_many_are_kept(table, m):
    clf = classifier(m).fit(*table)
    assert clf.get_support().sum() == {1: 1, 30: 30, 0.1: 3, None: 15}[m] == clf.n_features_to_select_
    if m == 30:
        assert clf.score(*table) > 0.9  # all columns are kept, and the model is trained


def test_class_weights_move_the_border(table):
    X, y = table
    first, second = (classifier(class_weight=weight).fit(X, y).predict(X) for weight in ({0: 100.0}, {1: 100.0}))
    assert first.sum() < y.sum() < second.sum()
    y = np.repeat([0, 1], [180, 20])
    X = np.random.default_rng(0).normal(size=(200, 5))
    X[:, 2] += y
    even, uneven = (classifier(1, class_weight=weight).fit(X, y).predict(X) for weight in ("balanced", None))
    assert even.sum() > uneven.sum() + 20


def test_a_weight_of_zero_is_as_if_the_row_were_not_there(table):
    X, y = table
    weights = np.ones(80)
    weights[::4] = 0
    poisoned = X.copy()
    poisoned[::4] = 1e6
    left_out = classifier().fit(X[weights > 0], y[weights > 0])
    weighted = classifier().fit(poisoned, y, sample_weight=weights)
    np.testing.assert_array_equal(left_out.coef_, weighted.coef_)
    huge = classifier().fit(X, y, sample_weight=np.full(80, 1e300))  # weights count relative to each other
    np.testing.assert_allclose(huge.coef_, classifier().fit(X, y).coef_, atol=1e-6)


def test_data_frames_keep_their_names(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"gene{i}" for i in range(30)])
    clf = classifier().fit(frame, pd.Series(y))
    assert clf.feature_names_in_[3] == "gene3"
    assert clf.get_feature_names_out().tolist() == ["gene3", "gene7"]
    assert sorted(clf.selection_.names) == ["gene3", "gene7"]
    for library, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = clf.set_output(transform=library).transform(frame)
        assert isinstance(out, kind)
        assert list(out.columns) == ["gene3", "gene7"]


def test_pickle_and_clone(table):
    X, y = table
    clf = classifier(loss="logistic").fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    clf.set_params(normalize=None, n_features_to_select=9)  # what counts is the fit
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    blank = clone(clf)
    assert blank.get_params() == clf.get_params()
    with pytest.raises(NotFittedError):
        blank.predict(X)


def test_in_the_middle_and_at_the_end_of_a_pipeline(table):
    X, y = table
    middle = make_pipeline(StandardScaler(), classifier(), LogisticRegression()).fit(X, y)
    assert middle[-1].coef_.shape == (1, 2)
    assert middle.score(X, y) > 0.9
    assert make_pipeline(StandardScaler(), classifier()).fit(X, y).score(X, y) > 0.9


def test_sample_weight_is_routed(table):
    X, y = table
    weights = np.where(np.arange(80) < 40, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        pipeline.fit(X, y, sample_weight=weights)
        result = cross_validate(inner, X, y, cv=2, params={"sample_weight": np.ones(80)})
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(pipeline[-1].coef_, classifier().fit(scaled, y, sample_weight=weights).coef_)
    assert result["test_score"].mean() > 0.8


KINDS = [
    lambda y: np.where(y, "yes", "no"),
    lambda y: y.astype(bool),
    lambda y: y.astype(float),
    lambda y: pd.Series(y, dtype="Int64"),
    lambda y: pd.Categorical(np.where(y, "b", "a")),
    lambda y: np.where(y, "b", "a").astype(object),
    lambda y: pd.Series(np.where(y, "b", "a")),
    lambda y: y.tolist(),
]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_many_kinds(table, kind):
    X, y = table[0], kind(table[1])
    clf = classifier().fit(X, y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert (clf.predict(X) == np.asarray(y)).mean() > 0.9


def test_the_progress_bar_goes_to_stderr(table, capsys):
    classifier(verbose=1).fit(*table)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "selecting 2 of 30" in shown.err
    classifier().fit(*table)
    assert capsys.readouterr().err == ""


def test_importances_are_of_all_columns(table):
    X, y = table
    clf = classifier().fit(X, y)
    assert clf.feature_importances_.shape == (30,)
    assert np.flatnonzero(clf.feature_importances_).tolist() == [3, 7]
    chosen = SelectFromModel(classifier(network="additive"), max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == [3, 7]
    assert np.flatnonzero(clf.coef_).tolist() == [3, 7]
    plain = SelectFromModel(classifier()).fit(X, y)  # takes coef_ where there is one
    assert plain.get_support(indices=True).tolist() == [3, 7]
    assert plain.transform(X).shape == (80, 2)
