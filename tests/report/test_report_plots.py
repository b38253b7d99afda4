"""Pictures with matplotlib."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

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
    ax = selection.plot("gamma", ax=mine)
    assert ax is mine
    ends = [line.get_ydata()[-1] for line in ax.get_lines()]
    assert sorted(ends) == [0.0] * 30 + [1.0] * 12
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["left out", "kept"]


def test_what_cannot_be_drawn_is_refused(selection):
    bare = Selection(np.array([True, False]), np.array([1, 2]))
    with pytest.raises(ValueError, match="holds no history of features alive"):
        bare.plot()
    with pytest.raises(ValueError, match="holds no paths of gamma"):
        bare.plot(kind="gamma")
    with pytest.raises(ValueError, match="kind must be 'sieve' or 'gamma', got 'pie'"):
        selection.plot(kind="pie")


def test_without_matplotlib_the_error_says_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from tamiz.selection import Selection
history = {"step": np.array([0, 1]), "n_alive": np.array([2, 1])}
try:
    Selection(np.array([True, False]), np.array([1, 2]), history=history).plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "tamiz[plot]"' in done.stdout
