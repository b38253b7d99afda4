"""``tamiz select`` and ``tamiz demo``, run as a user runs them."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pandas
import polars
import pytest
from sklearn.datasets import dump_svmlight_file

from tamiz import E2EFSClassifier, __version__
from tamiz.evaluation.metrics import SCORINGS
from tamiz.tables.load import load_rows

QUICK = "--folds 2 --permutations 0 --no-report"


def read_list(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def columns_of(record):
    return {kept["column"] for kept in record["selected"]}


def test_finds_the_columns_and_writes_everything(tamiz, small_csv, tmp_path):
    """Results to standard output in 80 columns, remarks to standard error, five files."""
    result = tamiz("select small.csv --target ill -k 2 --folds 3 --permutations 5")
    folder = tmp_path / "tamiz-small"
    names = ["model.tamiz", "reduced.csv", "report.html", "selected.csv", "selected.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    kept = read_list(folder / "selected.csv")
    assert {row["column"]: float(row["weight"]) > 0 for row in kept} == {"gene 2": True, "gene 5": False}
    assert [row["rank"] for row in kept] == ["1", "2"]
    record = json.loads((folder / "selected.json").read_text())
    assert (record["tamiz"], record["task"]) == (__version__, "classification")
    assert record["scores"]["kept"]["value"] > 0.85
    assert record["scores"]["difference_random"]["low"] is not None
    assert 0 < record["stability"] <= 1
    assert (folder / "reduced.csv").read_text().splitlines()[0] == "gene 2,gene 5,ill"
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "…" not in result.stdout
    assert "Balanced accuracy over 3 held-out folds" in result.stdout
    for pattern in (r"all 8 +0\.\d{3} +0\.\d{3} to ", r"2 kept +[01]\.\d{3}", r"2 random +0\.\d{3}"):
        assert re.search(pattern, result.stdout)
    assert "tamiz-small/report.html" in result.stdout
    assert "Task: classification of 'ill'" in result.stderr
    assert "--task" in result.stderr
    # The verdict and the null stand in terminal, JSON and page.
    page, words = (folder / "report.html").read_text(), " ".join(result.stdout.split())
    assert record["null"]["n_permutations"] == 5
    assert record["verdict"].startswith(("2 of 8 columns predict", "No sign", "None of 5 shuffled targets"))
    assert all(record["verdict"] in text for text in (words, page))
    assert "shuffled targets give" in words
    assert "gene 5" in page


def test_fdr_finds_the_true_columns(tamiz, write_csv, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 40))
    y = X[:, :5] @ [2, -2, 2, 2, -2] + random.normal(size=200)
    write_csv({**{f"x{i}": X[:, i] for i in range(40)}, "y": y})
    result = tamiz("select table.csv -t y --fdr 0.2 --folds 3 --permutations 0")
    assert "Columns to keep: 5 of 40, which pass at a false discovery rate of 0.2." in result.words
    kept = read_list(tmp_path / "tamiz-table" / "selected.csv")
    assert {row["column"] for row in kept} == {"x0", "x1", "x2", "x3", "x4"}
    assert all(0 < float(row["q_value"]) <= 0.2 for row in kept)
    record = json.loads((tmp_path / "tamiz-table" / "selected.json").read_text())
    assert (record["k"], record["settings"]["fdr"], record["settings"]["k"]) == (5, 0.2, None)
    assert [one["q_value"] for one in record["selected"]] == [float(row["q_value"]) for row in kept]
    assert record["scores"]["kept"]["value"] > 0.9
    assert (tmp_path / "tamiz-table" / "report.html").read_text().count('data-kind="q"') == 5


def test_json_quiet_and_the_same_seed(tamiz, small_csv, tmp_path):
    result = tamiz(f"select small.csv -t ill -k 3 {QUICK} --seed 7 --json --out a")
    assert {"gene 2", "gene 5"} <= columns_of(result.record)
    assert result.record["files"]["model"] == "a/model.tamiz"
    assert "Task:" in result.stderr
    result = tamiz(f"select small.csv -t ill -k 3 {QUICK} --seed 7 --quiet --out b")
    assert (result.stdout, result.stderr) == ("", "")
    for name in ("selected.csv", "model.tamiz", "reduced.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_selection_is_that_of_the_estimator(tamiz, small_csv, small_frame, tmp_path):
    tamiz(f"select small.csv -t ill -k 3 {QUICK} --seed 3 --training variant=hard")
    X = small_frame.iloc[:, :8].to_numpy(np.float32)
    estimator = E2EFSClassifier(3, variant="hard", class_weight="balanced", random_state=3).fit(X, small_frame["ill"])
    found = [row["column"] for row in read_list(tmp_path / "tamiz-small" / "selected.csv")]
    by_contribution = np.argsort(-np.abs(estimator.coef_).max(axis=0))[:3]
    assert found == [f"gene {i}" for i in by_contribution]


@pytest.mark.parametrize("command", ["select -k 2 --permutations 0", "compare -k 2 --methods fisher", "pairs"])
def test_results_stand_before_the_report_is_written(tamiz, small_csv, tmp_path, monkeypatch, command):
    def fail(*_, **__):
        raise MemoryError("the page is too large")

    monkeypatch.setattr("tamiz.report.page.render", fail)
    command, _, options = command.partition(" ")
    tamiz(f"{command} {small_csv} --target ill --out found -q {options}", code=5)
    written = {path.name for path in (tmp_path / "found").iterdir()}
    assert (
        written
        >= {"select": {"selected.csv", "model.tamiz"}, "compare": {"compare.json"}, "pairs": {"pairs.csv"}}[command]
    )
    assert "report.html" not in written
    assert not list(tmp_path.glob(".*"))


def test_text_gaps_dates_and_odd_names(tamiz, write_csv, tmp_path):
    random = np.random.default_rng(0)
    first = np.arange(60) % 2 == 0
    red, other = first ^ (np.arange(60) % 10 == 0), random.choice(["blue", "green"], 60)
    columns = {
        "<script>alert(1)</script>": random.normal(size=60),
        "=cmd()": random.normal(size=60),
        "colour": np.where(red, "red", other),
        "when": [f"2024-01-{i % 28 + 1:02d}" for i in range(60)],
        "void": None,
        'größe, "cm"': np.where(np.arange(60) % 7 == 0, np.nan, random.normal(size=60) + 3 * first),
        "class": np.where(first, "a", "b"),
    }
    write_csv(columns, "odd names.csv")
    result = tamiz("select 'odd names.csv' -t class -k 2 --folds 3 --permutations 0")
    for words in (
        "Column 'when' holds dates: read as days since the first",
        "Left out: 'void' (no values at all)",
        "Encoded: 'colour'",
        "Imputed: 9 missing numbers in 1 column",
    ):
        assert words in result.words
    folder = tmp_path / "tamiz-odd names"
    assert {row["column"] for row in read_list(folder / "selected.csv")} == {"colour", 'größe, "cm"'}
    assert "<script>alert(1)" not in (folder / "report.html").read_text()
    assert (folder / "reduced.csv").read_text().splitlines()[0] == 'colour,"größe, ""cm""",class'


