"""``tamiz select``, run as a user runs it."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import polars
import pytest
from sklearn.datasets import dump_svmlight_file

from tamiz import E2EFSClassifier
from tamiz.cli.errors import EXIT_DATA, EXIT_OUTPUT, EXIT_USAGE


def read_list(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_finds_the_columns_and_writes_everything(tamiz, small_csv, tmp_path):
    result = tamiz("select", small_csv, "--target", "ill", "-k", 2, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "tamiz-small"
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.tamiz",
        "reduced.csv",
        "report.html",
        "selected.csv",
        "selected.json",
    ]
    kept = read_list(folder / "selected.csv")
    assert {row["column"] for row in kept} == {"gene 2", "gene 5"}
    assert [row["rank"] for row in kept] == ["1", "2"]
    assert {row["column"]: float(row["weight"]) > 0 for row in kept} == {"gene 2": True, "gene 5": False}
    record = json.loads((folder / "selected.json").read_text())
    assert record["task"] == "classification"
    assert record["scores"]["kept"]["value"] > 0.85
    assert record["scores"]["difference_random"]["low"] is not None
    assert 0 < record["stability"] <= 1
    assert (folder / "reduced.csv").read_text().splitlines()[0] == "gene 2,gene 5,ill"
    page = (folder / "report.html").read_text()
    assert "gene 5" in page


def test_speaks_in_80_columns_results_to_stdout_remarks_to_stderr(tamiz, small_csv):
    result = tamiz("select", small_csv, "--target", "ill", "-k", 2, "--folds", 3)
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "…" not in result.stdout
    assert "Balanced accuracy over 3 held-out folds" in result.stdout
    assert re.search(r"all 8 +0\.\d{3} +0\.\d{3} to ", result.stdout)
    assert re.search(r"2 kept +[01]\.\d{3}", result.stdout)
    assert re.search(r"2 random +0\.\d{3}", result.stdout)
    assert "tamiz-small/report.html" in result.stdout
    assert "Task: classification of 'ill'" in result.stderr
    assert "--task" in result.stderr


@pytest.fixture
def write_table(write_csv):
    def write(effects=(), n_rows=200, n_columns=40):
        generator = np.random.default_rng(0)
        X = generator.normal(size=(n_rows, n_columns))
        y = X[:, : len(effects)] @ np.array(effects) + generator.normal(size=n_rows)
        lines = [",".join([*(f"x{i}" for i in range(n_columns)), "y"])]
        return write_csv("\n".join([*lines, *(",".join(f"{v:.6g}" for v in row) for row in np.c_[X, y])]) + "\n")

    return write


def test_fdr_finds_the_true_columns(tamiz, write_table, tmp_path):
    result = tamiz("select", write_table([2, -2, 2, 2, -2]), "--target", "y", "--fdr", 0.2, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    assert "Columns to keep: 5 of 40, which pass at a false discovery rate of 0.2." in " ".join(result.stderr.split())
    kept = read_list(tmp_path / "tamiz-table" / "selected.csv")
    assert {row["column"] for row in kept} == {"x0", "x1", "x2", "x3", "x4"}
    assert all(0 < float(row["q_value"]) <= 0.2 for row in kept)
    record = json.loads((tmp_path / "tamiz-table" / "selected.json").read_text())
    assert (record["k"], record["settings"]["fdr"], record["settings"]["k"]) == (5, 0.2, None)
    assert [one["q_value"] for one in record["selected"]] == [float(row["q_value"]) for row in kept]
    assert record["scores"]["kept"]["value"] > 0.9
    assert (tmp_path / "tamiz-table" / "report.html").read_text().count('data-kind="q"') == 5


@pytest.mark.parametrize(
    ("table", "options", "message", "code"),
    [
        ({}, ["--fdr", 0.2], "No column passes at a false discovery rate of 0.2: at least 5 columns", EXIT_DATA),
        ({"n_rows": 24}, ["--fdr", 0.2], "--fdr needs at least 20 rows in each training fold, there are 19", EXIT_DATA),
        ({"n_columns": 9}, ["--fdr", 0.1], "--fdr of 0.1 keeps no column or at least 10, there are 9", EXIT_DATA),
        ({}, ["--fdr", 0], "--fdr must be a number between 0 and 1, such as 0.1, got 0.0", EXIT_USAGE),
        ({}, ["--fdr", 1], "--fdr must be a number between 0 and 1, such as 0.1, got 1.0", EXIT_USAGE),
        ({}, ["--fdr", 0.2, "-k", 3], "--fdr cannot be combined with -k:", EXIT_USAGE),
        ({}, ["--fdr", 0.2, "--keep", "x1"], "--fdr cannot be combined with --keep:", EXIT_USAGE),
        ({}, ["--fdr", 0.2, "--weights", "x1"], "--fdr cannot be combined with --weights:", EXIT_USAGE),
        ({}, ["--fdr", 0.2, "--missing", "indicator"], "--fdr cannot be combined with --missing:", EXIT_USAGE),
    ],
)
def test_fdr_that_finds_or_can_find_nothing(tamiz, write_table, tmp_path, table, options, message, code):
    result = tamiz("select", write_table(**table), "--target", "y", *options)
    assert message in " ".join(result.stderr.split())
    assert result.exit_code == code
    assert not (tmp_path / "tamiz-table").exists()


def test_json_and_quiet(tamiz, small_csv, tmp_path):
    result = tamiz("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2, "--json", "--out", "a")
    record = json.loads(result.stdout)
    assert {kept["column"] for kept in record["selected"]} == {"gene 2", "gene 5"}
    assert record["files"]["model"] == "a/model.tamiz"
    assert "Task:" in result.stderr
    result = tamiz("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2, "--quiet", "--out", "b")
    assert (result.stdout, result.stderr) == ("", "")
    assert (tmp_path / "b" / "report.html").exists()


def test_the_same_seed_gives_the_same_files(tamiz, small_csv, tmp_path):
    for out in ("a", "b"):
        assert tamiz("select", small_csv, "-t", "ill", "-k", 3, "--folds", 2, "--seed", 7, "-o", out).exit_code == 0
    for name in ("selected.csv", "model.tamiz", "reduced.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_selection_is_that_of_the_estimator(tamiz, small_csv, small_table, tmp_path):
    tamiz("select", small_csv, "-t", "ill", "-k", 3, "--folds", 2, "--seed", 3, "--training", "variant=hard")
    X = np.loadtxt(small_csv, delimiter=",", skiprows=1, usecols=range(8), dtype=np.float32)
    estimator = E2EFSClassifier(3, variant="hard", class_weight="balanced", random_state=3).fit(X, small_table[1])
    found = [row["column"] for row in read_list(tmp_path / "tamiz-small" / "selected.csv")]
    contribution = np.abs(estimator.coef_).max(axis=0)
    by_contribution = estimator.selection_.indices[np.argsort(-contribution)]
    assert found == [f"gene {i}" for i in by_contribution]


def test_text_gaps_dates_and_odd_names(tamiz, write_csv, tmp_path):
    generator = np.random.default_rng(0)
    lines = ['"<script>alert(1)</script>","=cmd()",colour,when,void,"größe, ""cm""",class']
    for i in range(60):
        label = "ab"[i % 2]
        colour = "red" if (label == "a") ^ (i % 10 == 0) else generator.choice(["blue", "green"])
        size = "" if i % 7 == 0 else f"{generator.normal() + 3 * (label == 'a'):.3f}"
        lines.append(
            f"{generator.normal():.3f},{generator.normal():.3f},{colour},2024-01-{i % 28 + 1:02d},,{size},{label}"
        )
    path = write_csv("\n".join(lines) + "\n", "odd names.csv")
    result = tamiz("select", path, "-t", "class", "-k", 2, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    assert "Column 'when' holds dates: read as days since the first" in result.stderr
    assert "Left out: 'void' (no values at all)" in result.stderr
    assert "Encoded: 'colour'" in result.stderr
    assert "Imputed: 9 missing numbers in 1 column(s)" in result.stderr
    folder = tmp_path / "tamiz-odd names"
    kept = read_list(folder / "selected.csv")
    assert {"colour", 'größe, "cm"'} == {row["column"] for row in kept}
    assert "<script>alert(1)" not in (folder / "report.html").read_text()
    assert (folder / "reduced.csv").read_text().splitlines()[0] == 'colour,"größe, ""cm""",class'


def test_formulas_are_made_harmless(tamiz, write_csv, tmp_path):
    rows = "\n".join(f"{i % 2 + i / 1000},{'yes' if i % 2 else 'no'}" for i in range(40))
    path = write_csv(f"=1+1,y\n{rows}\n")
    tamiz("select", path, "-t", "y", "-k", 1, "--folds", 2, "-o", "a")
    assert read_list(tmp_path / "a" / "selected.csv")[0]["column"] == "'=1+1"
    assert json.loads((tmp_path / "a" / "selected.json").read_text())["selected"][0]["column"] == "=1+1"


@pytest.mark.parametrize("kind", ["parquet", "npz", "svmlight", "tsv"])
def test_other_formats_give_the_same_selection(tamiz, small_csv, tmp_path, kind):
    table = polars.read_csv(small_csv)
    X = table[:, :8].to_numpy()
    y = (table["ill"] == "yes").to_numpy()
    path = tmp_path / {"parquet": "t.parquet", "npz": "t.npz", "svmlight": "t.svm", "tsv": "t.tsv"}[kind]
    target = ["-t", "ill"]
    if kind == "parquet":
        table.write_parquet(path)
    elif kind == "npz":
        np.savez(path, X=X, y=y, names=np.array(table.columns[:8]))
        target = []
    elif kind == "svmlight":
        dump_svmlight_file(X, y.astype(int), str(path), zero_based=False)
        target = []
    else:
        path.write_text(small_csv.read_text().replace(",", "\t"))
    result = tamiz("select", path, *target, "-k", 2, "--folds", 2, "-o", "out")
    assert result.exit_code == 0, result.stderr
    names = {row["column"] for row in read_list(tmp_path / "out" / "selected.csv")}
    assert names == ({"3", "6"} if kind == "svmlight" else {"gene 2", "gene 5"})
    assert (tmp_path / "out" / ("reduced.parquet" if kind == "parquet" else "reduced.csv")).exists()


def test_regression(tamiz, write_csv, tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 6))
    y = 100 + 30 * X[:, 1] + generator.normal(size=80)
    lines = ["a,b,c,d,e,f,yield"] + [",".join(f"{v:.5f}" for v in [*row, value]) for row, value in zip(X, y)]
    result = tamiz("select", write_csv("\n".join(lines)), "-t", "-1", "-k", "0.2", "--folds", 4)
    assert result.exit_code == 0, result.stderr
    assert "Task: regression on 'yield'" in result.stderr
    assert "R² over 4 held-out folds" in result.stdout
    record = json.loads((tmp_path / "tamiz-table" / "selected.json").read_text())
    assert [kept["column"] for kept in record["selected"]] == ["b"]
    assert record["scores"]["kept"]["value"] > 0.9


