"""Tables of the live page, what may be asked of them, and that the answers are those of the library."""

from __future__ import annotations

import ast
import json

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from typer.testing import CliRunner

import tamiz
from tamiz.cli.main import app
from tamiz.errors import TableArgumentError
from tamiz.serve.fits import FitRequest, JobCancelled, LiveJob, fit_request, python_code, read_request, run_request
from tamiz.serve.tables import MOST_TABLES, LiveError, LiveTable, LiveTables, TargetData


@pytest.fixture(scope="module")
def data(small_file) -> TargetData:
    return LiveTable(small_file).with_target("ill")


def answer(data, request):
    events = []
    LiveJob(lambda job: run_request(data, request, job), events.append).run()
    assert events.pop() is None
    return [event for event in events if event[0] != "progress"], events


BAD_RECORDS = [None, [], {}, {"m": 0}, {"m": True}, {"m": 1.5}, {"m": 1, "target": 3}, {"m": 1, "network": "huge"}]


@pytest.mark.parametrize("record", [*BAD_RECORDS, {"m": 1, "keep": "a"}, {"m": 1, "drop": [1]}])
def test_what_cannot_be_asked_is_named(record):
    with pytest.raises(LiveError):
        read_request(record)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (FitRequest(1, keep=("gene 1", "gene 2")), "more than n_features_to_select=1"),
        (FitRequest(1, keep=("gene 1",), drop=("gene 1",)), "keep and drop are at odds"),
        (FitRequest(1, keep=("nobody",)), "keep: there is no column 'nobody'"),
        (FitRequest(1, drop=tuple(f"gene {i}" for i in range(12))), "drop leaves no feature"),
    ],
)
def test_requests_that_the_table_cannot_fulfil(data, request_, message):
    with pytest.raises(ValueError, match=message):
        fit_request(data, request_)


def test_the_parts_of_an_answer_come_in_order(data):
    events, all_events = answer(data, FitRequest(2, "ill"))
    assert [kind for kind, _ in events] == ["fit", "heat", "score", "curve", "done"]
    assert {row["name"] for row in events[0][1]["kept"]} == {"gene 2", "gene 5"}
    assert {row["direction"] for row in events[0][1]["kept"]} == {"higher → yes", "higher → no"}
    score = events[2][1]
    assert 0.8 < score["score"] <= 1
    assert [name for name, _ in score["others"]] == ["all", "random"]
    assert score["shares"] == {"gene 2": 1.0, "gene 5": 1.0}
    for words in ("chance 0.500", "all 0.", "random 0.", "M = 2"):
        assert words in events[3][1]["wide"]
    assert any(kind == "progress" and event["stage"] == "scoring on folds" for kind, event in all_events)
    every = answer(data, FitRequest(12, "ill"))[0][3][1]["wide"]  # all and random are the point of M = 12 itself
    assert "M = 12" in every
    assert "random 0." not in every


def test_scores_are_those_of_the_library(data, small_file):
    events, _ = answer(data, FitRequest(3, "ill"))
    study = tamiz.select(small_file, target="ill", k=3, permutations=0)
    assert events[2][1]["score"] == pytest.approx(study.score.value)
    assert [row["name"] for row in events[0][1]["kept"]] == study.selection.names


def test_nothing_is_sent_for_a_job_that_is_no_longer_wanted(data):
    events = []
    job = LiveJob(lambda job: run_request(data, FitRequest(2, "ill"), job), events.append)
    job.cancel()
    job.run()
    assert events == [None]


@pytest.mark.parametrize(
    "request_", [FitRequest("auto", "ill"), FitRequest(2, "ill", "auto"), FitRequest(2, "ill", "mlp")]
)
def test_choices_and_fits_end_when_they_are_no_longer_wanted(small_file, request_):
    fresh, calls = TargetData(small_file, "ill", {}), []

    def check(*_):
        calls.append(1)
        raise JobCancelled

    with pytest.raises(JobCancelled):
        fit_request(fresh, request_, check)
    assert len(calls) == 1


def test_an_evaluation_ends_between_its_fits(data):
    events, wanted = [], 1

    def send(event):
        events.append(event)
        if event is not None and event[0] == "progress" and event[1]["stage"] == "scoring on folds":
            nonlocal wanted
            wanted -= 1
            if not wanted:
                job.cancel()

    job = LiveJob(lambda job: run_request(data, FitRequest(4, "ill"), job), send)
    job.run()
    assert "score" not in [event[0] for event in events if event is not None]


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "iris", "diabetes", "noise"])
def test_estimator_command_and_page_choose_the_same_columns(name, tmp_path):
    random = np.random.default_rng(0)
    if name == "noise":
        X, y = random.normal(size=(90, 12)), np.arange(90) % 2
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    labels = y if name == "diabetes" else [f"class {one}" for one in y]
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]).assign(y=labels)
    frame.to_csv(tmp_path / "table.csv", index=False)
    data = LiveTable(tmp_path / "table.csv").with_target("y")
    fitted = fit_request(data, FitRequest("auto", "y"))[1]
    make = tamiz.E2EFSRegressor if name == "diabetes" else tamiz.E2EFSClassifier
    estimator = make("auto", random_state=0).fit(data.whole.X, data.whole.y)
    assert fitted.get_support().tolist() == estimator.get_support().tolist()
    options = "--target y -k auto --network linear --folds 2 --permutations 0 --no-report --json --jobs 1"
    result = CliRunner().invoke(app, f"select {tmp_path}/table.csv {options} --out {tmp_path}/out")
    assert result.exit_code == 0, result.output
    kept = {one["feature"] for one in json.loads(result.stdout)["selected"]}
    assert kept == {f"c{i}" for i in estimator.get_support(indices=True)}


