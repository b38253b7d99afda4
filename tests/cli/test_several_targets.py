"""``tamiz select`` with several numeric targets, from the file to the predictions."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from tamiz.cli.errors import EXIT_DATA, EXIT_USAGE
from tamiz.tables.load import load_rows


@pytest.fixture
def frame(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame["height"] = 100 * X[:, 1] + rng.normal(size=60)
    frame["mass"] = X[:, 3] - X[:, 1] + 0.1 * rng.normal(size=60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


@pytest.mark.parametrize("options", [("-k", 2), ("-k", "auto", "--network", "linear")])
def test_from_the_file_to_the_predictions(tamiz, frame, tmp_path, options):
    asked = ("-t", "height,mass", "--folds", 2, "--permutations", 2, "--test", "t.csv", "-o", "run", "--json")
    result = tamiz("select", "t.csv", *asked, *options)
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["targets"] == ["height", "mass"]
    assert {"b", "d"} <= {kept["column"] for kept in record["selected"]}  # neither target is a feature
    assert not {"height", "mass"} & {kept["column"] for kept in record["selected"]}
    assert record["test"]["value"] > 0.8
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "height, mass" in page
    assert "Several targets: the score is over all 2 of them" in page
    for name in ("height", "mass"):
        assert f"Predicted against actual, {name}" in page
    assert (tmp_path / "run" / "reduced.csv").read_text().splitlines()[0].endswith("height,mass")
    result = tamiz("apply", "run/model.tamiz", "t.csv", "-o", "new", "-q")
    assert result.exit_code == 0, result.stderr
    found = pandas.read_csv(tmp_path / "new" / "predictions.csv")
    assert list(found) == ["row", "predicted height", "predicted mass"]
    assert np.corrcoef(found["predicted height"], frame["height"])[0, 1] > 0.9
    assert np.corrcoef(found["predicted mass"], frame["mass"])[0, 1] > 0.9


def test_the_effect_does_not_depend_on_the_units_of_the_targets(tamiz, frame, tmp_path):
    frame.assign(mass=1000 * frame["mass"]).to_csv(tmp_path / "grams.csv", index=False)
    asked = ("-t", "height,mass", "-k", 2, "--folds", 2, "--permutations", 0, "--json")
    first, second = (
        {kept["column"]: kept["weight"] for kept in json.loads(tamiz("select", file, *asked).stdout)["selected"]}
        for file in ("t.csv", "grams.csv")
    )
    assert first == pytest.approx(second, rel=1e-3)


def test_a_column_whose_name_holds_a_comma_goes_first(frame, tmp_path):
    path = tmp_path / "comma.csv"
    frame.rename(columns={"a": "height,mass"}).to_csv(path, index=False)
    rows, names, _ = load_rows(path, "height,mass")
    assert names == ["height,mass"]
    assert rows.y.ndim == 1


def test_rows_numbers_and_decimal_commas_are_read_as_those_of_one_target(frame, tmp_path):
    path = tmp_path / "semicolons.csv"
    frame.loc[3, "height"] = np.nan  # the row goes, as with one target
    frame.to_csv(path, index=False, sep=";", decimal=",")
    rows, names, _ = load_rows(path, "height,8", reading={"decimal": ","})
    assert names == ["height", "mass"]
    np.testing.assert_allclose(rows.y, frame[["height", "mass"]].drop(3), rtol=1e-6)
    assert "mass" not in rows.names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": ["tall", "small"] * 30}, "The target 'height' holds text"),
        ({"mass": "heavy"}, "The column 'mass' holds text; numbers are needed there"),
        ({"mass": 1.0}, "The target 'mass' is constant"),
        ({"mass": [np.nan] + [1.0, 2.0, 3.0] * 19 + [0.5, 0.25]}, "no finite value in 1 rows"),
    ],
)
def test_a_target_that_is_no_column_of_numbers(tamiz, frame, tmp_path, change, message):
    frame.assign(**change).to_csv(tmp_path / "bad.csv", index=False)
    result = tamiz("select", "bad.csv", "-t", "height,mass", "-k", 2)
    assert result.exit_code == (EXIT_USAGE if "height" in change else EXIT_DATA)
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("select", "-t", "height,mas", "-k", 2), "There is no target 'mas' among the 8 columns"),
        (("select", "-t", "height,mass", "-k", 2, "--task", "classification"), "Several targets are numbers"),
        (("select", "-t", "height,mass", "-k", 2, "--groups", "mass"), "--groups names the target 'mass' itself"),
        (("select", "-t", "height,height", "-k", 2), "--target names 'height' twice"),
        (("select", "-t", "height", "-t", "mass", "-t", "height", "-k", 2), "--target names 'height' twice"),
        (("select", "-t", "height", "-t", "7", "-k", 2), "--target names 'height' twice"),
        (("compare", "-t", "height", "-t", "8", "-t", "mass", "-k", 2), "--target names 'mass' twice"),
        (("compare", "-t", "height", "-t", "mass", "-k", 2, "--task", "classification"), "Several targets are numbers"),
        (("compare", "-t", "height,mass", "-k", 2, "-m", "fisher"), "'fisher' needs classes"),
        (("pairs", "-t", "height", "-t", "mass"), "pairs takes one target"),
        (("serve", "-t", "height", "-t", "mass"), "serve takes one target"),
    ],
)
def test_wrong_use_is_an_error(tamiz, frame, arguments, message):
    command, *options = arguments
    result = tamiz(command, "t.csv", *options)
    assert result.exit_code == EXIT_USAGE
    assert message in " ".join(result.stderr.split())


def test_the_option_may_be_repeated(tamiz, frame):
    asked = ("-k", 2, "--folds", 2, "--permutations", 0, "--json")
    found = [
        json.loads(tamiz("select", "t.csv", *targets, *asked).stdout)
        for targets in (("-t", "height,mass"), ("--target", "height", "--target", "mass"))
    ]
    assert found[0]["targets"] == found[1]["targets"] == ["height", "mass"]
    assert found[0]["selected"] == found[1]["selected"]
    assert found[0]["scores"] == found[1]["scores"]


def test_repeated_targets_may_hold_commas(frame, tmp_path):
    path = tmp_path / "comma.csv"
    frame.rename(columns={"mass": "mass, in g"}).to_csv(path, index=False)
    rows, names, _ = load_rows(path, ["height", "mass, in g"])
    assert names == ["height", "mass, in g"]
    np.testing.assert_allclose(rows.y, frame[["height", "mass"]], rtol=1e-6)


def test_methods_are_compared_on_several_targets(tamiz, frame, tmp_path):
    asked = ("-k", "1,2", "-m", "e2efs-soft,lasso,relieff,random,all", "--folds", 3, "-o", "run", "--json")
    result = tamiz("compare", "t.csv", "-t", "height", "-t", "mass", *asked)
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["target"] == "height, mass"
    assert not record["failures"]
    scores = {(one["method"], one["k"]): one["score"] for one in record["results"]}
    for method in ("e2efs-soft", "lasso", "relieff", "all"):  # height is b, mass is d - b: both take two columns
        assert scores[method, 2] > 0.9, method
    assert scores["random", 2] < 0.8
    assert "height, mass" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
