"""Folds, scores, weights and test files of ``select`` and ``compare``, as a user names them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tamiz.cli.errors import EXIT_DATA, EXIT_USAGE
from tamiz.cli.show import closing_lines
from tamiz.evaluation.metrics import SCORINGS


@pytest.fixture
def patients(write_csv):
    """20 patients of 4 rows each: columns of noise that tell the patient, a date, a weight and a target per patient."""
    generator = np.random.default_rng(0)
    patient = np.repeat(np.arange(20), 4)
    X = generator.normal(size=(20, 12))[patient] + 0.05 * generator.normal(size=(80, 12))
    y = np.resize(["no", "yes"], 20)[patient]
    names = [f"g{i}" for i in range(12)]
    lines = [",".join(["patient", "day", "weight", *names, "ill"])]
    lines += [
        ",".join(
            [
                f"p{p:02d}",
                f"2024-{i % 12 + 1:02d}-{i // 12 + 1:02d}",
                "2" if i % 3 else "1",
                *(f"{v:.4f}" for v in row),
                label,
            ]
        )
        for i, (p, row, label) in enumerate(zip(patient, X, y))
    ]
    return write_csv("\n".join(lines) + "\n", "patients.csv")


def select(tamiz, path, *arguments, permutations=0):
    result = tamiz(
        *("select", path, "-t", "ill", "-k", 4, "--folds", 2, "--force", "-o", "out", "--json"),
        *("--permutations", permutations, *arguments),
    )
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), " ".join(result.stderr.split())


def test_groups_keep_the_rows_of_a_patient_together(tamiz, patients):
    ignore = ("-i", "day", "-i", "weight")
    apart, _ = select(tamiz, patients, *ignore, "-i", "patient")
    together, _ = select(tamiz, patients, *ignore, "--groups", "patient")
    assert apart["scores"]["kept"]["value"] > together["scores"]["kept"]["value"] + 0.05
    assert "patient" not in {kept["column"] for kept in together["selected"]}


def test_time_trains_on_the_past_and_weights_are_no_features(tamiz, patients):
    record, _ = select(tamiz, patients, "--time", "day", "--weights", "weight", "-i", "patient")
    columns = {kept["column"] for kept in record["selected"]}
    assert record["n_features"] == 12
    assert not columns & {"day", "weight", "patient"}


def test_the_score_the_loss_and_the_class_weight_can_be_named(tamiz, patients):
    more = ("-i", "day", "-i", "weight", "-i", "patient")
    record, _ = select(
        tamiz, patients, *more, "--scoring", "auc", "--training", "loss=logistic", "--training", "class_weight=none"
    )
    assert record["scores"]["metric"] == "AUC"
    helped = tamiz("select", "--help").stdout
    assert all(name in helped for name in SCORINGS if name != "balanced_accuracy")


def test_a_test_file_is_scored_by_the_final_model(tamiz, patients, write_csv):
    lines = patients.read_text().splitlines()
    train = write_csv("\n".join([lines[0], *lines[1:61]]) + "\n", "train.csv")
    write_csv("\n".join([lines[0], *lines[61:]]) + "\n", "new.csv")
    more = ("-i", "day", "-i", "weight", "--groups", "patient")
    record, _ = select(tamiz, train, *more, "--test", "new.csv")
    assert record["test"]["n_rows"] == 20
    assert 0 <= record["test"]["low"] <= record["test"]["value"] <= record["test"]["high"] <= 1
    assert "On the 20 rows of new.csv: " in str(closing_lines(record).renderables[1])
    write_csv("g0,ill\n1,yes\n2,no\n", "other.csv")
    result = tamiz(
        "select",
        train,
        "-t",
        "ill",
        "-k",
        4,
        "--folds",
        2,
        *more,
        "--test",
        "other.csv",
        "-o",
        "x",
        "--permutations",
        0,
    )
    assert result.exit_code == EXIT_DATA
    assert "column(s) that the model needs" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (
            ["ill", "yes", "odd"],
            EXIT_DATA,
            "test.csv: The rows to test on have classes that there are no training rows of: 'odd'",
        ),
        (["sick", "yes", "no"], EXIT_USAGE, "test.csv: There is no target 'ill'"),
        (None, EXIT_USAGE, "There is no file test.csv"),
    ],
)
def test_a_test_file_that_cannot_be_scored(tamiz, patients, write_csv, lines, code, message):
    if lines is not None:
        values = ",".join(["1.0"] * 12)
        head = ",".join(f"g{i}" for i in range(12))
        write_csv("\n".join([f"{head},{lines[0]}", *(f"{values},{label}" for label in lines[1:])]), "test.csv")
    more = ("-i", "day", "-i", "weight", "--groups", "patient", "--permutations", 0, "--test", "test.csv", "-q")
    result = tamiz("select", patients, "-t", "ill", "-k", 4, "--folds", 2, *more)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_verdict_and_the_null_stand_in_terminal_json_and_page(tamiz, small_csv, tmp_path):
    result = tamiz("select", small_csv, "-t", "ill", "-k", 2, "--folds", 3, "--permutations", 5)
    record = json.loads((tmp_path / "tamiz-small" / "selected.json").read_text())
    assert record["null"]["n_permutations"] == 5
    assert record["verdict"].startswith(("2 of 8 columns predict", "No sign", "None of 5 shuffled targets"))
    words = " ".join(result.stdout.split())
    assert record["verdict"] in words
    assert "shuffled targets give" in words
    assert record["verdict"] in (tmp_path / "tamiz-small" / "report.html").read_text()


def test_a_table_of_noise_shows_no_sign_of_signal(tamiz, write_csv):
    X = np.random.default_rng(3).normal(size=(40, 30))
    lines = [",".join([*(f"g{i}" for i in range(30)), "ill"])]
    lines += [",".join([*(f"{v:.4f}" for v in row), "yes" if i % 2 else "no"]) for i, row in enumerate(X)]
    record, _ = select(tamiz, write_csv("\n".join(lines)), permutations=8)
    assert record["verdict"].startswith("No sign of signal")
    assert record["null"]["p_value"] > 0.05


def test_copies_running_numbers_and_rare_columns_are_warned_of(tamiz, write_csv):
    generator = np.random.default_rng(0)
    X = np.tile(generator.normal(size=(15, 8)), (4, 1))
    lines = ["number," + ",".join(f"g{i}" for i in range(8)) + ",ill"]
    lines += [
        ",".join([str(i + 1), *(f"{v:.5f}" for v in row), "yes" if i % 15 < 7 else "no"]) for i, row in enumerate(X)
    ]
    for options, message in ((["-i", "number"], "45 of 60 rows are copies of other rows"), ([], "a running number")):
        record, _ = select(tamiz, write_csv("\n".join(lines), "a.csv"), *options)
        assert any(message in alert["message"] for alert in record["alerts"])


def test_few_rows_of_a_numeric_target_get_two_in_each_fold(tamiz, write_csv):
    generator = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{a:.4f}" for a, b in generator.normal(size=(8, 2))]
    result = tamiz("select", write_csv("a,b,y\n" + "\n".join(rows)), "-t", "y", "-k", 1, "--permutations", 0)
    assert result.exit_code == 0, result.stderr
    assert "Folds: 4 instead of 5, for two rows in each of them." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--groups", "ill"], EXIT_USAGE, "--groups names the target 'ill' itself"),
        (["--groups", "patient", "--time", "day"], EXIT_USAGE, "not both"),
        (["--groups", "patint"], EXIT_USAGE, "Did you mean 'patient'"),
        (["--groups", "patient", "--folds", "21"], EXIT_DATA, "20 groups, fewer than the 21 folds"),
        (["--time", "patient"], EXIT_DATA, "must hold numbers or dates"),
        (["--time", "gap"], EXIT_DATA, "has no value in 1 of 80 rows"),
        (["--time", "tied"], EXIT_DATA, "Use fewer folds"),
        (["--weights", "patient"], EXIT_DATA, "'patient' holds text; numbers are needed"),
        (["--scoring", "acc"], EXIT_USAGE, "Unknown scoring 'acc'"),
        (["--scoring", "mae"], EXIT_USAGE, "is not for classification"),
        (["--training", "class_weight=heavy"], EXIT_USAGE, "class_weight"),
        (["--training", "loss=hinge"], EXIT_USAGE, "loss"),
        (["--groups", "copy"], EXIT_DATA, "one group only"),
    ],
)
def test_mistakes(tamiz, patients, write_csv, arguments, code, message):
    lines = patients.read_text().splitlines()
    rows = [
        f"{line.rsplit(',', 1)[0]},{'' if i == 5 else i},{i // 40},{line.rsplit(',', 1)[1]},{line.rsplit(',', 1)[1]}"
        for i, line in enumerate(lines[1:])
    ]
    path = write_csv("\n".join([lines[0].replace(",ill", ",gap,tied,copy,ill"), *rows]), "more.csv")
    result = tamiz(
        "select", path, "-t", "ill", "-k", 2, *([] if "--folds" in arguments else ["--folds", 2]), *arguments
    )
    assert result.exit_code == code, result.stderr
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_compare_takes_groups_and_scoring(tamiz, patients):
    result = tamiz(
        *("compare", patients, "-t", "ill", "-k", "2", "--folds", 3, "-m", "fisher,mim,random", "--json"),
        *("--groups", "patient", "--weights", "weight", "--scoring", "roc_auc", "-i", "day"),
    )
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["metric"] == "AUC"
    assert all(0 <= entry["score"] <= 1 for entry in record["results"])


def test_groups_and_a_test_file_are_read_as_the_table_is(tamiz, write_csv):
    """Lines above the table, a decimal comma and a word for missing values hold for every file of the command."""
    random = np.random.default_rng(0)
    lines = ["written by a machine", "a;b;patient;ill"]
    lines += [
        f"{value:.3f};{random.normal():.3f};{'none' if i < 4 else f'p{i // 4}'};{'yes' if value > 0 else 'no'}".replace(
            ".", ","
        )
        for i, value in enumerate(random.normal(size=48))
    ]
    path = write_csv("\n".join(lines) + "\n")
    reading = ("--read", "skip_rows=1", "--read", "delimiter=;", "--read", "decimal=,", "--read", "keep_na=true")
    result = tamiz(
        "select", path, "-t", "ill", "-k", 1, "--groups", "patient", "--test", path, "--folds", 3, "--permutations", 0,
        "--json", *reading,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["selected"][0]["column"] == "a"
    assert record["test"] is not None