@pytest.mark.parametrize(("name", "listed"), [("=1+1", "'=1+1"), ("\x1b[31m[bold]red", None)])
def test_a_name_commands_neither_a_spreadsheet_nor_the_terminal(tamiz, write_csv, tmp_path, name, listed):
    write_csv({name: [i % 2 + i / 1000 for i in range(40)], "y": ["no", "yes"] * 20})
    result = tamiz(f"select table.csv -t y -k 1 {QUICK} -o a")
    assert "\x1b" not in result.stdout
    assert name.removeprefix("\x1b[31m") in result.stdout
    if listed is not None:
        assert read_list(tmp_path / "a" / "selected.csv")[0]["column"] == listed
        assert json.loads((tmp_path / "a" / "selected.json").read_text())["selected"][0]["column"] == name


@pytest.mark.parametrize("kind", ["parquet", "npz", "svm", "tsv"])
def test_other_formats_give_the_same_selection(tamiz, small_frame, tmp_path, kind):
    X, y, path = small_frame.iloc[:, :8].to_numpy(), (small_frame["ill"] == "yes").to_numpy(), tmp_path / f"t.{kind}"
    if kind == "parquet":
        polars.DataFrame(small_frame.to_dict("list")).write_parquet(path)
    elif kind == "npz":
        np.savez(path, X=X, y=y, names=np.array(small_frame.columns[:8], dtype=str))
    elif kind == "svm":
        dump_svmlight_file(X, y.astype(int), str(path), zero_based=False)
    else:
        small_frame.to_csv(path, index=False, sep="\t")
    target = "-t ill" if kind in ("parquet", "tsv") else ""
    record = tamiz(f"select t.{kind} {target} -k 2 {QUICK} -o out --json").record
    assert columns_of(record) == ({"3", "6"} if kind == "svm" else {"gene 2", "gene 5"})
    assert (tmp_path / "out" / ("reduced.parquet" if kind == "parquet" else "reduced.csv")).exists()


