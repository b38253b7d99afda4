"""tamiz pairs: what it prints and what it writes."""

import json

import numpy as np
import pandas
import pytest


@pytest.fixture
def pair_csv(write_csv):
    """A table in which a product, and a number with a category, act on the target; one number and one text are missing."""
    random = np.random.default_rng(0)
    X, colour = random.normal(size=(300, 8)), random.choice(["red", "blue"], 300)
    logit = 3 * X[:, 1] * X[:, 4] + 3 * np.where(colour == "red", 1, -1) * X[:, 6]
    frame = pandas.DataFrame(X, columns=[f"gene {i}" for i in range(8)]).assign(
        colour=colour, same=1, ill=np.where(random.random(300) < 1 / (1 + np.exp(-logit)), "yes", "no")
    )
    frame.loc[0, "gene 0"] = np.nan
    frame.loc[1, "colour"] = None
    return write_csv(frame, "pairs.csv")


def test_pairs_are_printed_and_written(tamiz, pair_csv, tmp_path):
    result = tamiz("pairs pairs.csv --target ill --permutations 5")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(words in result.stdout for words in ("gene 1  gene 4", "gene 6  colour", "< 0.001 *"))
    assert "Searched as categories: 'colour'." in result.stderr
    assert "one-hot" not in result.stderr
    assert "same" in result.stderr
    folder = tmp_path / "tamiz-pairs-pairs"
    assert sorted(path.name for path in folder.iterdir()) == ["columns.csv", "pairs.csv", "pairs.json", "report.html"]
    pairs, columns = pandas.read_csv(folder / "pairs.csv"), pandas.read_csv(folder / "columns.csv")
    assert set(zip(pairs["first"][:2], pairs["second"][:2])) == {("gene 1", "gene 4"), ("gene 6", "colour")}
    assert pairs["p_value"][0] < 1e-3
    assert set(columns["column"][:4]) == {"gene 1", "gene 4", "gene 6", "colour"}
    assert columns.set_index("column")["partner"]["colour"] == "gene 6"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "gene 1 × gene 4" in page
    assert ">red<" in page


def test_json_holds_the_same(tamiz, pair_csv, tmp_path):
    record = tamiz("pairs pairs.csv -t ill --json --permutations 0 --pairs 7 --degree 1").record
    assert (record["n_rows"], record["n_columns"], record["task"]) == (300, 9, "classification")
    assert (len(record["pairs"]), len(record["columns"]), record["n_permutations"]) == (7, 9, 0)
    assert record["pairs"][0]["p_value"] < 1e-3
    assert not record["not_searched"]  # the constant column is left out when the table is read
    written = json.loads((tmp_path / "tamiz-pairs-pairs" / "pairs.json").read_text())
    assert {key: value for key, value in record.items() if key != "files"} == written


def test_a_numeric_target(tamiz, write_csv):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    write_csv({**dict(zip("abcd", X.T)), "y": 2 * X[:, 0] * X[:, 2] + random.normal(size=200)})
    result = tamiz("pairs table.csv --target y --quiet --json --permutations 0")
    found = result.record["pairs"][0]
    assert (result.record["task"], found["first"], found["second"]) == ("regression", "a", "c")
    assert result.stderr == ""


def test_few_rows_give_an_empty_result_with_the_reason(tamiz, write_csv):
    i = np.arange(12)
    write_csv({"a": i, "b": i * 7 % 5, "y": np.where(i % 2, "no", "yes")})
    result = tamiz("pairs table.csv --target y")
    assert all("cannot be judged on 12 rows" in said for said in (result.stderr, result.stdout))
