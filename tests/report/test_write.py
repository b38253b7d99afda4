"""`report`: sources, files and refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from tamiz.report import report, select_report
from tamiz.selection import Selection


class Picker(ClassifierMixin, BaseEstimator):
    """Keeps the first columns: an estimator as the report sees one."""

    def __init__(self, n_features_to_select=2, scaler=None):
        self.n_features_to_select = n_features_to_select
        self.scaler = scaler

    def fit(self, X, y):
        ranking = np.arange(1, X.shape[1] + 1)
        self.selection_ = Selection(ranking <= self.n_features_to_select, ranking, seed=3)
        self.classes_ = np.unique(y)
        self.coef_ = np.linspace(-1, 1, X.shape[1])[None, :]
        return self


@pytest.fixture
def fitted():
    X = np.random.default_rng(0).standard_normal((20, 5))
    y = np.arange(20) % 2
    return Picker(scaler=BaseEstimator()).fit(X, y), X, y


def test_a_fitted_estimator_brings_weights_and_settings(fitted, tmp_path):
    picker, X, y = fitted
    data = select_report(picker, X, y)
    assert (data.title, data.task, data.n_rows, data.seed) == ("Picker", "classification", 20, 3)
    assert [k.effect for k in data.kept] == [-1.0, -0.5]
    assert data.effect_name == "weight in the model; above zero it speaks for 1"
    assert data.settings == {"n_features_to_select": 2, "scaler": "BaseEstimator()"}
    path = report(picker, X, y, path=str(tmp_path / "r.html"), title="Mine", notes=["said aloud"])
    text = path.read_text(encoding="utf-8")
    assert "<bdi>Mine</bdi>" in text
    assert "said aloud" in text


def test_weights_come_with_a_caution_and_other_effects_do_not(fitted, tmp_path):
    picker, X, y = fitted
    said = "The weights come from the rows that selected the columns, so expect smaller effects on new rows."
    assert said in report(picker, X, y, path=tmp_path / "weights.html").read_text(encoding="utf-8")
    measured = report(picker.selection_, X, y, path=tmp_path / "measured.html").read_text(encoding="utf-8")
    assert "Effect: <bdi>" in measured
    assert said not in measured


def test_a_file_is_replaced_whole_and_nothing_else_is_left(selection, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    report(selection, path=path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["r.html"]


def test_a_failed_write_leaves_the_old_file(selection, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="task must be"):
        report(selection, path=path, task="clustering")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["r.html"])


def test_paths_that_cannot_be_written(selection, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        report(selection, path=tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        report(selection, path=tmp_path / "none" / "r.html")


def test_sources_that_hold_no_selection(select_data, tmp_path):
    with pytest.raises(TypeError, match=r"got Picker\. Call fit first\."):
        report(Picker(), path=tmp_path / "r.html")
    with pytest.raises(TypeError, match=r"got int\.$"):
        report(3, path=tmp_path / "r.html")
    with pytest.raises(ValueError, match="A ready record holds all the page shows"):
        report(select_data, path=tmp_path / "r.html", title="other")


def test_what_does_not_fit_is_refused(fitted):
    picker, X, y = fitted
    with pytest.raises(ValueError, match="y was given without X"):
        select_report(picker, y=y)
    with pytest.raises(ValueError, match="there are 1 effects for 2 kept features"):
        select_report(picker, effects=[0.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        select_report(picker, X, y[:3])


@pytest.mark.parametrize("safe", [True, False])
def test_the_switch_for_spreadsheets_starts_as_asked(selection, tmp_path, safe):
    text = report(selection, path=tmp_path / "r.html", spreadsheet_safe=safe).read_text(encoding="utf-8")
    assert ('id="safe" checked' in text) == safe


def test_importing_tamiz_loads_neither_the_report_nor_matplotlib():
    code = (
        "import sys, tamiz, tamiz.selection;"
        "print(sorted({'tamiz.report', 'matplotlib', 'jinja2', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_report_loads_neither_matplotlib_nor_torch():
    code = "import sys, tamiz.report; print(sorted({'matplotlib', 'jinja2', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
