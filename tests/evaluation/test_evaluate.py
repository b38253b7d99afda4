"""`evaluate` takes everything that selects, counts columns, and says what it is told in one sentence."""

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.feature_selection import RFE, SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tamiz import E2EFSClassifier, E2EFSPath, StabilitySelection, compare, evaluate, select
from tamiz.baselines import FisherScore
from tamiz.tables import TableEncoder

X, y = (part[:120] for part in load_breast_cancer(return_X_y=True))
X = StandardScaler().fit_transform(X)
FRAME = pandas.DataFrame(X[:, :8].copy(), columns=list("abcdefgh"))
FRAME["colour"] = np.random.default_rng(0).choice(["red", "green", "blue"], 120)
FRAME.loc[3, "a"] = np.nan

SUBJECTS = [  # what is evaluated, on what, model that is scored, columns kept in each fold (None: as the data tell)
    (E2EFSClassifier(3), X, "E2EFSClassifier", 3),
    (E2EFSClassifier(3, groups=np.arange(30) // 3), X, "E2EFSClassifier", 3),
    (E2EFSClassifier(3, keep=[5], drop=[20, 22]), X, "E2EFSClassifier", 3),
    (E2EFSClassifier(budget=4.0, costs=np.linspace(0.5, 2, 30)), X, "E2EFSClassifier", None),
    (E2EFSClassifier("auto"), X, "E2EFSClassifier", None),
    (E2EFSPath([2, 5], estimator=E2EFSClassifier()), X, "E2EFSPath", None),
    (StabilitySelection(FisherScore(n_features_to_select=5), n_resamples=5), X, "LogisticRegression", None),
    (FisherScore(n_features_to_select=4), X, "LogisticRegression", 4),
    (SelectKBest(k=3), X, "LogisticRegression", 3),
    (RFE(LogisticRegression(), n_features_to_select=4, step=0.5), X, "RFE", 4),
    (make_pipeline(VarianceThreshold(0.1), StandardScaler(), SelectKBest(k=4), LinearSVC()), X, "LinearSVC", 4),
    (make_pipeline(StandardScaler(), E2EFSClassifier(3)), X, "E2EFSClassifier", 3),
    (E2EFSClassifier(2, keep=["colour"]), FRAME, "E2EFSClassifier", 2),
    (make_pipeline(TableEncoder(), SelectKBest(k=3)), FRAME, "LogisticRegression", None),
]


@pytest.mark.parametrize(("subject", "table", "model", "kept"), SUBJECTS)
def test_everything_that_selects_can_be_evaluated(subject, table, model, kept):
    found = evaluate(subject, table, y, cv=3, n_random=2, n_permutations=2)
    n_columns = 10 if getattr(subject, "groups", None) is not None else table.shape[1]
    assert found.model == model
    assert len(found.names) == n_columns
    assert all(fold.support.shape == (n_columns,) for fold in found.folds)
    if kept is not None:
        assert [fold.support.sum() for fold in found.folds] == [kept] * 3
    assert found.score.value > 0.75
    assert found.interval("all_features").value > 0.8
    assert found.null.n_permutations == 2
    assert not hasattr(subject, "selection_")  # it was cloned


def test_keep_drop_and_levels_of_a_column_are_respected_in_every_fold():
    forced = evaluate(E2EFSClassifier(2, keep=["colour"], drop=["a"]), FRAME, y, cv=3, n_permutations=0)
    names = forced.names
    for fold in forced.folds:
        assert fold.support[names.index("colour")]
        assert not fold.support[names.index("a")]
        assert len(fold.features) == 4  # three levels and a number
    assert set(forced.effects) >= {8, 9, 10}


WRONG = [  # call, message
    (lambda: evaluate(make_pipeline(StandardScaler(), LinearSVC()), X, y), "no step that selects"),
    (lambda: evaluate(LinearSVC(), X, y), "LinearSVC selects no features"),
    (lambda: evaluate(E2EFSClassifier, X, y), "A selector or a pipeline with one is needed"),
    (lambda: evaluate(make_pipeline(PCA(2), SelectKBest(k=1)), X, y), "'pca' makes 2 columns of 30"),
    (lambda: evaluate(E2EFSClassifier(2, keep=["z"]), FRAME, y), "no column 'z'"),
    (lambda: evaluate(E2EFSClassifier(2), X, y[:50]), "X has 120 rows, but y has 50"),
    (lambda: evaluate(E2EFSClassifier(2), X), "no target"),
    (lambda: evaluate(SelectKBest(k=2), X, y, n_permutations=-1), "n_permutations and n_random must be at least 0"),
    (lambda: evaluate(SelectKBest(k=2), X, y, n_random=-1), "n_random must be at least 0"),
    (lambda: evaluate("fisher", X, y), "A selector or a pipeline with one is needed"),
    (lambda: evaluate(SelectKBest(k=2), X[0], y), "X must be a table with rows and columns"),
    (lambda: evaluate(SelectKBest(k=2), X[:0], y[:0]), "There are no rows"),
    (lambda: evaluate(SelectKBest(k=2), X, np.zeros(120, int)), "one class only"),
    *((lambda cv=cv: evaluate(SelectKBest(k=2), X, y, cv=cv), "cv must be a number") for cv in ("5", True, None, 2.5)),
    (lambda: evaluate(SelectKBest(k=2), X, y, cv=1), "At least 2 folds"),
    (lambda: evaluate(SelectKBest(k=2), X, y, repeats=0), "At least 1 repeat"),
    (lambda: evaluate(SelectKBest(k=2), X, y, scoring="acc"), "Did you mean 'accuracy'"),
    (lambda: evaluate(SelectKBest(k=2), X, y, scoring=3), "scoring must be one of"),
    (lambda: evaluate(SelectKBest(k=2), X, y, sizes=[0]), "sizes must be numbers from 1 to the 30 columns"),
    (lambda: evaluate(SelectKBest(k=2), X, y, sizes=[99]), "sizes must be numbers"),
    (lambda: evaluate(SelectKBest(k=2), X, y, n_jobs=0), "n_jobs must be at least 1"),
    (lambda: evaluate(SelectKBest(k=2), X, y, n_jobs=None), "n_jobs must be at least 1"),
    (lambda: evaluate(SelectKBest(k=2), X, y, random_state=None), "random_state must be a whole number"),
    (lambda: evaluate(SelectKBest(k=2), X, y, groups=y, time=y), "not both"),
    (lambda: evaluate(E2EFSClassifier(99), X, y), "more than the 30 feature"),
    (lambda: evaluate(E2EFSClassifier(2).set_params(training__nope=1), X, y), "Training has no parameter 'nope'"),
    (lambda: compare({}, X, y), "nothing to compare"),
    *(
        (lambda k=k: compare("fisher", X, y, k=k), "k must hold whole numbers from 1 to the 30")
        for k in (0, 99, "a", 0.5, [])
    ),
    (lambda: compare({"x": LogisticRegression()}, X, y, k=2), "selects no features"),
    (lambda: compare({"x": SelectKBest}, X, y, k=2), "A selector or a pipeline with one is needed"),
    (lambda: compare(["fischer"], X, y, k=2), "Did you mean 'fisher'"),
    (lambda: compare(["fisher"], X, X[:, 0], k=2), "'fisher' needs classes"),
    (lambda: compare(["e2efs"], X, y, k=2, network="liner"), "Did you mean 'linear'"),
    (lambda: compare(["fisher"], X, k=2), "There is no target"),
    (lambda: select(FRAME.assign(y=y), "y", "many"), "k must be a number, a fraction or 'auto', got 'many'"),
    (lambda: select(FRAME.assign(y=y), "y", 0), "must be at least 1"),
    (lambda: select(FRAME.assign(y=y), "y", 1.5), "fraction out of range"),
    (lambda: select(FRAME.assign(y=y), "z"), "There is no target 'z'"),
    (lambda: select(FRAME.assign(y=y), "y", 2, loss="hinge"), "'loss' parameter"),
    (lambda: select(FRAME.assign(y=y), "y", 2, variant="sofft"), "'variant' parameter"),
    (lambda: select(FRAME.assign(y=y), "y", 2, training=3), "'training' parameter"),
    (lambda: select(FRAME.assign(y=y), "y", 2, keep=["a"], drop=["a"]), "at odds"),
    (lambda: select(FRAME.assign(y=y), "y", 2, budget=3), "takes the place of k"),
    (lambda: select(FRAME.assign(y=y), "y", 2, missing="mean"), "missing must be"),
    (lambda: select(FRAME.assign(y=y), "y", 2, test="nope.csv", permutations=0, cv=2), "There is no file nope.csv"),
    (lambda: select(FRAME.assign(y=y), "y", 2, task="cluster"), "Unknown task 'cluster'"),
    (lambda: select(FRAME.assign(y=y), "y", 2, n_jobs=0), "n_jobs must be at least 1"),
    (lambda: select(X, "y", 2), "Arrays have no names"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, groups=y[:5]), "groups must have one value"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, time=["1/1/2020"] * 120), "time must hold numbers or dates"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, sample_weight=-np.ones(120)), "sample_weight must hold"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, cv=[(np.arange(5), np.arange(200, 210))]), "beyond the 120"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, cv=[]), "none of them empty"),
    (lambda: evaluate(E2EFSClassifier(2), X, y, cv=[([0, 1], [2])], repeats=2), "repeats needs a number of folds"),
    (lambda: evaluate(E2EFSClassifier(2), X, np.column_stack([y, y])), "Several targets must be numbers"),
    (lambda: evaluate(SelectKBest(k=2), X, y, scoring="mae"), "not for classification"),
    (lambda: evaluate(StabilitySelection(SelectKBest(k=2)), X, y, sizes=[2]), "leave sizes empty"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_what_is_wrong_is_said_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_indices_of_a_users_folds_refer_to_the_rows_as_given():
    """Rows of weight 0 are left out of each part, and no others are scored in their place."""
    weights = np.ones(120)
    weights[:40] = 0.0
    found = evaluate(
        SelectKBest(k=2), X, y, cv=[(np.arange(10, 80), np.arange(30, 90))], sample_weight=weights, n_permutations=0
    )
    train, test = found.splits[0]
    assert train.tolist() == list(range(40, 80))
    assert test.tolist() == list(range(40, 90))
    assert found.held_out.rows.tolist() == test.tolist()


def test_dropped_columns_are_not_among_all():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 6))
    X[:, 0] += 9 * y  # known only after the target
    found = evaluate(E2EFSClassifier(2, drop=[0], random_state=0), X, y, cv=3)
    assert found.interval("all_features").value < 0.8
    assert found.interval("random_features").value < 0.8