def test_regression(tamiz, write_csv, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 6))
    write_csv({**dict(zip("abcdef", X.T)), "yield": 100 + 30 * X[:, 1] + random.normal(size=80)})
    result = tamiz("select table.csv -t -1 -k 0.2 --folds 4 --permutations 0")
    assert "Task: regression on 'yield'" in result.stderr
    assert "R² over 4 held-out folds" in result.stdout
    record = json.loads((tmp_path / "tamiz-table" / "selected.json").read_text())
    assert columns_of(record) == {"b"}
    assert record["scores"]["kept"]["value"] > 0.9


def test_ignored_columns_identifiers_and_fewer_folds_where_rows_are_rare(tamiz, write_csv, small_frame):
    i = np.arange(15)
    write_csv({"good": i % 5, "copy": i % 5, "noise": i * 7 % 11, "y": np.where(i % 5 < 1, "a", "b")})
    result = tamiz("select table.csv -t y -k 1 --ignore copy --permutations 0 --no-report --json")
    assert "Folds: 3 instead of 5, since class 'a' has 3 rows only" in result.words
    assert columns_of(result.record) == {"good"}
    a, b = np.random.default_rng(0).normal(size=(2, 8)).round(3)
    write_csv({"a": a, "b": b, "y": a}, "few.csv")
    result = tamiz("select few.csv -t y -k 1 --permutations 0 --no-report")
    assert "Folds: 4 instead of 5, for two rows in each of them." in result.words
    half = small_frame[::2]  # few enough rows for every text to be a category
    write_csv(half.assign(patient=[f"p-{i}" for i in range(len(half))]), "ids.csv")
    assert "'patient' (a different text in nearly every row" in tamiz(f"select ids.csv -t ill -k 2 {QUICK}").words


def test_another_run_is_never_overwritten_without_force(tamiz, small_csv, tmp_path):
    folder = tmp_path / "tamiz-small"
    folder.mkdir()
    (folder / "selected.csv").write_text("mine")
    (folder / "thesis.txt").write_text("mine too")
    assert "--force" in tamiz(f"select small.csv -t ill -k 2 {QUICK}").words
    assert (folder / "selected.csv").read_text() == "mine"
    assert (tmp_path / "tamiz-small-2" / "selected.csv").exists()
    tamiz(f"select small.csv -t ill -k 2 {QUICK} --force")
    assert (folder / "selected.csv").read_text() != "mine"
    assert (folder / "thesis.txt").read_text() == "mine too"


def test_help_and_version(tamiz):
    commands = ("select", "compare", "pairs", "apply", "demo", "serve", "datasets", "reproduce")
    for command in ("", *commands, "warm-up"):
        text = tamiz(f"{command} --help").stdout
        assert all(len(line) <= 80 for line in text.splitlines())
        assert "..." not in text.replace("[OPTIONS] COMMAND [ARGS]...", "")
        assert not re.search(r"--\S+ .*<(str|int range|list\[str\])>", text)  # placeholders, not types
        assert (f"Example: tamiz {command}" if command else "Exit codes") in text
    assert all(f" {name} " in tamiz("--help").stdout for name in commands)
    assert all(name in tamiz("select --help").stdout for name in SCORINGS if name != "balanced_accuracy")
    assert tamiz("--version").stdout == f"tamiz {__version__}\n"


@pytest.mark.parametrize("option", ["", "-k auto"])
def test_without_k_the_number_is_chosen(tamiz, small_csv, tmp_path, option):
    result = tamiz(f"select small.csv --target ill {option} --folds 3 --permutations 0")
    assert "Columns to keep: 2 of 8, the fewest within one standard error of the best" in result.words
    assert "Network: linear, chosen by balanced accuracy on held-out rows of inner folds: linear " in result.words
    assert re.search(r"2 kept +[01]\.\d{3}", result.stdout)
    record = json.loads((tmp_path / "tamiz-small" / "selected.json").read_text())
    assert (record["k"], columns_of(record)) == (2, {"gene 2", "gene 5"})
    choice = record["choices"]["n_features_to_select"]
    assert (choice["chosen"], choice["candidates"]) == (2, [1, 2, 3, 5, 7, 8])
    assert (record["network_chosen"], record["pairs"]) == ("linear", None)
    tried = (tmp_path / "tamiz-small" / "report.html").read_text().partition('<section id="tried"')[2]
    assert f"{choice['mean'][1]:.3f}" in tried
    assert len(record["k_of_folds"]) == 3
    assert [point["k"] for point in record["curve"]] == [1, 2, 3, 5, 7, 8]


