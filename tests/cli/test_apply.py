"""``tamiz apply``, after ``tamiz select``."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.cli.errors import EXIT_DATA, EXIT_OUTPUT
from tamiz.persistence import save_model

SELECT = "-t ill --folds 2 --permutations 0 --no-report -o run"


@pytest.fixture
def model(tamiz, small_csv, tmp_path):
    tamiz(f"select small.csv -k 2 {SELECT} -q")
    return tmp_path / "run" / "model.tamiz"


def test_predicts_new_rows_as_the_estimator_does(tamiz, model, small_frame, tmp_path, write_csv):
    fresh = np.random.default_rng(5).normal(size=(25, 8)).astype(np.float32)
    order = [7, 5, 0, 2]  # other columns, another order, no target
    new = pandas.DataFrame(fresh[:, order].astype(float), columns=[f"gene {i}" for i in order])
    write_csv(new, "new.csv")
    record = tamiz(f"apply {model} new.csv --json").record
    estimator = E2EFSClassifier(2, class_weight="balanced", random_state=0)
    estimator.fit(small_frame.iloc[:, :8].to_numpy(np.float32), small_frame["ill"])
    written = pandas.read_csv(tmp_path / "tamiz-apply-new" / "predictions.csv")
    assert record["predictions"] == estimator.predict(fresh).tolist() == written["predicted ill"].tolist()
    np.testing.assert_allclose(
        written["probability of yes"], estimator.predict_proba(fresh)[:, 1], rtol=1e-6, atol=1e-6
    )
    reduced = (tmp_path / "tamiz-apply-new" / "reduced.csv").read_text().splitlines()
    assert (reduced[0], len(reduced)) == ("gene 5,gene 2", 26)


@pytest.mark.parametrize(("loss", "n_classes"), [("logistic", 2), ("logistic", 3), ("softmax", 2), ("softmax", 3)])
def test_probabilities_of_each_class_where_the_loss_has_them(tamiz, tmp_path, small_frame, write_csv, loss, n_classes):
    X, y = small_frame.iloc[:, :8], (small_frame["ill"] == "yes").to_numpy(int)
    kinds = [f"type {label}" for label in (np.where(X["gene 0"] > 0, y + 1, y) if n_classes == 3 else y)]
    estimator = E2EFSClassifier(2, loss=loss, random_state=0).fit(X, kinds)
    save_model(estimator, tmp_path / "model.tamiz", target="kind")
    write_csv(X, "new.csv")
    record = tamiz("apply model.tamiz new.csv --json -o out").record
    header = [f"probability of type {label}" for label in range(n_classes)]
    written = pandas.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(written) == ["row", "predicted kind", *header]
    np.testing.assert_allclose(written[header], estimator.predict_proba(X), atol=1e-5)
    assert (record["loss"], list(record["outputs"])) == (loss, header)


def test_several_targets_have_a_column_each(tamiz, tmp_path, small_frame, write_csv):
    X = small_frame.iloc[:, :8]
    estimator = E2EFSRegressor(2, random_state=0).fit(X, np.column_stack([3 * X["gene 2"], X["gene 5"] - X["gene 2"]]))
    save_model(estimator, tmp_path / "model.tamiz", target=["height", "mass"])
    write_csv(X, "new.csv")
    assert "predicted mass" in tamiz("apply model.tamiz new.csv -o out").stdout
    written = pandas.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(written) == ["row", "predicted height", "predicted mass"]
    np.testing.assert_allclose(written.iloc[:, 1:], estimator.predict(X), atol=1e-4)


def test_the_reduced_table_is_enough_and_counts_are_printed(tamiz, model):
    whole = tamiz(f"apply {model} small.csv --json -o a").record
    assert whole["predictions"] == tamiz(f"apply {model} run/reduced.csv --json -o b").record["predictions"]
    said = tamiz(f"apply {model} small.csv -o c").stdout
    assert all(words in said for words in ("predicted ill", "and 50 more rows", "predictions.csv"))


def test_what_cannot_be_applied(tamiz, model, write_csv, tmp_path):
    write_csv("gene 2,other\n1,2\n", "new.csv")
    message = "lacks 1 column that the model needs: 'gene 5'"
    assert message in tamiz(f"apply {model} new.csv", code=EXIT_DATA).words
    assert not (tmp_path / "tamiz-apply-new").exists()
    write_csv("gene 2,gene 5\n1,high\n", "new.csv")
    assert "needs numbers in 'gene 5'" in tamiz(f"apply {model} new.csv", code=EXIT_DATA).words
    (tmp_path / "cut.tamiz").write_bytes(model.read_bytes()[:-10])
    assert "cut off or damaged" in tamiz("apply cut.tamiz small.csv", code=EXIT_DATA).words
    assert "no tamiz model" in tamiz("apply small.csv small.csv", code=EXIT_DATA).words
    tamiz(f"apply {model} small.csv -o small.csv", code=EXIT_OUTPUT)
    tamiz(f"apply {model} small.csv -o run")
    assert (tmp_path / "run-2" / "predictions.csv").exists()  # the folder of the selection stays as it is
    before = model.read_bytes()
    tamiz(f"apply {model} small.csv -o run --force")
    assert model.read_bytes() == before


def frame_of(small_frame, flags):
    return small_frame[["gene 0", "gene 1"]].assign(flag=flags, ill=small_frame["ill"])


@pytest.mark.parametrize(("trained", "applied"), [("csv", "parquet"), ("parquet", "csv")])
@pytest.mark.parametrize("kind", ["booleans", "numbers"])
def test_a_model_of_one_format_reads_another(tamiz, small_frame, write_csv, tmp_path, trained, applied, kind):
    ill = small_frame["ill"] == "yes"
    frame = frame_of(small_frame, ill if kind == "booleans" else ill + 1.0)
    write_csv(frame, "t.csv")
    write_csv(frame.convert_dtypes(), "t.whole.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    record = tamiz(f"select t.{trained} -k 1 {SELECT} --json {'-c flag' if kind == 'numbers' else ''}").record
    assert record["selected"][0]["column"] == "flag"
    for file in (f"t.{applied}", "t.whole.csv"):
        found = tamiz(f"apply run/model.tamiz {file} --json --force").record
        assert found["predictions"] == frame["ill"].tolist()


@pytest.mark.parametrize(
    ("kind", "options"), [("seen", ""), ("missing", "--read na_values="), ("seconds since 1970", "")]
)
def test_values_are_read_as_in_training(tamiz, small_frame, write_csv, kind, options):
    ill = (small_frame["ill"] == "yes").to_numpy()
    flags = {
        "seen": np.where(ill, "high", "low"),
        "missing": np.where(ill, "none", "some"),
        "seconds since 1970": 1_700_000_000 + ill * 30 + np.arange(60) % 7,
    }
    frame = frame_of(small_frame, flags[kind])
    write_csv(frame, "t.csv")
    assert tamiz(f"select t.csv -k 1 {SELECT} --json {options}").record["selected"][0]["column"] == "flag"
    assert tamiz("apply run/model.tamiz t.csv --json").record["predictions"] == frame["ill"].tolist()
    if kind == "seen":  # and values that the model never saw are an error
        write_csv(frame.assign(flag="very " + frame["flag"]), "new.csv")
        words = tamiz("apply run/model.tamiz new.csv", code=EXIT_DATA).words
        assert "knows none of its values ('very high', 'very low')" in words


def test_columns_that_name_the_rows_travel_along(tamiz, write_csv, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3)).round(4)
    samples = [f"s{i:02d}" for i in range(60)]
    write_csv({"sample": samples, **dict(zip("abc", X.T)), "ill": np.where(X[:, 1] > 0, "yes", "no")}, "patients.csv")
    tamiz(f"select patients.csv -k 1 {SELECT} -q")
    assert (tmp_path / "run" / "reduced.csv").read_text().startswith("sample,b,ill\ns00,")
    tamiz("apply run/model.tamiz patients.csv -o new -q")
    assert pandas.read_csv(tmp_path / "new" / "predictions.csv")["sample"].tolist() == samples
    assert (tmp_path / "new" / "reduced.csv").read_text().startswith("sample,b\n")
    write_csv("b,c\n0.5,1\n-0.5,2\n", "without.csv")
    tamiz("apply run/model.tamiz without.csv -o bare -q")
    assert (tmp_path / "bare" / "predictions.csv").read_text().startswith("row,predicted ill,")