def test_ignored_columns_and_fewer_folds_where_a_class_is_rare(tamiz, write_csv, tmp_path):
    lines = ["good,copy,noise,y"] + [f"{i % 5},{i % 5},{(i * 7) % 11},{'a' if i % 5 < 1 else 'b'}" for i in range(15)]
    result = tamiz("select", write_csv("\n".join(lines)), "-t", "y", "-k", 1, "--ignore", "copy", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert "Folds: 3 instead of 5, since class 'a' has 3 rows only" in result.stderr
    assert read_list(tmp_path / "out" / "selected.csv")[0]["column"] == "good"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing.csv", "-t", "ill"], EXIT_USAGE, "There is no file"),
        (["small.csv"], EXIT_USAGE, "--target"),
        (["small.csv", "-t", "il"], EXIT_USAGE, "Did you mean 'ill'?"),
        (["small.csv", "-t", "ill", "-k", "9"], EXIT_USAGE, "-k=9 is more than the 8 feature(s)"),
        (["small.csv", "-t", "ill", "-k", "0"], EXIT_USAGE, "must be at least 1"),
        (["small.csv", "-t", "ill", "-k", "many"], EXIT_USAGE, "-k must be a number"),
        (["small.csv", "-t", "ill", "-k", "1.5"], EXIT_USAGE, "fraction out of range"),
        (["small.csv", "-t", "ill", "-k", "nan"], EXIT_USAGE, "fraction out of range"),
        (["small.csv", "-t", "ill", "-i", "nope"], EXIT_USAGE, "no column to ignore 'nope'"),
        (["small.csv", "-t", "ill", "--task", "regression"], EXIT_USAGE, "holds text"),
        (["small.csv", "-t", "ill", "--read", "delimiter=ab"], EXIT_USAGE, "one character"),
        (["small.csv", "-t", "ill", "--folds", "1"], 2, "--folds"),
        (["small.dat", "-t", "ill"], EXIT_USAGE, "names no format. Say which with --read format=...: "),
        (
            ["small.csv", "-t", "ill", "--read", "format=parqet"],
            EXIT_USAGE,
            "Unknown format 'parqet'. Did you mean 'parquet'?",
        ),
        (["small.npz", "-t", "ill"], EXIT_USAGE, "leave --target out"),
        (["small.csv", "-t", "ill", "--training", "variant=softer"], 2, "softer"),
        (["small.csv", "-t", "ill", "--read", "delimiter=;"], EXIT_DATA, "one column only"),
        (["small.csv", "-t", "ill", "--out", "small.csv"], EXIT_OUTPUT, "is a file"),
    ],
)
def test_mistakes_end_with_a_message_and_a_code(tamiz, small_csv, tmp_path, arguments, code, message):
    (tmp_path / "small.dat").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "small.npz", X=np.ones((4, 2)), y=np.arange(4))
    before = sorted(tmp_path.iterdir())
    result = tamiz("select", *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,x\n2,x\n3,x\n", "is constant"),
        ("a,y\n1,1\n2,2\n3,high\n", "mixes numbers and text"),
        ("a,y\n1,x\n2,x\n3,z\n", "has one row only"),
        ("a,y\n,x\n,x\n,z\n,z\n", "no column left"),
        ("a,y\n1,\n2,\n", "no values at all"),
        ("a,y\n1,1.5\n2,2.5\n", "is constant|at least 4|one row only"),
        ("a,y\ninf,x\n2,x\n3,z\n4,z\n", "Column 'a' holds an infinity"),
    ],
)
def test_tables_that_cannot_be_used(tamiz, write_csv, tmp_path, text, message):
    result = tamiz("select", write_csv(text), "-t", "y", "-k", 1)
    assert result.exit_code == EXIT_DATA
    assert re.search(message, " ".join(result.stderr.split()))
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_another_run_is_never_overwritten_without_force(tamiz, small_csv, tmp_path):
    folder = tmp_path / "tamiz-small"
    folder.mkdir()
    (folder / "selected.csv").write_text("mine")
    (folder / "thesis.txt").write_text("mine too")
    arguments = ("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2)
    result = tamiz(*arguments)
    assert result.exit_code == 0
    assert "--force" in result.stderr
    assert (folder / "selected.csv").read_text() == "mine"
    assert (tmp_path / "tamiz-small-2" / "selected.csv").exists()
    assert tamiz(*arguments, "--force").exit_code == 0
    assert (folder / "selected.csv").read_text() != "mine"
    assert (folder / "thesis.txt").read_text() == "mine too"


def test_a_column_name_cannot_command_the_terminal(tamiz, write_csv):
    rows = "\n".join(f"{i % 2 + i / 1000},{'yes' if i % 2 else 'no'}" for i in range(40))
    result = tamiz("select", write_csv(f"\x1b[31m[bold]red,y\n{rows}\n"), "-t", "y", "-k", 1, "--folds", 2)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert "[bold]red" in result.stdout


def test_identifiers_are_no_categories(tamiz, small_csv, write_csv):
    lines = small_csv.read_text().splitlines()[::2]  # few enough rows for every text to be a category
    rows = [f"{'patient' if i == 0 else f'p-{i}'},{line}" for i, line in enumerate([lines[0], *lines[1:]])]
    result = tamiz("select", write_csv("\n".join(rows), "ids.csv"), "-t", "ill", "-k", 2, "--folds", 2)
    assert result.exit_code == 0, result.stderr
    assert "'patient' (a different text in every row" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "command", ["", "select", "compare", "pairs", "apply", "demo", "serve", "datasets", "reproduce"]
)
def test_help_fits_a_terminal_cuts_nothing_off_and_has_an_example(tamiz, command):
    text = tamiz(*command.split(), "--help").stdout
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "..." not in text.replace("[OPTIONS] COMMAND [ARGS]...", "")
    assert not re.search(r"--\S+ .*<(str|int range|list\[str\])>", text)  # placeholders, not types
    assert (f"Example: tamiz {command}" if command else "Exit codes") in text


