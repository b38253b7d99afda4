"""Choices that a page leaves to the data: those of the estimator and of the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import datasets
from typer.testing import CliRunner

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.cli.main import app
from tamiz.serve.fits import Wish, decide_wish, fit_wish
from tamiz.serve.jobs import JobCancelled
from tamiz.serve.session import LiveTable


@pytest.fixture(scope="module")
def data(small_file):
    return LiveTable(small_file).with_target("ill")


def test_what_is_decided_stays(data):
    wish = Wish(3, "ill")
    assert decide_wish(data, wish) == (wish, None)


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "iris", "diabetes", "noise"])
def test_estimator_command_and_page_choose_the_same_m(name, tmp_path):
    random = np.random.default_rng(0)
    if name == "noise":
        X, y = random.normal(size=(90, 12)), np.arange(90) % 2
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    labels = y if name == "diabetes" else [f"class {one}" for one in y]
    file = tmp_path / "table.csv"
    lines = [",".join([*(f"c{i}" for i in range(X.shape[1])), "y"])]
    lines += [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(X, labels, strict=True)]
    file.write_text("\n".join(lines))
    data = LiveTable(file).with_target("y")
    decided, said = decide_wish(data, Wish("auto", "y"))
    make = E2EFSRegressor if name == "diabetes" else E2EFSClassifier
    estimator = make("auto", random_state=0).fit(data.X, data.y)
    assert decided.n_features_to_select == said["m"] == estimator.n_features_to_select_
    assert fit_wish(data, decided).get_support().tolist() == estimator.get_support().tolist()
    options = ["--target", "y", "-k", "auto", "--folds", "2", "--permutations", "0", "--json", "--jobs", "1"]
    result = CliRunner().invoke(app, ["select", str(file), *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    kept = {one["feature"] for one in json.loads(result.stdout)["selected"]}
    assert kept == {f"c{i}" for i in estimator.get_support(indices=True)}


def test_forced_columns_bound_m(data):
    decided, _ = decide_wish(data, Wish("auto", "ill", keep=("gene 0", "gene 1", "gene 3"), drop=("gene 2",)))
    assert 3 <= decided.n_features_to_select <= 11


@pytest.mark.parametrize("wish", [Wish("auto", "ill"), Wish(2, "ill", "auto")])
def test_a_choice_ends_when_it_is_no_longer_wanted(data, wish):
    calls = []

    def check(*_):
        calls.append(1)
        if len(calls) > 20:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        decide_wish(data, wish, check)
    assert len(calls) == 21
