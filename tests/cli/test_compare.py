"""``tamiz compare``, run as a user runs it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from tamiz.cli.errors import EXIT_DATA, EXIT_USAGE


def test_compare_writes_a_table_curves_times_and_marks(tamiz, small_csv, tmp_path):
    result = tamiz(
        *("compare", small_csv, "-t", "ill", "-k", "1,2,4", "--folds", 3, "--repeats", 2),
        *("--methods", "e2efs-soft,Fisher,random,all"),
    )
    assert result.exit_code == 0, result.stderr
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert next(line for line in lines if "k=1" in line).split() == [
        "method",
        "k=1",
        "k=2",
        "k=4",
        "stable",
        "time",
        "rank",
    ]
    assert "corrected t test" in result.stdout
    # References stand below the methods, without a rank.
    assert [line.split()[0] for line in lines if line[:2] in ("e2", "fi", "ra", "al")][2:] == ["random", "all"]
    folder = tmp_path / "tamiz-compare-small"
    assert sorted(path.name for path in folder.iterdir()) == ["compare.csv", "compare.json", "report.html"]
    with open(folder / "compare.csv", newline="") as file:
        rows = {(row["method"], row["k"]): float(row["score"]) for row in csv.DictReader(file)}
    assert len(rows) == 12
    assert rows["e2efs-soft", "2"] > rows["random", "2"]
    assert rows["fisher", "2"] > 0.85
    record = json.loads((folder / "compare.json").read_text())
    assert len(record["tests"]) == 1
    assert record["tests"][0]["low"] <= record["tests"][0]["difference"] <= record["tests"][0]["high"]
    assert {rank["method"] for rank in record["ranks"]} == {"e2efs-soft", "fisher"}
    assert record["references"] == ["random", "all"]
    assert all(len(result["folds"]) == 6 for result in record["results"])
    assert all(result["seconds"] >= 0 for result in record["results"])
    assert "e2efs-soft" in (folder / "report.html").read_text()


def test_the_table_says_when_nothing_differs_and_the_page_corrects_its_intervals(tamiz, small_csv, tmp_path):
    result = tamiz("compare", small_csv, "-t", "ill", "-k", "2", "--folds", 3, "-m", "fisher,mim,sfs-dfs,all")
    words = " ".join(result.stdout.split())
    assert "No method is significantly worse than the best (corrected t test over folds, Holm over 3 pairs)." in words
    assert "*" not in words
    assert "sfs+dfs" in words
    assert "after Nadeau and Bengio" in (tmp_path / "tamiz-compare-small" / "report.html").read_text()


def test_a_sparse_table_leaves_out_what_cannot_read_it(tamiz, tmp_path, small_table):
    X, y, _ = small_table
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"))
    result = tamiz("compare", "t.svm", "-k", "2", "--folds", 2, "--json")
    assert result.exit_code == 0, result.stderr
    assert "Left out: relieff, which cannot read a sparse table." in result.stderr
    record = json.loads(result.stdout)
    assert not record["failures"]
    scores = {entry["method"]: entry["score"] for entry in record["results"]}
    best = min(record["ranks"], key=lambda rank: rank["mean_rank"])["method"]
    assert scores[best] > scores["random"]
    result = tamiz("compare", "t.svm", "-k", "2", "--folds", 2, "-m", "relieff,random,fisher", "-o", "asked")
    assert "relieff failed in 2 of 2 folds" in result.stderr
    assert "failed" in next(line for line in result.stdout.splitlines() if line.strip().startswith("relieff"))
    result = tamiz("compare", "t.svm", "-k", "2", "--folds", 2, "-m", "relieff", "-o", "failed")
    assert result.exit_code == EXIT_DATA
    assert "Every method failed" in result.stderr


def test_names_are_those_of_reproduce_and_intervals_those_of_the_page(tamiz, small_csv, tmp_path):
    result = tamiz(
        "compare", small_csv, "-t", "ill", "-k", "2,3", "--folds", 3, "-m", "e2efs-hard,svm_rfe", "-q", "--json"
    )
    record = json.loads(result.stdout)
    assert [entry["method"] for entry in record["results"]][::2] == ["e2efs", "svm-rfe", "random", "all"]
    assert [entry["k"] for entry in record["results"]] == [2, 3] * 4
    page = (tmp_path / "tamiz-compare-small" / "report.html").read_text()
    for entry in record["results"]:
        assert 0 <= entry["low"] <= entry["score"] <= entry["high"] <= 1
        assert f"{entry['score']:.3f} ({entry['low']:.3f} to {entry['high']:.3f})" in page


def test_compare_defaults_json_and_regression(tamiz, write_csv):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 5))
    lines = ["a,b,c,d,e,y"] + [",".join(f"{v:.4f}" for v in [*row, 5 * row[3] + row[0]]) for row in X]
    path = write_csv("\n".join(lines))
    arguments = ("compare", path, "-t", "y", "-k", 1, "--folds", 2, "--methods", "e2efs-soft,mim,random")
    record = json.loads(tamiz(*arguments, "--json", "-q", "-o", "out").stdout)
    best = {result["method"]: result["score"] for result in record["results"]}
    assert record["metric"] == "R²"
    assert best["e2efs-soft"] > 0.8
    assert best["e2efs-soft"] > best["random"]
    result = tamiz("compare", path, "-t", "y", "-m", "fisher")
    assert result.exit_code == EXIT_USAGE
    assert "'fisher' needs classes" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "fischer"], "Did you mean 'fisher'?"),
        (["-m", ","], "at least one method"),
        (["-k", ","], "Give -k numbers of columns"),
        (["-k", "2,99"], "-k=99 is more than the 8"),
    ],
)
def test_compare_mistakes(tamiz, small_csv, tmp_path, arguments, message):
    result = tamiz("compare", small_csv, "-t", "ill", *arguments)
    assert result.exit_code == EXIT_USAGE
    assert message in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]