@pytest.mark.parametrize("options", [(), ("-k", "auto")])
def test_without_k_the_number_is_chosen(tamiz, small_csv, tmp_path, options):
    result = tamiz("select", small_csv, "--target", "ill", *options, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    assert "Columns to keep: 2 of 8, the fewest within one standard error of the best" in " ".join(
        result.stderr.split()
    )
    assert re.search(r"2 kept +[01]\.\d{3}", result.stdout)
    record = json.loads((tmp_path / "tamiz-small" / "selected.json").read_text())
    assert record["k"] == 2
    assert {kept["column"] for kept in record["selected"]} == {"gene 2", "gene 5"}
    choice = record["choices"]["n_features_to_select"]
    assert (choice["chosen"], choice["candidates"]) == (2, [1, 2, 3, 5, 7, 8])
    assert (record["network_chosen"], record["pairs"]) == ("linear", None)
    tried = (tmp_path / "tamiz-small" / "report.html").read_text().partition('<section id="tried"')[2]
    assert f"{choice['mean'][1]:.3f}" in tried
    assert len(record["k_of_folds"]) == 3
    assert [point["k"] for point in record["curve"]] == [1, 2, 3, 5, 7, 8]


def test_auto_needs_rows_to_choose_from(tamiz, write_csv):
    rows = [f"{i},{i % 3},{'rare' if i < 2 else 'common'}" for i in range(30)]
    path = write_csv("\n".join(["a,b,y", *rows]))
    result = tamiz("select", path, "-t", "y")
    assert result.exit_code == EXIT_DATA
    assert "-k auto needs at least 3 rows of each class, and 'rare' has 2: give" in " ".join(result.stderr.split())
    assert tamiz("select", path, "-t", "y", "-k", 1).exit_code == 0
    path = write_csv("\n".join(["a,b,y", *(f"{i},{i % 3},{i / 2}" for i in range(7))]), "few.csv")
    result = tamiz("select", path, "-t", "y", "--task", "regression")
    assert "-k auto needs at least 8 rows" in " ".join(result.stderr.split())


@pytest.mark.filterwarnings("ignore:The network removes")  # random columns are compared with those kept
def test_columns_that_act_together_are_selected_compared_and_applied(tamiz, tmp_path):
    from tamiz.paper import make_xor

    X, y, truth = make_xor(200, 12, random_state=0)
    lines = [",".join([*(f"c{i}" for i in range(12)), "y"])]
    lines += [",".join([*(f"{value:.6f}" for value in row), "yes" if label else "no"]) for row, label in zip(X, y)]
    path = tmp_path / "xor.csv"
    path.write_text("\n".join(lines))
    result = tamiz(
        "select", path, "-t", "y", "-k", 2, "--network", "pairs", "--folds", 2, "--permutations", 0, "--json", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    names = {f"c{i}" for i in truth.informative}
    assert {kept["column"] for kept in record["selected"]} == names
    assert record["network_chosen"] == "pairs"
    assert [set(pair["features"]) for pair in record["pairs"]] == [names]
    assert record["pairs"][0]["strength"] > 0
    result = tamiz("apply", tmp_path / "out" / "model.tamiz", path, "--json", "-o", tmp_path / "predicted")
    assert result.exit_code == 0, result.stderr
    result = tamiz(
        "compare", path, "-t", "y", "-k", 2, "-m", "pairs,fisher", "--folds", 2, "--json", "-o", tmp_path / "cmp"
    )
    assert result.exit_code == 0, result.stderr
    assert {row["method"] for row in json.loads(result.stdout)["results"]} == {"pairs", "fisher", "random", "all"}
