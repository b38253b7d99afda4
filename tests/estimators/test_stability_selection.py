"""Stability selection: the bound by hand, exact complementary halves, and the interface of scikit-learn."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectKBest, SelectorMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import E2EFSClassifier, StabilitySelection, TableEncoder, Training
from tamiz.baselines import FisherScore, Lasso
from tamiz.estimators.stability import false_selection_factor


class Correlation(SelectorMixin, BaseEstimator):
    """Keep the M columns that correlate with the target most; fast."""

    def __init__(self, m=5):
        self.m = m

    def fit(self, X, y):
        centred = X - X.mean(axis=0)
        scores = np.abs(centred.T @ (y - y.mean())) / np.linalg.norm(centred, axis=0)
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[np.argsort(-scores)[: self.m]] = True
        return self

    def _get_support_mask(self):
        return self.support_


@parametrize_with_checks(
    [StabilitySelection(SelectKBest(k=1), n_resamples=4, max_false=10.0, assumption="none", random_state=0)],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_bound_by_hand():
    # Theorem 2 of Shah and Samworth: 1 / (2 (2 tau - 1 - 1/(2B))) up to 3/4, 4 (1 - tau + 1/(2B)) / (1 + 1/B) above.
    assert false_selection_factor(0.7, 50) == pytest.approx(1 / (2 * (0.4 - 0.01)))
    assert false_selection_factor(0.95, 50) == pytest.approx(4 * 0.06 / 1.02)
    assert false_selection_factor(0.5, 50) == np.inf
    X = np.random.default_rng(0).normal(size=(60, 100))
    found = StabilitySelection(Correlation(10), max_false=0.5, random_state=0).fit(X, X[:, 0])
    assert found.n_selected_per_half_ == 10
    assert found.max_false_ == pytest.approx(false_selection_factor(found.threshold_, 50) * 10**2 / 100)
    assert found.max_false_ <= 0.5 < false_selection_factor(found.threshold_ - 0.01, 50)


def test_a_column_of_an_encoded_table_counts_once():
    """The levels of a category counted as columns, so that halves kept one or another of them and not all."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(200, 12))).add_prefix("c")
    frame["colour"] = random.choice(["red", "green", "blue", "grey"], 200)
    y = frame["colour"].isin(["red", "green"]) ^ (random.random(200) < 0.1)
    selector = E2EFSClassifier(1, training=Training(ramp_steps=1000))
    found = make_pipeline(TableEncoder(), StabilitySelection(selector, n_resamples=3, random_state=0)).fit(frame, y)[-1]
    assert found.n_selected_per_half_ == 1
    assert found.probabilities_.tolist() == [0.0] * 12 + [1.0] * 4
    assert found.get_support(indices=True).tolist() == [12, 13, 14, 15]
    assert found.max_false_ == pytest.approx(false_selection_factor(found.threshold_, 3) / 13)


def test_halves_are_complementary_and_share_the_classes():
    seen = []

    class Watch(Correlation):
        def fit(self, X, y):
            seen.append((X[:, 0].astype(int), y))
            return super().fit(X, y)

    X = np.random.default_rng(0).normal(size=(41, 30))
    X[:, 0] = np.arange(41)
    y = np.array([0] * 31 + [1] * 10)
    StabilitySelection(Watch(2), n_resamples=3, random_state=0).fit(X, y)
    assert len(seen) == 6
    for (first, y_first), (second, y_second) in zip(seen[::2], seen[1::2]):
        assert len(first) == len(second) == 20
        assert not set(first) & set(second)
        assert (y_first.sum(), y_second.sum()) == (5, 5)  # the odd row is one of the larger class


def test_the_expected_number_of_false_columns_stays_below_the_bound():
    false, true = [], []
    for seed in range(25):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(80, 100))
        y = X[:, :4].sum(axis=1) + generator.normal(size=80)
        support = StabilitySelection(Correlation(10), n_resamples=25, random_state=seed).fit(X, y).get_support()
        false.append(support[4:].sum())
        true.append(support[:4].sum())
    assert np.mean(false) <= 1.0
    assert np.mean(true) > 2.5


def test_names_pipeline_sparse_and_our_own_estimators():
    pandas = pytest.importorskip("pandas")
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 40)).astype(np.float32)
    y = np.where(X[:, 3] > 0, "ill", "well")
    frame = pandas.DataFrame(X, columns=[f"gene {i}" for i in range(40)])
    found = StabilitySelection(FisherScore(n_features_to_select=3), n_resamples=5, random_state=0).fit(frame, y)
    assert "gene 3" in found.get_feature_names_out().tolist()
    assert found.ranking_[3] == 1
    assert found.transform(frame).shape[1] == found.get_support().sum()
    own = StabilitySelection(
        E2EFSClassifier(3, training=Training(ramp_steps=300)), n_resamples=2, max_false=2, random_state=0
    )
    assert make_pipeline(own, E2EFSClassifier(1)).fit(X, y).predict(X).shape == (60,)
    sparse = StabilitySelection(Lasso(n_features_to_select=3), n_resamples=3, max_false=2, random_state=0)
    assert sparse.fit(sp.csr_matrix(X), y).get_support()[3]


@pytest.mark.parametrize("backend", ["jobs", "dask"])
def test_the_same_seed_gives_the_same_result_wherever_fits_run(backend):
    X = np.random.default_rng(0).normal(size=(50, 30))

    def fit(n_jobs=None):
        found = StabilitySelection(FisherScore(3), n_resamples=3, n_jobs=n_jobs, random_state=3).fit(X, X[:, 0] > 0)
        return found.probabilities_.tolist()

    if backend == "jobs":
        assert fit(2) == fit(1)
        return
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        there = fit()
    assert there == fit()


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (Correlation(25), {}, "too many for a bound"),
        (Correlation(15), {"n_resamples": 2, "max_false": 0.01}, "Let the selector keep 0 columns or fewer"),
        (Correlation(2), {"n_resamples": 1}, "n_resamples"),
        (Correlation(2), {"max_false": 0}, "max_false"),
        (None, {}, "estimator"),
        (FisherScore(1), {"y": [0] * 29 + [1]}, "at least two rows"),
    ],
)
def test_bad_parameters(estimator, parameters, message):
    X = np.random.default_rng(0).normal(size=(30, 30))
    given = {"y": X[:, 0], **parameters}
    y = given.pop("y")
    with pytest.raises(ValueError, match=message):
        StabilitySelection(estimator, **given).fit(X, y)
