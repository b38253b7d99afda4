"""``tamiz compare``, run as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import pandas
from sklearn.datasets import dump_svmlight_file

from tamiz.cli.errors import EXIT_DATA


def test_compare_writes_a_table_curves_times_and_marks(tamiz, small_csv, tmp_path):
    result = tamiz("compare small.csv -t ill -k 1,2,4 --folds 3 --repeats 2 --methods e2efs-soft,Fisher,random,all")
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "method k=1 k=2 k=4 stable seconds rank" in [" ".join(line.split()) for line in lines]
    assert "corrected t test" in result.stdout
    # References stand below the methods, without a rank.
    assert [line.split()[0] for line in lines if line[:2] in ("e2", "fi", "ra", "al")][2:] == ["random", "all"]
    folder = tmp_path / "tamiz-compare-small"
    assert sorted(path.name for path in folder.iterdir()) == ["compare.csv", "compare.json", "report.html"]
    scores = pandas.read_csv(folder / "compare.csv").set_index(["method", "k"])["score"]
    assert len(scores) == 12
    assert scores["e2efs-soft", 2] > scores["random", 2]
    assert scores["fisher", 2] > 0.85
    record = json.loads((folder / "compare.json").read_text())
    assert len(record["tests"]) == 1
    assert record["tests"][0]["low"] <= record["tests"][0]["difference"] <= record["tests"][0]["high"]
    assert {rank["method"] for rank in record["ranks"]} == {"e2efs-soft", "fisher"}
    assert record["references"] == ["random", "all"]
    assert all(len(one["folds"]) == 6 and one["seconds"] >= 0 for one in record["results"])
    assert "e2efs-soft" in (folder / "report.html").read_text()


def test_the_table_says_when_nothing_differs_and_the_page_corrects_its_intervals(tamiz, small_csv, tmp_path):
    words = " ".join(tamiz("compare small.csv -t ill -k 2 --folds 3 -m fisher,mim,sfs-dfs,all").stdout.split())
    assert "No method is significantly worse than the best (corrected t test over folds, Holm over 3 pairs)." in words
    assert "*" not in words
    assert "sfs+dfs" in words
    page = (tmp_path / "tamiz-compare-small" / "report.html").read_text()
    assert "by the number of rows, and by what splits vary beyond it" in page


def test_a_sparse_table_leaves_out_what_cannot_read_it(tamiz, tmp_path, small_frame):
    X, y = small_frame.iloc[:, :8].to_numpy(), (small_frame["ill"] == "yes").to_numpy(int)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"))
    result = tamiz("compare t.svm -k 2 --folds 2 --json")
    assert "Left out: relieff, which cannot read a sparse table." in result.stderr
    assert not result.record["failures"]
    scores = {entry["method"]: entry["score"] for entry in result.record["results"]}
    best = min(result.record["ranks"], key=lambda rank: rank["mean_rank"])["method"]
    assert scores[best] > scores["random"]
    result = tamiz("compare t.svm -k 2 --folds 2 -m relieff,random,fisher -o asked")
    assert "relieff failed in 2 of 2 folds" in result.stderr
    assert "failed" in next(line for line in result.stdout.splitlines() if line.strip().startswith("relieff"))
    assert "Every method failed" in tamiz("compare t.svm -k 2 --folds 2 -m relieff", code=EXIT_DATA).stderr


def test_names_are_those_of_reproduce_and_intervals_those_of_the_page(tamiz, small_csv, tmp_path):
    record = tamiz("compare small.csv -t ill -k 2,3 --folds 3 -m e2efs-hard,svm_rfe -q --json").record
    assert [entry["method"] for entry in record["results"]][::2] == ["e2efs", "svm-rfe", "random", "all"]
    assert [entry["k"] for entry in record["results"]] == [2, 3] * 4
    page = (tmp_path / "tamiz-compare-small" / "report.html").read_text()
    for entry in record["results"]:
        assert 0 <= entry["low"] <= entry["score"] <= entry["high"] <= 1
        assert f"{entry['score']:.3f} ({entry['low']:.3f} to {entry['high']:.3f})" in page


def test_one_and_several_numeric_targets(tamiz, write_csv, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5))
    write_csv({**dict(zip("abcde", X.T)), "height": 5 * X[:, 3] + X[:, 0], "mass": X[:, 1] - X[:, 3]})
    record = tamiz(
        "compare table.csv -t height -i mass -k 1 --folds 2 -m e2efs-soft,mim,random --json -q -o one"
    ).record
    scores = {one["method"]: one["score"] for one in record["results"]}
    assert record["metric"] == "R²"
    assert scores["e2efs-soft"] > max(0.8, scores["random"])
    asked = "-k 1,3 -m e2efs-soft,lasso,relieff,random,all --folds 3 -o run --json"
    record = tamiz(f"compare table.csv -t height -t mass {asked}").record
    assert (record["target"], record["failures"]) == ("height, mass", {})
    scores = {(one["method"], one["k"]): one["score"] for one in record["results"]}
    for method in ("e2efs-soft", "lasso", "relieff", "all"):  # both targets together are a, b and d
        assert scores[method, 3] > 0.9, method
    assert scores["random", 3] < 0.9
    assert "height, mass" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
