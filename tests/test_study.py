"""`select` returns a study: one record that command, report and live page show, in columns of the table."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from tamiz import select
from tamiz.errors import TableError


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(0)
    y = np.resize(["no", "yes"], 90)
    table = pandas.DataFrame(generator.normal(size=(90, 6)), columns=list("abcdef"))
    table["b"] += 1.5 * (y == "yes")
    table["colour"] = np.where(
        (y == "yes") ^ (generator.random(90) < 0.2), "red", generator.choice(["blue", "green"], 90)
    )
    table["patient"], table["day"] = (
        np.arange(90) // 3,
        pandas.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d"),
    )
    table["weight"] = 1000.0 + generator.random(90)
    table["ill"] = y
    return table


FEATURES = [*"abcdef", "colour"]


def test_a_study_counts_columns_and_is_plain_data(frame, tmp_path):
    study = select(frame[[*FEATURES, "ill"]], "ill", 2, permutations=19, cv=3)
    assert study.evaluation.names == FEATURES
    assert sorted(study.selection.names) == ["b", "colour"]
    assert study.selection.support.shape == (7,)
    colour = next(one for one in study.kept if one["column"] == "colour")
    assert {level["level"] for level in colour["levels"]} == {"blue", "green", "red"}
    assert colour["weight"] is None
    record = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert (record["k"], record["n_features"], record["task"]) == (2, 7, "classification")
    assert record["verdict"] == study.verdict
    assert record["scores"]["kept"]["value"] == study.score.value
    assert [point["k"] for point in record["curve"]] == [size for size, _ in study.curve]
    assert set(study.models) == {size for size, _ in study.curve} - {2}
    assert all(study.selection_of(model).support.sum() == size for size, model in study.models.items())
    assert np.mean(study.predict(frame) == frame["ill"]) > 0.7
    files = study.save(tmp_path)
    assert {*files.values()} >= {"selected.csv", "selected.json", "model.tamiz"}
    assert all((tmp_path / name).is_file() for name in files.values())


@pytest.mark.parametrize("roles", [{"groups": "patient"}, {"time": "day"}, {"weights": "weight"}])
def test_a_file_and_a_frame_give_the_same_study(frame, tmp_path, roles):
    path = tmp_path / "table.csv"
    table = frame[[*FEATURES, *roles.values(), "ill"]]
    table.to_csv(path, index=False)
    shared = {"k": 2, "cv": 3, "permutations": 0, **roles}
    of_file, of_frame = select(path, "ill", test=path, **shared), select(table, "ill", **shared)
    assert of_file.selection.names == of_frame.selection.names
    assert of_file.score.value == pytest.approx(of_frame.score.value)
    assert of_file.test["n_rows"] == 90
    assert of_file.test["low"] < of_file.test["value"] < of_file.test["high"]
    for name in ("groups", "time", "sample_weight"):
        given = getattr(of_file.rows, name)
        assert (given is None) == (getattr(of_frame.rows, name) is None)
    if "weights" in roles:  # the offset of 1000 is not lost
        assert of_file.rows.sample_weight == pytest.approx(frame["weight"])


def test_arrays_budgets_and_several_targets(frame):
    X = frame[list("abcdef")].to_numpy()
    study = select(X, X[:, 0] - X[:, 3], 2, permutations=0, cv=3)
    assert sorted(study.selection.names) == ["x0", "x3"]
    assert study.predict(X).shape == (90,)
    dear = select(frame[[*FEATURES, "ill"]], "ill", budget=3.0, costs={"colour": 5.0}, permutations=0, cv=3)
    assert "colour" not in dear.selection.names
    assert dear.curve == []
    both = select(frame[list("abcdef")], ["a", "b"], 2, permutations=0, cv=3)
    assert both.targets == ["a", "b"]
    assert both.evaluation.names == list("cdef")


def test_progress_can_end_a_study(frame):
    class Enough(Exception):
        pass

    def stop(stage, done, total):
        raise Enough

    with pytest.raises(Enough):
        select(frame[[*FEATURES, "ill"]], "ill", 2, progress=stop)


WRONG = [
    ({"target": "illl"}, "illl"),
    ({"target": None}, "Say which column is the target"),
    ({"netwrok": "mlp"}, "select has no option 'netwrok'.*'network'"),
    ({"groups": "a", "time": "b"}, "groups or time, not both"),
    ({"keep": ["z"]}, "z"),
    ({"costs": {"a": 2.0}}, "costs need a budget"),
    ({"budget": 3.0, "k": 2}, "budget takes the place of k"),
    ({"missing": "mean"}, "missing must be"),
    ({"n_jobs": 0}, "n_jobs must be at least 1"),
    ({"k": 99}, "99"),
]


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_what_is_wrong_is_said_in_one_sentence(frame, more, message):
    with pytest.raises((ValueError, TypeError, TableError), match=message):
        select(frame[[*FEATURES, "ill"]], **{"target": "ill", "k": 2 if "budget" not in more else "auto", **more})
