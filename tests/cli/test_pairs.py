"""tamiz pairs: what it prints, what it writes, how it fails."""

import csv
import json

import numpy as np
import pytest


@pytest.fixture
def pair_csv(write_csv):
    """A table in which a product, and a number with a category, act on the target; one number and one text are missing."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 8))
    colour = random.choice(["red", "blue"], 300)
    logit = 3 * X[:, 1] * X[:, 4] + 3 * np.where(colour == "red", 1, -1) * X[:, 6]
    y = random.random(300) < 1 / (1 + np.exp(-logit))
    lines = [",".join([*(f"gene {i}" for i in range(8)), "colour", "same", "ill"])]
    for row, word, label in zip(X, colour, y):
        lines.append(",".join([*(f"{value:.5g}" for value in row), word, "1", "yes" if label else "no"]))
    lines[1] = "," + lines[1].partition(",")[2]
    lines[2] = lines[2].replace("red", "").replace("blue", "")
    return write_csv("\n".join(lines) + "\n", "pairs.csv")


def read_csv(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_pairs_are_printed_and_written(tamiz, pair_csv, tmp_path):
    result = tamiz("pairs", pair_csv, "--target", "ill", "--permutations", 5)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "gene 1  gene 4" in result.stdout
    assert "gene 6  colour" in result.stdout
    assert "< 0.001 *" in result.stdout
    assert "Searched as categories: 'colour'." in result.stderr
    assert "one-hot" not in result.stderr
    assert "same" in result.stderr
    folder = tmp_path / "tamiz-pairs-pairs"
    assert sorted(path.name for path in folder.iterdir()) == ["columns.csv", "pairs.csv", "pairs.json", "report.html"]
    pairs = read_csv(folder / "pairs.csv")
    assert {(pair["first"], pair["second"]) for pair in pairs[:2]} == {("gene 1", "gene 4"), ("gene 6", "colour")}
    assert float(pairs[0]["p_value"]) < 1e-3
    columns = read_csv(folder / "columns.csv")
    assert {column["column"] for column in columns[:4]} == {"gene 1", "gene 4", "gene 6", "colour"}
    assert {column["column"]: column["partner"] for column in columns}["colour"] == "gene 6"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "gene 1 × gene 4" in page
    assert ">red<" in page


def test_json_holds_the_same(tamiz, pair_csv, tmp_path):
    result = tamiz("pairs", pair_csv, "-t", "ill", "--json", "--permutations", 0, "--pairs", 7, "--degree", 1)
    record = json.loads(result.stdout)
    assert (record["n_rows"], record["n_columns"], record["task"]) == (300, 9, "classification")
    assert len(record["pairs"]) == 7
    assert len(record["columns"]) == 9
    assert record["n_permutations"] == 0
    assert record["pairs"][0]["p_value"] < 1e-3
    assert not record["not_searched"]  # the constant column is left out when the table is read
    written = json.loads((tmp_path / "tamiz-pairs-pairs" / "pairs.json").read_text())
    assert {key: value for key, value in record.items() if key != "files"} == written


def test_a_numeric_target(tamiz, write_csv):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    y = 2 * X[:, 0] * X[:, 2] + random.normal(size=200)
    rows = [",".join(f"{value:.5g}" for value in [*row, target]) for row, target in zip(X, y)]
    path = write_csv("\n".join(["a,b,c,d,y", *rows]) + "\n")
    result = tamiz("pairs", path, "--target", "y", "--quiet", "--json", "--permutations", 0)
    record = json.loads(result.stdout)
    assert (record["task"], record["pairs"][0]["first"], record["pairs"][0]["second"]) == ("regression", "a", "c")
    assert result.stderr == ""


def test_few_rows_give_an_empty_result_with_the_reason(tamiz, write_csv):
    path = write_csv("a,b,y\n" + "\n".join(f"{i},{i * 7 % 5},{'no' if i % 2 else 'yes'}" for i in range(12)) + "\n")
    result = tamiz("pairs", path, "--target", "y")
    assert result.exit_code == 0
    assert "cannot be judged on 12 rows" in result.stderr
    assert "cannot be judged on 12 rows" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--target", "il"], 2, "Did you mean 'ill'"),
        ([], 2, "--target"),
        (["--target", "ill", "--degree", "7"], 2, "degree"),
        (["--target", "ill", "--method", "quick"], 2, "method"),
        (["--target", "same"], 3, "same"),
        (["--target", "ill", "--out", "taken/notes.txt"], 4, "is a file"),
    ],
)
def test_errors_are_one_message_and_an_exit_code(tamiz, pair_csv, tmp_path, arguments, exit_code, message):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    result = tamiz("pairs", pair_csv, *arguments)
    assert result.exit_code == exit_code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "tamiz-pairs-pairs").exists()


def test_a_class_for_each_row_is_reported(tamiz, write_csv):
    path = write_csv("a,b,y\n" + "\n".join(f"{i},{i * 7 % 5},w{i}" for i in range(30)) + "\n")
    result = tamiz("pairs", path, "--target", "y")
    assert result.exit_code == 3
    assert "Error: " in result.stderr
