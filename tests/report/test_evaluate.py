"""`report` with folds and with images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.baselines import FisherScore
from tamiz.evaluation.null import Null
from tamiz.report import report, select_report
from tamiz.report.evaluate import evaluate_estimator


@pytest.fixture(scope="module")
def two_classes():
    X = np.random.default_rng(0).normal(size=(80, 12))
    y = np.where(X[:, 3] - X[:, 5] > 0, "up", "down")
    return E2EFSClassifier(n_features_to_select=2, random_state=0).fit(X, y), X, y


def test_folds_give_scores_curves_and_sets(two_classes, tmp_path):
    clf, X, y = two_classes
    data = select_report(clf, X, y, cv=3)
    assert data.scores.n_folds == 3
    assert data.scores.chance == 0.5
    assert data.scores.kept.value > 0.8
    assert data.fold_grid.chosen.shape[1] == 3
    assert data.held_out.rows.size == 80
    assert sum(map(sum, data.confusion.counts)) == 80
    assert len(data.projections) == 2
    assert {entry.n_features for entry in data.kept_sets} | {2} == {p.n_features for p in data.curve.points}
    for entry in data.kept_sets:
        by_rank = np.argsort(clf.selection_.ranking)[: entry.n_features]
        assert set(entry.columns) == set(by_rank.tolist())
        assert list(map(abs, entry.effects)) == sorted(map(abs, entry.effects), reverse=True)
    contributions = [abs(kept.effect) for kept in data.kept]
    assert contributions == sorted(contributions, reverse=True)
    assert all(len(kept.fold_effects) == round(3 * kept.fold_share) for kept in data.kept)
    path = report(clf, X, y, cv=3, path=tmp_path / "r.html")
    assert 'id="m-slider"' in path.read_text(encoding="utf-8")


def test_null_and_verdict_of_an_evaluation_are_shown(two_classes):
    clf, X, y = two_classes
    evaluation, folds, _ = evaluate_estimator(clf, X, y, "classification", 3)
    plain = select_report(clf, X, y, evaluation=evaluation, folds=folds)
    assert (plain.scores.p_value, plain.stability.null, plain.verdict) == (None, None, evaluation.verdict)
    null = Null(np.array([0.4, 0.5]), np.array([0.2, 0.2]), np.array([0, 1]), 0.04)
    tried = replace(evaluation, null=null)
    data = select_report(clf, X, y, evaluation=tried, folds=folds)
    assert (data.scores.p_value, data.stability.null, data.verdict) == (0.04, 0.2, tried.verdict)
    assert "p <= 0.04" in tried.verdict
    assert select_report(clf, X, y, evaluation=tried, folds=folds, verdict="Mine.").verdict == "Mine."


def test_a_splitter_and_numbers(tmp_path):
    X = np.random.default_rng(1).normal(size=(60, 6))
    y = 3 * X[:, 2] + 0.1 * X[:, 0]
    model = E2EFSRegressor(n_features_to_select=1, random_state=0).fit(X, y)
    data = select_report(model, X, y, cv=KFold(4), target="dose")
    assert data.scores.metric == "R²"
    assert data.residuals.actual == pytest.approx(y.tolist())
    text = report(data, path=tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Mean absolute error" in text
    assert "(dose)" in text
    assert "higher → more dose" in text


def test_images_show_masks_instead_of_distributions(tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    clf = E2EFSClassifier(n_features_to_select=8, random_state=0).fit(X, y)
    data = select_report(clf, X, y, image_shape=(8, 8))
    assert (data.image.height, data.image.width, len(data.class_images)) == (8, 8, 10)
    text = report(data, path=tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count('class="kept-pixels"') == 11
    assert 'id="spread"' not in text
    assert len(data.kept[0].class_effects) == 10
    assert text.count('class="bar cells"') == 8
    with pytest.raises(ValueError, match=r"image_shape \(28, 28\) holds 784 pixels, the selection 64"):
        select_report(clf, X, y, image_shape=(28, 28))


def test_what_cannot_be_cross_validated(two_classes):
    clf, X, y = two_classes
    with pytest.raises(ValueError, match="cv needs X and y"):
        select_report(clf, cv=3)
    fisher = FisherScore(n_features_to_select=2).fit(X, y)
    with pytest.raises(ValueError, match="cv needs an estimator that predicts"):
        select_report(fisher, X, y, cv=3)
