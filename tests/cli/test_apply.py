"""``tamiz apply``, after ``tamiz select``."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.cli.errors import EXIT_DATA, EXIT_OUTPUT
from tamiz.persistence import save_model


@pytest.fixture
def model(tamiz, small_csv, tmp_path):
    assert tamiz("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2, "-o", "run", "-q").exit_code == 0
    return tmp_path / "run" / "model.tamiz"


def test_predicts_new_rows_as_the_estimator_does(tamiz, model, small_csv, small_table, tmp_path, write_csv):
    _, y, names = small_table
    fresh = np.random.default_rng(5).normal(size=(25, 8)).astype(np.float32)
    order = [7, 5, 0, 2]  # other columns, another order, no target
    lines = [",".join(names[i] for i in order)] + [",".join(repr(float(v)) for v in row[order]) for row in fresh]
    path = write_csv("\n".join(lines) + "\n", "new.csv")
    result = tamiz("apply", model, path, "--json")
    assert result.exit_code == 0, result.stderr
    stored = np.loadtxt(small_csv, delimiter=",", skiprows=1, usecols=range(8), dtype=np.float32)
    labels = np.where(y, "yes", "no")
    estimator = E2EFSClassifier(2, class_weight="balanced", random_state=0).fit(stored, labels)
    assert json.loads(result.stdout)["predictions"] == estimator.predict(fresh).tolist()
    with open(tmp_path / "tamiz-apply-new" / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["predicted ill"] for row in rows] == estimator.predict(fresh).tolist()
    scores = np.array([float(row["probability of yes"]) for row in rows])
    np.testing.assert_allclose(scores, estimator.predict_proba(fresh)[:, 1], rtol=1e-6, atol=1e-6)
    reduced = (tmp_path / "tamiz-apply-new" / "reduced.csv").read_text().splitlines()
    assert reduced[0] == "gene 5,gene 2"
    assert len(reduced) == 26


@pytest.mark.parametrize(("loss", "n_classes"), [("logistic", 2), ("logistic", 3), ("softmax", 2), ("softmax", 3)])
def test_probabilities_of_each_class_where_the_loss_has_them(tamiz, tmp_path, small_table, loss, n_classes):
    X, y, names = small_table
    labels = np.where(X[:, 0] > 0, y + 1, y) if n_classes == 3 else y
    frame = pandas.DataFrame(X, columns=names).assign(kind=[f"type {label}" for label in labels])
    estimator = E2EFSClassifier(2, loss=loss, random_state=0).fit(frame[names], frame["kind"])
    save_model(estimator, tmp_path / "model.tamiz", target="kind")
    frame.to_csv("new.csv", index=False)
    result = tamiz("apply", "model.tamiz", "new.csv", "--json", "-o", "out")
    assert result.exit_code == 0, result.stderr
    header = [f"probability of type {label}" for label in range(n_classes)]
    written = pandas.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(written) == ["row", "predicted kind", *header]
    np.testing.assert_allclose(written[header], estimator.predict_proba(frame[names]), atol=1e-5)
    record = json.loads(result.stdout)
    assert record["loss"] == loss
    assert list(record["outputs"]) == header


def test_several_targets_have_a_column_each(tamiz, tmp_path, small_table):
    X, _, names = small_table
    frame = pandas.DataFrame(X, columns=names)
    y = np.column_stack([3 * X[:, 2], X[:, 5] - X[:, 2]])
    estimator = E2EFSRegressor(2, random_state=0).fit(frame, y)
    save_model(estimator, tmp_path / "model.tamiz", target=["height", "mass"])
    frame.to_csv("new.csv", index=False)
    result = tamiz("apply", "model.tamiz", "new.csv", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert "predicted mass" in result.stdout
    written = pandas.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(written) == ["row", "predicted height", "predicted mass"]
    np.testing.assert_allclose(written.iloc[:, 1:], estimator.predict(frame), atol=1e-4)


def test_the_reduced_table_is_enough(tamiz, model, small_csv, tmp_path):
    whole = json.loads(tamiz("apply", model, small_csv, "--json", "-o", "a").stdout)
    reduced = json.loads(tamiz("apply", model, tmp_path / "run" / "reduced.csv", "--json", "-o", "b").stdout)
    assert whole["predictions"] == reduced["predictions"]


def test_prints_predictions_and_counts(tamiz, model, small_csv):
    result = tamiz("apply", model, small_csv)
    assert "predicted ill" in result.stdout
    assert "and 50 more rows" in result.stdout
    assert "predictions.csv" in result.stdout


def test_a_table_that_lacks_a_column_is_refused_by_name(tamiz, model, write_csv, tmp_path):
    result = tamiz("apply", model, write_csv("gene 2,other\n1,2\n", "new.csv"))
    assert result.exit_code == EXIT_DATA
    assert "lacks 1 column(s) that the model needs: 'gene 5'" in " ".join(result.stderr.split())
    assert not (tmp_path / "tamiz-apply-new").exists()


def test_text_where_numbers_should_be(tamiz, model, write_csv):
    result = tamiz("apply", model, write_csv("gene 2,gene 5\n1,high\n", "new.csv"))
    assert result.exit_code == EXIT_DATA
    assert "needs numbers in 'gene 5'" in result.stderr


def test_a_cut_off_model_a_table_as_model_and_a_full_folder(tamiz, model, small_csv, tmp_path):
    cut = tmp_path / "cut.tamiz"
    cut.write_bytes(model.read_bytes()[:-10])
    result = tamiz("apply", cut, small_csv)
    assert result.exit_code == EXIT_DATA
    assert "cut off or damaged" in result.stderr
    assert "no tamiz model" in tamiz("apply", small_csv, small_csv).stderr
    assert tamiz("apply", model, small_csv, "-o", "run").exit_code == 0
    assert (tmp_path / "run-2" / "predictions.csv").exists()  # the folder of the selection stays as it is
    assert tamiz("apply", model, small_csv, "-o", small_csv).exit_code == EXIT_OUTPUT
    before = model.read_bytes()
    assert tamiz("apply", model, small_csv, "-o", "run", "--force").exit_code == 0
    assert model.read_bytes() == before


def frame_of(small_table, flags):
    X, y, names = small_table
    frame = pandas.DataFrame(X[:, :2], columns=names[:2])
    frame["flag"] = flags
    frame["ill"] = np.where(y, "yes", "no")
    return frame


@pytest.mark.parametrize(("trained", "applied"), [("csv", "parquet"), ("parquet", "csv")])
@pytest.mark.parametrize("kind", ["booleans", "numbers"])
def test_a_model_of_one_format_reads_another(tamiz, small_table, tmp_path, trained, applied, kind):
    y = small_table[1]
    frame = frame_of(small_table, y.astype(bool) if kind == "booleans" else y.astype(float) + 1)
    more = ["-c", "flag"] if kind == "numbers" else []
    for name, table in (("csv", frame), ("whole.csv", frame.convert_dtypes())):
        table.to_csv(tmp_path / f"t.{name}", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    result = tamiz("select", f"t.{trained}", "-t", "ill", "-k", 1, "--folds", 2, "-o", "run", "--json", *more)
    assert json.loads(result.stdout)["selected"][0]["column"] == "flag"
    for file in (f"t.{applied}", "t.whole.csv"):
        result = tamiz("apply", "run/model.tamiz", file, "--json", "--force")
        assert json.loads(result.stdout)["predictions"] == frame["ill"].tolist()


def test_values_that_the_model_never_saw_are_an_error(tamiz, small_table, tmp_path):
    frame = frame_of(small_table, np.where(small_table[1], "high", "low"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert tamiz("select", "t.csv", "-t", "ill", "-k", 1, "--folds", 2, "-o", "run", "-q").exit_code == 0
    frame["flag"] = "very " + frame["flag"]
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = tamiz("apply", "run/model.tamiz", "new.csv")
    assert result.exit_code == EXIT_DATA
    assert "knows none of its values ('very high', 'very low')" in result.stderr


def test_missing_values_are_spelt_as_in_training(tamiz, small_table, tmp_path):
    y = small_table[1]
    frame = frame_of(small_table, np.where(y, "none", "some"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ("-t", "ill", "-k", 1, "--folds", 2, "-o", "run", "-q", "--read", "keep_na=true")
    assert tamiz("select", "t.csv", *options).exit_code == 0
    result = tamiz("apply", "run/model.tamiz", "t.csv", "--json")
    assert json.loads(result.stdout)["predictions"] == frame["ill"].tolist()


def test_seconds_since_1970_are_found_and_applied(tamiz, small_table, tmp_path):
    frame = frame_of(small_table, 1_700_000_000 + small_table[1] * 30 + np.arange(60) % 7)
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = tamiz("select", "t.csv", "-t", "ill", "-k", 1, "--folds", 2, "-o", "run", "--json")
    record = json.loads(result.stdout)
    assert record["selected"][0]["column"] == "flag"
    result = tamiz("apply", "run/model.tamiz", "t.csv", "--json")
    assert json.loads(result.stdout)["predictions"] == frame["ill"].tolist()


def test_columns_that_name_the_rows_travel_along(tamiz, write_csv, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rows = [f"s{i:02d},{x[0]:.4f},{x[1]:.4f},{x[2]:.4f},{'ill' if x[1] > 0 else 'well'}" for i, x in enumerate(X)]
    path = write_csv("sample,a,b,c,state\n" + "\n".join(rows) + "\n", "patients.csv")
    assert tamiz("select", path, "-t", "state", "-k", 1, "--folds", 2, "-o", "run", "-q").exit_code == 0
    assert (tmp_path / "run" / "reduced.csv").read_text().startswith("sample,b,state\ns00,")
    done = tamiz("apply", tmp_path / "run" / "model.tamiz", path, "-o", "new", "-q")
    assert done.exit_code == 0, done.stderr
    with open(tmp_path / "new" / "predictions.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["sample"] for row in found] == [f"s{i:02d}" for i in range(60)]
    assert (tmp_path / "new" / "reduced.csv").read_text().startswith("sample,b\n")
    without = write_csv("b,c\n0.5,1\n-0.5,2\n", "without.csv")
    assert tamiz("apply", tmp_path / "run" / "model.tamiz", without, "-o", "bare", "-q").exit_code == 0
    assert (tmp_path / "bare" / "predictions.csv").read_text().startswith("row,predicted state,")