@pytest.mark.filterwarnings("ignore:The network removes")  # random columns are compared with those kept
def test_columns_that_act_together_are_selected_compared_and_applied(tamiz, write_csv):
    from tamiz.paper import make_ground_truth

    X, y, truth = make_ground_truth("xor", 200, 8, random_state=0)
    write_csv({**{f"c{i}": X[:, i] for i in range(8)}, "y": np.where(y, "yes", "no")}, "xor.csv")
    assert (
        "chosen by balanced accuracy on held-out rows of inner folds: linear 0.379, pair search"
        in tamiz(f"select xor.csv -t y -k 2 {QUICK}").words
    )
    record = tamiz(f"select xor.csv -t y -k 2 --network pairs {QUICK} --json -o out").record
    names = {f"c{i}" for i in truth.informative}
    assert (columns_of(record), record["network_chosen"]) == (names, "pairs")
    assert [set(pair["features"]) for pair in record["pairs"]] == [names]
    assert record["pairs"][0]["strength"] > 0
    tamiz("apply out/model.tamiz xor.csv --json")
    record = tamiz("compare xor.csv -t y -k 2 -m pairs,fisher --folds 2 --json").record
    assert {row["method"] for row in record["results"]} == {"pairs", "fisher", "random", "all"}


def test_demo_lets_hardly_any_noise_through(tamiz, tmp_path):
    result, folder = tamiz("demo"), tmp_path / "tamiz-demo"
    assert re.search("Of the 8 columns kept, [01] are noise", result.stdout)
    assert "tamiz-demo/report.html" in result.stdout
    assert json.loads((folder / "selected.json").read_text())["scores"]["kept"]["value"] > 0.9
    first, second = (folder / "breast-cancer-with-noise.csv").read_text().splitlines()[:2]
    assert len(first.split(",")) == len(second.split(",")) == 331


# ---- Folds, weights and test files ------------------------------------------------------------------------------------
@pytest.fixture
def patients(write_csv):
    """20 patients of 4 rows each: columns of noise that tell the patient, a date, a weight and a target per patient."""
    random = np.random.default_rng(0)
    patient = np.repeat(np.arange(20), 4)
    X = random.normal(size=(20, 12))[patient] + 0.05 * random.normal(size=(80, 12))
    frame = pandas.DataFrame(X, columns=[f"g{i}" for i in range(12)]).assign(
        patient=[f"p{p:02d}" for p in patient],
        day=[f"2024-{i % 12 + 1:02d}-{i // 12 + 1:02d}" for i in range(80)],
        weight=np.where(np.arange(80) % 3, 2, 1),
        ill=np.resize(["no", "yes"], 20)[patient],
    )
    write_csv(frame, "patients.csv")
    return frame


def test_groups_time_weights_score_loss_and_class_weight(tamiz, patients):
    asked = f"select patients.csv -t ill -k 4 {QUICK} --force -o out --json"
    apart = tamiz(f"{asked} -i day -i weight -i patient --training loss=logistic --training class_weight=none").record
    together = tamiz(f"{asked} -i day -i weight --groups patient --training loss=logistic").record
    assert apart["scores"]["kept"]["value"] > together["scores"]["kept"]["value"] + 0.05
    assert "patient" not in columns_of(together)
    past = tamiz(f"{asked} --time day --weights weight -i patient --scoring auc").record
    assert (past["n_features"], past["scores"]["metric"]) == (12, "AUC")
    assert not columns_of(past) & {"day", "weight", "patient"}
    record = tamiz(
        "compare patients.csv -t ill -k 2 --folds 3 -m fisher,mim,random --json --groups patient --weights weight "
        "--scoring roc_auc -i day"
    ).record
    assert record["metric"] == "AUC"
    assert all(0 <= entry["score"] <= 1 for entry in record["results"])


