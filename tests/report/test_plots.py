"""Pictures with matplotlib."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

from tamiz import E2EFSClassifier, Training
from tamiz.report import select_report
from tamiz.report.evaluate import evaluate_estimator
from tamiz.selection import Selection

matplotlib.use("Agg")
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def test_sieve_shows_features_alive_and_loss(selection):
    ax = selection.plot()
    alive = ax.get_lines()[0]
    assert np.array_equal(alive.get_ydata(), selection.history["n_alive"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("training step", "features alive", "log")
    twin = next(other for other in ax.figure.axes if other is not ax)
    assert np.array_equal(twin.get_lines()[0].get_ydata(), selection.history["loss"])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["features alive", "M = 12", "loss"]
    ax.figure.canvas.draw()


def test_gamma_shows_kept_and_dropped_paths(selection):
    _, mine = pyplot.subplots()
    ax = selection.plot("path", ax=mine)
    assert ax is mine
    ends = [line.get_ydata()[-1] for line in ax.get_lines()]
    assert sorted(ends) == [0.0] * 30 + [1.0] * 12
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["left out", "kept"]


def test_what_cannot_be_drawn_is_refused(selection):
    bare = Selection(np.array([True, False]), np.array([1, 2]))
    with pytest.raises(ValueError, match="holds no history of features alive"):
        bare.plot()
    with pytest.raises(ValueError, match="holds no paths of gamma"):
        bare.plot(kind="path")
    with pytest.raises(ValueError, match=r"kind must be one of 'sieve', 'path', .* got 'pie'"):
        selection.plot(kind="pie")


def test_importance_heatmap_and_correlation(selection, table):
    X, y = table
    bars = selection.plot("importance", X, y)
    data = select_report(selection, X, y)
    assert [patch.get_width() for patch in bars.patches] == pytest.approx([kept.effect for kept in data.kept])
    assert [t.get_text() for t in bars.get_yticklabels()] == selection.names
    heat = selection.plot("heatmap", X, y)
    assert heat.images[0].get_array().shape == (12, 120)
    both = selection.plot("correlation", X)
    assert np.allclose(np.diag(both.images[0].get_array()), 1.0)
    assert {t.get_text() for t in both.get_yticklabels()} == set(selection.names)
    for ax in (bars, heat, both):
        ax.figure.canvas.draw()


def test_stability_shows_the_folds():
    X, y = load_iris(return_X_y=True)
    clf = E2EFSClassifier(n_features_to_select=2, random_state=0).fit(X, y)
    evaluation, _, _ = evaluate_estimator(clf, X, y, "classification", 3)
    ax = clf.selection_.plot("stability", evaluation=evaluation)
    assert ax.images[0].get_array().shape[1] == 3
    weights = clf.selection_.plot("importance", estimator=clf)
    assert len(weights.patches) == 2


def test_what_a_kind_needs_is_named(selection):
    with pytest.raises(ValueError, match="needs estimator= "):
        selection.plot("importance")
    with pytest.raises(ValueError, match="kind='heatmap' needs X"):
        selection.plot("heatmap")
    with pytest.raises(ValueError, match="kind='stability' needs evaluation="):
        selection.plot("stability")


def test_without_matplotlib_the_error_says_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from tamiz import E2EFSClassifier
from tamiz.selection import Selection
history = {"step": np.array([0, 1]), "n_alive": np.array([2, 1])}
try:
    Selection(np.array([True, False]), np.array([1, 2]), history=history).plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "tamiz[plot]"' in done.stdout


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
def test_effects_shows_a_curve_for_each_kept_column_in_its_own_units(normalize):
    rng = np.random.default_rng(0)
    X = rng.uniform(100, 300, size=(300, 6))
    y = np.abs(X[:, 2] - 200) > 50  # matters at both ends
    options = {"training": Training(ramp_steps=500, refinement_epochs=5), "random_state": 0}
    if normalize is None:
        X = X / 100
    clf = E2EFSClassifier(2, network="additive", normalize=normalize, **options).fit(X, y)
    axes = clf.selection_.plot("effects")
    assert axes.size == 2
    names = [ax.get_xlabel() for ax in axes.flat]
    assert sorted(names) == [f"x{i}" for i in clf.get_support(indices=True)]
    (line, _) = axes.flat[names.index("x2")].get_lines()
    grid, curve = line.get_data()
    low, high = X[:, 2].min(), X[:, 2].max()
    assert low * 0.95 <= grid[0] < grid[-1] <= high * 1.05
    middle = curve[np.argmin(np.abs(grid - (low + high) / 2))]
    assert min(curve[0], curve[-1]) > middle
    # What the curve says is what the model adds.
    moved = np.repeat(X[:1], 2, axis=0)
    moved[:, 2] = grid[[10, 40]]
    difference = np.diff(clf.decision_function(moved))[0]
    assert difference == pytest.approx(curve[40] - curve[10], abs=1e-3)


def test_effects_need_curves(selection):
    with pytest.raises(ValueError, match="no curves; fit with network='additive'"):
        selection.plot("effects")