def test_a_column_of_categories_is_one_unit(csv_of):
    data = LiveTable(csv_of(60, 6, "mixed.csv", extra=True)).with_target("ill")
    events, _ = answer(data, FitRequest(3, keep=("colour",), drop=("gene 2",)))
    shown = events[0][1]
    names = [one["name"] for one in shown["kept"]]
    assert len(names) == shown["m"] == 3
    assert shown["columns"] == 7
    assert "colour" in names
    assert "gene 2" not in names + shown["next"]
    assert "colour=" not in str(events)


def test_the_code_names_the_real_file_and_repeats_the_fit(csv_of, tmp_path, monkeypatch, capsys):
    name = "it's, 50% & more (1).csv"
    content = csv_of(60, 6, "mixed.csv", extra=True).read_bytes()
    tables = LiveTables()
    try:
        path = tables.new_file(name)
        path.write_bytes(content)
        _, table = tables.add(path, name)
        request = FitRequest(3, "gene 5", keep=("colour",), drop=("gene 1",))
        shown = answer(table.with_target("gene 5"), request)[0][0][1]["kept"]
        code = python_code(table, request)
    finally:
        tables.close()
    ast.parse(code)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    exec(code, {})
    assert ast.literal_eval(capsys.readouterr().out.strip()) == [one["name"] for one in shown]
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(("n_rare", "n_folds"), [(2, 2), (1, 0)])
def test_folds_are_fewer_for_a_rare_class_and_none_for_a_single_row(tmp_path, n_rare, n_folds):
    path = tmp_path / "rare.csv"
    lines = (f"{i / 7},{i * 7 % 5},{'yes' if i < n_rare else 'no'}" for i in range(20))
    path.write_text("\n".join(["a,b,ill", *lines]))
    assert len(LiveTable(path).with_target("ill").folds) == n_folds


def test_leaks_and_rare_classes_are_told(tmp_path):
    generator = np.random.default_rng(0)
    y = np.resize(["left", "stayed"], 120)
    frame = pd.DataFrame({"a": generator.normal(size=120), "tickets": np.where(y == "left", 3.0, 0.0), "fee": "€ 3"})
    frame.loc[::3, "fee"] = "€ 4.50"
    frame.assign(status=[*["moved"] * 4, *y[4:]]).to_csv(tmp_path / "left.csv", index=False)
    data = LiveTable(tmp_path / "left.csv").with_target("status")
    parts = dict(answer(data, FitRequest(1, "status"))[0])
    assert [text.split(" alone")[0] for text in parts["score"]["alerts"][:1]] == ["Column 'tickets'"]
    assert "Class 'moved' of the target has 4 rows" in parts["fit"]["alerts"][0]
    assert not any("`" in text for text in parts["score"]["alerts"])


def test_old_tables_go_first_and_their_files_with_them(small_file):
    tables = LiveTables()
    try:
        keys = []
        for _ in range(MOST_TABLES + 1):
            path = tables.new_file("a.csv")
            path.write_bytes(small_file.read_bytes())
            keys.append(tables.add(path, "a.csv")[0])
            if len(keys) > 1:
                tables.find(keys[1])
        with pytest.raises(LiveError, match="Open the file again"):
            tables.find(keys[0])
        assert not (tables.folder / keys[0]).exists()
        assert tables.find(keys[1])[1].name == "a.csv"
    finally:
        tables.close()
    assert not tables.folder.exists()


def test_the_task_of_the_command_is_taken(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["a,y", *(f"{i / 7},{i % 3}" for i in range(30))]))
    tables = LiveTables(path, "y", {"task": "regression"})
    try:
        assert tables.find("first")[1].with_target("y").task == "regression"
        assert "task='regression'" in python_code(tables.find("first")[1], FitRequest(1, "y"))
    finally:
        tables.close()


def test_the_file_of_the_command_is_checked_first_and_stays_as_it_was_read(small_file):
    tables = LiveTables(small_file, "-1")
    try:
        assert tables.find("first")[1].target == "ill"
        key, again = tables.read_again("first", {"header": False})
        assert key != "first"
        assert (again.n_rows, tables.find("first")[1].n_rows) == (61, 60)  # other pages read it as before
        tables.discard(small_file)
        assert small_file.exists()
    finally:
        tables.close()
    with pytest.raises(TableArgumentError, match="no target 'sick'"):
        LiveTables(small_file, "sick")
