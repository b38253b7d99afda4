"""``tamiz select`` with columns of categories as units, forced columns, budgets and indicators of missing numbers."""

import csv
import json

import numpy as np
import pytest


@pytest.fixture
def colours_csv(write_csv):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 90)
    age = rng.normal(size=90)
    ill = np.where(age + 2 * (colour == "red") - 1 + 0.3 * rng.normal(size=90) > 0, "yes", "no")
    lines = [
        f"{'' if i % 9 == 0 else round(age[i], 3)},{round(rng.normal(), 3)},{colour[i]},{round(rng.normal(), 3)},{ill[i]}"
        for i in range(90)
    ]
    return write_csv("\n".join(["age,dose,colour,noise,ill", *lines, ""]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["-k", 2, "--keep", "colour", "--drop", "colour"], "'colour'"),
        (["-k", 2, "--keep", "age", "--keep", "dose", "--keep", "colour"], "keep"),
        (["-k", 5], "-k=5 is more than the 4 feature"),
        (["-k", 2, "--keep", "ill"], "column 'ill' is not among the features"),
    ],
)
def test_what_is_wrong_is_reported(tamiz, colours_csv, given, message):
    result = tamiz("select", colours_csv, "-t", "ill", *given)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())


def test_k_counts_columns_of_the_file(tamiz, colours_csv, tmp_path):
    result = tamiz("select", colours_csv, "--target", "ill", "-k", 2, "--folds", 2, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    record = json.loads((tmp_path / "out" / "selected.json").read_text())
    assert (record["k"], record["n_features"]) == (2, 4)
    assert {row["column"] for row in record["selected"]} == {"age", "colour"}
    assert {len(row["levels"]) for row in record["selected"]} == {0, 3}
    assert (tmp_path / "out" / "reduced.csv").read_text().splitlines()[0] == "age,colour,ill"


def test_keep_drop_and_indicators_and_the_model_applies(tamiz, colours_csv, tmp_path):
    out = tmp_path / "out"
    result = tamiz(
        "select", colours_csv, "--target", "ill", "-k", 3, "--keep", "age", "--drop", "noise",
        "--missing", "indicator", "--folds", 2, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    record = json.loads((out / "selected.json").read_text())
    assert {row["column"] for row in record["selected"]} == {"age", "dose", "colour"}
    applied = tamiz("apply", out / "model.tamiz", colours_csv, "--out", tmp_path / "applied")
    assert applied.exit_code == 0, applied.stderr
    with open(tmp_path / "applied" / "predictions.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 90


def test_the_pair_network_with_categories_and_missing_numbers(tamiz, colours_csv, tmp_path):
    out = tmp_path / "out"
    result = tamiz(
        "select", colours_csv, "--target", "ill", "--network", "pairs", "--missing", "indicator", "-k", 2, "--folds", 2,
        "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    record = json.loads((out / "selected.json").read_text())
    assert {row["column"] for row in record["selected"]} == {"age", "colour"}
    applied = tamiz("apply", out / "model.tamiz", colours_csv, "--out", tmp_path / "applied")
    assert applied.exit_code == 0, applied.stderr
    with open(colours_csv, newline="") as file, open(tmp_path / "applied" / "predictions.csv", newline="") as found:
        truth, predicted = (list(csv.DictReader(part)) for part in (file, found))
    name = next(name for name in predicted[0] if "predict" in name)
    assert np.mean([one["ill"] == other[name] for one, other in zip(truth, predicted)]) > 0.8
