"""Pictures with matplotlib, from the same descriptions as the page."""

from __future__ import annotations

import dataclasses

import matplotlib
import numpy as np
import pytest

from tamiz import E2EFSClassifier
from tamiz._utils.pictures import Lines, Series, draw
from tamiz.selection import Selection

matplotlib.use("Agg")
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def test_how_the_run_went(selection):
    sieve = selection.plot()
    assert (sieve.get_xlabel(), sieve.get_ylabel(), sieve.get_yscale()) == ("training step", "features alive", "log")
    assert sieve.get_lines()[0].get_ydata()[-1] == 12
    assert selection.plot("loss").get_lines()[0].get_ydata() == pytest.approx(selection.history["loss"])
    _, mine = pyplot.subplots()
    paths = selection.plot("path", ax=mine)
    assert paths is mine
    assert sorted(line.get_ydata()[-1] for line in paths.get_lines()) == [0.0] * 30 + [1.0] * 12
    assert [t.get_text() for t in paths.get_legend().get_texts()] == ["left out", "kept"]
    for ax in (sieve, paths):
        ax.figure.canvas.draw()


def test_kept_columns(selection, table, genes):
    X, y = table
    contribution = np.zeros(selection.n_features)
    contribution[selection.ordered] = np.linspace(2, 1, 12)
    bars = dataclasses.replace(selection, contribution=contribution).plot("importance")
    assert [patch.get_width() for patch in bars.patches] == pytest.approx(np.linspace(2, 1, 12))
    assert selection.plot("heatmap", X, y).images[0].get_array().shape == (12, 120)
    both = selection.plot("correlation", X)
    assert np.allclose(np.diag(both.images[0].get_array()), 1.0)
    assert {t.get_text() for t in both.get_yticklabels()} == set(selection.names)
    folds = genes.selection.plot("stability", evaluation=genes.evaluation)
    assert folds.images[0].get_array().shape[1] == 5


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("sieve", "kind='sieve' needs a recorded history"),
        ("path", "kind='path' needs recorded paths of gamma"),
        ("importance", "kind='importance' needs a contribution"),
        ("heatmap", "kind='heatmap' needs X"),
        ("stability", "kind='stability' needs evaluation="),
        ("effects", "fit with network='additive'"),
        ("pie", r"kind must be one of 'sieve', .* got 'pie'"),
    ],
)
def test_what_a_kind_needs_is_named(kind, message):
    with pytest.raises(ValueError, match=message):
        Selection(np.array([True, False]), np.array([1, 2])).plot(kind)


def test_lines_are_drawn_with_all_their_parts():
    points, ends = np.array([1.0, 2.0]), np.array([0.5, 1.5])
    points_alone, grey = (Series(name, points, points, style=style) for name, style in (("b", "points"), ("c", "grey")))
    series = [Series("a", points, points, ends, points + 1), points_alone, grey]
    around = {"levels": [("chance", 0.5)], "chosen": ("M = 2", 2.0), "diagonal": True, "top": 9.0}
    ax = draw(Lines("t", "x", "y", series, log_x=True, log_y=True, **around))
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"a", "b", "c", "chance", "M = 2"}
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylim()[1]) == ("log", "log", 9.0)
    band = draw(Lines("t", "x", "y", series[:1], band=True))
    assert len(band.collections) == 1


def test_effects_shows_a_curve_for_each_kept_column_in_its_own_units():
    rng = np.random.default_rng(0)
    X = rng.uniform(100, 300, size=(300, 6))
    y = np.abs(X[:, 2] - 200) > 50  # matters at both ends
    clf = E2EFSClassifier(2, network="additive", random_state=0).fit(X, y)
    axes = clf.selection_.plot("effects")
    names = [ax.get_xlabel() for ax in axes.flat]
    assert sorted(names) == [f"x{i}" for i in clf.get_support(indices=True)]
    line = axes.flat[names.index("x2")].get_lines()[0]
    grid, curve = line.get_data()
    low, high = X[:, 2].min(), X[:, 2].max()
    assert low * 0.95 <= grid[0] < grid[-1] <= high * 1.05
    # What the curve shows is what the model adds.
    moved = np.repeat(X[:1], 2, axis=0)
    moved[:, 2] = grid[[10, 40]]
    assert np.diff(clf.decision_function(moved))[0] == pytest.approx(curve[40] - curve[10], abs=1e-3)
    with pytest.raises(ValueError, match="2 curves to draw, and 1 axes"):
        clf.selection_.plot("effects", ax=axes.flat[0])