def test_a_test_file_is_scored_by_the_final_model(tamiz, patients, write_csv):
    write_csv(patients[:60], "train.csv")
    write_csv(patients[60:], "new.csv")
    result = tamiz(f"select train.csv -t ill -k 4 {QUICK} -i day -i weight --groups patient --test new.csv -o out")
    assert "On the 20 rows of new.csv: " in result.stdout
    with open("out/selected.json") as file:
        test = json.load(file)["test"]
    assert test["n_rows"] == 20
    assert 0 <= test["low"] <= test["value"] <= test["high"] <= 1


def test_groups_and_a_test_file_are_read_as_the_table_is(tamiz, write_csv):
    """Lines above the table, a decimal comma and a word for missing values hold for every file of the command."""
    random = np.random.default_rng(0)
    lines = ["written by a machine", "a;b;patient;ill"]
    for i, value in enumerate(random.normal(size=48)):
        group, label = "none" if i < 4 else f"p{i // 4}", "yes" if value > 0 else "no"
        lines.append(f"{value:.3f};{random.normal():.3f};{group};{label}".replace(".", ","))
    write_csv("\n".join(lines) + "\n")
    reading = "--read skip_rows=1 --read 'delimiter=;' --read decimal=, --read na_values="
    record = tamiz(
        f"select table.csv -t ill -k 1 --groups patient --test table.csv --folds 3 --permutations 0 --json {reading}"
    ).record
    assert columns_of(record) == {"a"}
    assert record["test"] is not None


def test_noise_copies_and_running_numbers_are_told(tamiz, write_csv):
    noise = np.random.default_rng(3).normal(size=(40, 30))
    write_csv({**{f"g{i}": noise[:, i] for i in range(30)}, "ill": ["no", "yes"] * 20})
    record = tamiz("select table.csv -t ill -k 4 --folds 2 --permutations 8 --no-report --json").record
    assert record["verdict"].startswith("No sign of signal")
    assert record["null"]["p_value"] > 0.05
    X = np.tile(np.random.default_rng(0).normal(size=(15, 8)), (4, 1))
    write_csv(
        {"number": range(1, 61), **dict(zip("abcdefgh", X.T)), "ill": (["yes"] * 7 + ["no"] * 8) * 4}, "copies.csv"
    )
    for option, message in (("-i number", "45 of 60 rows are copies of other rows"), ("", "a running number")):
        record = tamiz(f"select copies.csv -t ill -k 4 {QUICK} --json {option}").record
        assert any(message in alert["message"] for alert in record["alerts"])


# ---- Columns of categories, forced columns, indicators ----------------------------------------------------------------
@pytest.fixture
def colours(write_csv):
    random = np.random.default_rng(0)
    colour, age = random.choice(["red", "green", "blue"], 90), random.normal(size=90)
    ill = np.where(age + 2 * (colour == "red") - 1 + 0.3 * random.normal(size=90) > 0, "yes", "no")
    age[::9] = np.nan
    columns = {
        "age": age,
        "dose": random.normal(size=90),
        "colour": colour,
        "noise": random.normal(size=90),
        "ill": ill,
    }
    write_csv(columns, "colours.csv")
    return columns


def test_k_counts_columns_of_the_file(tamiz, colours, tmp_path):
    record = tamiz(f"select colours.csv -t ill -k 2 {QUICK} -o out --json").record
    assert (record["k"], record["n_features"], columns_of(record)) == (2, 4, {"age", "colour"})
    assert {len(row["levels"]) for row in record["selected"]} == {0, 3}
    assert (tmp_path / "out" / "reduced.csv").read_text().splitlines()[0] == "age,colour,ill"


@pytest.mark.parametrize(
    ("options", "kept"),
    [("-k 3 --keep age --drop noise", {"age", "dose", "colour"}), ("-k 2 --network pairs", {"age", "colour"})],
)
def test_constraints_indicators_and_pairs_travel_with_the_model(tamiz, colours, tmp_path, options, kept):
    record = tamiz(f"select colours.csv -t ill --missing indicator {QUICK} -o out --json {options}").record
    assert columns_of(record) == kept
    tamiz("apply out/model.tamiz colours.csv -o applied")
    predicted = pandas.read_csv(tmp_path / "applied" / "predictions.csv")["predicted ill"]
    assert np.mean(predicted == colours["ill"]) > 0.8


# ---- Several targets --------------------------------------------------------------------------------------------------
@pytest.fixture
def frame(write_csv):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 6))
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(
        height=100 * X[:, 1] + random.normal(size=60), mass=X[:, 3] - X[:, 1] + 0.1 * random.normal(size=60)
    )
    write_csv(frame, "t.csv")
    return frame


@pytest.mark.parametrize("options", ["-t height,mass -k 2", "-t height -t mass -k auto"])
def test_several_targets_from_the_file_to_the_predictions(tamiz, frame, tmp_path, options):
    record = tamiz(f"select t.csv {options} --folds 2 --permutations 2 --test t.csv -o run --json").record
    assert record["targets"] == ["height", "mass"]
    assert {"b", "d"} <= columns_of(record)
    assert not {"height", "mass"} & columns_of(record)  # neither target is a feature
    assert record["test"]["value"] > 0.8
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "height, mass" in page
    assert "Several targets: the score is over all 2 of them" in page
    assert (tmp_path / "run" / "reduced.csv").read_text().splitlines()[0].endswith("height,mass")
    tamiz("apply run/model.tamiz t.csv -o new -q")
    found = pandas.read_csv(tmp_path / "new" / "predictions.csv")
    assert list(found) == ["row", "predicted height", "predicted mass"]
    for name in ("height", "mass"):
        assert f"Predicted against actual, {name}" in page
        assert np.corrcoef(found[f"predicted {name}"], frame[name])[0, 1] > 0.9


def test_several_targets_may_be_repeated_and_have_any_unit(tamiz, frame, write_csv):
    write_csv(frame.assign(mass=1000 * frame["mass"]), "grams.csv")
    first, repeated, grams = (
        tamiz(f"select {file} {targets} -k 2 {QUICK} --json").record
        for file, targets in (
            ("t.csv", "-t height,mass"),
            ("t.csv", "--target height --target mass"),
            ("grams.csv", "-t height,mass"),
        )
    )
    assert all(first[key] == repeated[key] for key in ("targets", "selected", "scores"))
    weights = [{kept["column"]: kept["weight"] for kept in record["selected"]} for record in (first, grams)]
    assert weights[0] == pytest.approx(weights[1], rel=1e-3)


def test_several_targets_are_read_as_one_is(frame, write_csv):
    """A column whose name holds a comma goes first; rows without a value go; commas may be decimal."""
    rows, names, _ = load_rows(write_csv(frame.rename(columns={"a": "height,mass"})), "height,mass")
    assert (names, rows.y.ndim) == (["height,mass"], 1)
    rows, names, _ = load_rows(write_csv(frame.rename(columns={"mass": "mass, in g"})), ["height", "mass, in g"])
    assert names == ["height", "mass, in g"]
    np.testing.assert_allclose(rows.y, frame[["height", "mass"]], rtol=1e-6)
    frame.loc[3, "height"] = np.nan
    rows, names, _ = load_rows(write_csv(frame, sep=";", decimal=","), "height,8", reading={"decimal": ","})
    assert (names, "mass" in rows.names) == (["height", "mass"], False)
    np.testing.assert_allclose(rows.y, frame[["height", "mass"]].drop(3), rtol=1e-6)


def test_a_class_of_two_rows_is_no_obstacle(tamiz, write_csv):
    random = np.random.default_rng(0)
    columns = {"a": random.normal(size=60), "b": random.normal(size=60), "y": ["rare"] * 2 + ["one", "two"] * 29}
    write_csv(columns, "rare.csv")
    result = tamiz("select rare.csv -t y -k 1 --permutations 0 --no-report")
    assert "Network: linear, since a class has fewer than 3 rows" in result.words
    assert "Folds: 2 instead of 5" in result.words
    assert "Folds: 2 instead of 5" in tamiz("compare rare.csv -t y -k 1 -m fisher").words
    assert "The folds chose" not in result.stdout


def test_numbers_of_columns_that_the_folds_chose_are_told(tamiz, write_csv, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 8))
    write_csv(
        {**{f"x{j}": X[:, j] for j in range(8)}, "y": X[:, :4].sum(axis=1) + 2 * random.normal(size=60)}, "few.csv"
    )
    result = tamiz("select few.csv -t y --network linear --permutations 0")
    sizes = json.loads((tmp_path / "tamiz-few" / "selected.json").read_text())["k_of_folds"]
    assert len({*sizes}) > 1
    words = f"The folds chose {', '.join(map(str, sizes))} columns for themselves."
    assert words in " ".join(result.stdout.split())
    assert words in (tmp_path / "tamiz-few" / "report.html").read_text()
