"""Alerts of what makes scores look better than they are."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from tamiz import select
from tamiz.evaluation.alerts import (
    find_identifiers,
    find_repeated,
    find_row_alerts,
    find_target_alerts,
    share_of_near_copies,
)
from tamiz.rows.rows import Rows


def kinds(alerts):
    return [alert.kind for alert in alerts]


def test_copies_are_counted_but_not_where_chance_makes_them():
    generator = np.random.default_rng(0)
    X = np.tile(generator.normal(size=(15, 10)), (4, 1))
    y = np.tile(generator.integers(0, 2, 15), 4)
    assert find_repeated(X, y).sum() == find_repeated(sp.csr_matrix(X), y).sum() == 45
    (alert,) = find_row_alerts(Rows(X, y))
    assert "45 of 60 rows are copies" in alert.message
    survey = generator.integers(0, 2, size=(200, 5)).astype(float)
    assert find_row_alerts(Rows(survey, np.zeros(200))) == []


@pytest.mark.parametrize(("n_columns", "noise"), [(20, 0.1), (20, 0.3), (200, 0.4)])
def test_rows_that_nearly_repeat_are_found_without_groups(n_columns, noise):
    generator = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 3)
    X = generator.normal(size=(40, n_columns))[patients] + noise * generator.normal(size=(120, n_columns))
    assert kinds(find_row_alerts(Rows(X, patients % 2))) == ["near-repeated rows"]
    assert find_row_alerts(Rows(X, patients % 2, groups=patients)) == []
    assert find_row_alerts(Rows(X, patients % 2, time=np.arange(120))) == []


@pytest.mark.parametrize("shape", [(60, 2), (200, 5), (100, 20), (60, 2000), (1000, 8)])
@pytest.mark.parametrize("kind", ["normal", "heavy", "factors"])
def test_rows_drawn_one_by_one_are_not_called_repeats(shape, kind):
    generator = np.random.default_rng(0)
    X = generator.standard_t(3, size=shape) if kind == "heavy" else generator.normal(size=shape)
    if kind == "factors":
        X = X[:, :2] @ generator.normal(size=(2, shape[1])) + 0.3 * X
    assert share_of_near_copies(X) < 0.35
    assert find_row_alerts(Rows(X, np.zeros(len(X)))) == []


def test_running_numbers_and_identifiers_are_found():
    generator = np.random.default_rng(0)
    ticket = generator.permutation(100_000)[:50]
    age = generator.integers(20, 90, 50)
    X = np.column_stack([np.arange(50) + 1, ticket, age, generator.normal(size=50), np.ones(50)])
    assert find_identifiers(X) == {0: "a running number", 1: "an identifier"}
    assert find_identifiers(X[:10]) == find_identifiers(sp.csr_matrix(X)) == {}
    words = [alert.message for alert in find_row_alerts(Rows(X, age, names=["row", "ticket", "age", "x", "one"]))]
    assert words[0].startswith("Column 'row' looks like a running number")
    assert words[1].startswith("Column 'ticket' looks like an identifier")


def test_targets_that_count_rows_and_rare_classes():
    X = np.zeros((40, 1))
    assert kinds(find_target_alerts(Rows(X, np.arange(100.0, 140.0)), "regression")) == ["running target"]
    assert find_target_alerts(Rows(X, np.arange(40.0) ** 2), "regression") == []
    frame = pandas.DataFrame({"row": np.arange(40), "x": np.random.default_rng(0).normal(size=40)})
    assert kinds(select(frame, "row", 1, permutations=0).alerts).count("running target") == 1  # said once
    assert find_target_alerts(Rows(X, np.resize([0, 1], 40)), "classification") == []
    (alert,) = find_target_alerts(Rows(X, np.arange(40) // 8 + (np.arange(40) == 0)), "classification")
    assert alert.kind == "rare class"


def test_leaks_and_copies_among_kept_columns_are_told_and_strong_columns_are_not():
    generator = np.random.default_rng(0)
    y = np.resize(["no", "yes"], 200)
    frame = pandas.DataFrame(generator.normal(size=(200, 6)), columns=list("abcdef"))
    frame["b"] += 1.5 * (y == "yes")
    frame["refund"] = np.where(y == "yes", np.exp(generator.normal(size=200)), 0.0)
    frame["inches"] = 2.54 * frame["b"] + 1
    frame["status"] = np.where(y == "yes", generator.choice(["p", "q"], 200), generator.choice(["r", "s"], 200))
    study = select(frame, y, 4, keep=["b", "inches"], permutations=0)
    found = {(alert.kind, alert.columns) for alert in study.alerts}
    assert {("leak", ("refund",)), ("leak", ("status",)), ("copy", ("b", "inches"))} <= found
    assert ("leak", ("b",)) not in found
    assert "is it known at the time of the prediction?" in study.alerts[0].message


def test_a_number_that_nearly_is_the_target_is_a_leak():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 5))
    y = X[:, 0] + X[:, 1]
    X[:, 4] = np.exp(y / 2)  # in another unit
    study = select(X, y, 2, permutations=0)
    assert [alert.columns for alert in study.alerts if alert.kind == "leak"] == [("x4",)]


def test_a_leak_is_told_although_rare_classes_are_not_predicted():
    generator = np.random.default_rng(0)
    y = np.resize(["left", "stayed"], 300).astype(object)
    frame = pandas.DataFrame(generator.normal(size=(300, 4)), columns=list("abcd"))
    frame["tickets"] = np.where(y == "left", generator.integers(1, 9, 300), 0)
    y[:4] = "moved"
    study = select(frame, y.astype(str), 1, network="linear", permutations=0)
    assert study.score.value < 0.8  # the rare class is not found
    assert (study.alerts[0].kind, study.alerts[0].columns) == ("leak", ("tickets",))  # first of all
    assert "Class 'moved' of the target has 4 rows" in study.alerts[1].message


def test_near_copies_of_columns_are_named_with_the_exact_ones():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 5))
    X = np.column_stack([X, 2 - X[:, 0], X[:, 0] + 0.03 * X[:, 1], X[:, 3] + 0.03 * X[:, 1], X[:, 4] + 0.3 * X[:, 1]])
    found = find_row_alerts(Rows(X, np.zeros(200)))
    assert [(alert.kind, alert.columns) for alert in found] == [
        ("copy", ("x0", "x5", "x6")),
        ("near copy", ("x3", "x7")),
    ]
    assert "are copies, up to their unit, or nearly: keep one." in found[0].message
    assert "are nearly copies (correlation above 0.995): leave one out." in found[1].message
    many = np.column_stack([X[:, :6], generator.normal(size=(200, 1000))])  # there the exact ones only
    assert [alert.columns for alert in find_row_alerts(Rows(many, np.zeros(200)))] == [("x0", "x5")]


@pytest.mark.parametrize("noise", [0.001, 0.05])
def test_a_tenth_of_rows_that_nearly_repeat_is_found_behind_a_running_number(noise):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 12))
    X = np.vstack([X, X[:30] + noise * generator.normal(size=(30, 12))])
    found = find_row_alerts(Rows(np.column_stack([X, np.arange(330)]), np.zeros(330)))
    assert kinds(found) == ["near-repeated rows", "identifier"]
    assert found[0].message.startswith("18% of the rows nearly repeat another")


def table_with_gaps():
    generator = np.random.default_rng(0)
    a, gaps = generator.normal(1000, 1, 400), generator.random(400) < 0.05
    frame = pandas.DataFrame({"a": a, "c": generator.normal(size=400), "e": generator.normal(2000, 1, 400)})
    frame["copy"], frame["near"] = np.where(gaps, np.nan, 5 - 2 * a), np.where(gaps, np.nan, a + 0.01 * frame["c"])
    frame.loc[gaps, "e"] = np.nan
    return frame, np.where(frame["c"] + generator.normal(size=400) > 0, "p", "q")


@pytest.mark.parametrize("missing", ["median", "indicator"])
def test_copies_with_gaps_are_found_and_common_gaps_make_none(missing):
    frame, y = table_with_gaps()
    study = select(frame, y, 1, missing=missing, network="linear", permutations=0)
    assert [alert.columns for alert in study.alerts if alert.kind.endswith("copy")] == [("a", "copy", "near")]


def test_gaps_that_tell_the_target_are_a_leak():
    generator = np.random.default_rng(0)
    y = generator.normal(size=300)
    frame = pandas.DataFrame({"a": y + generator.normal(size=300), "b": generator.normal(size=300)})
    frame["closed_on"] = np.where(y > 0, generator.normal(size=300), np.nan)
    for target in (np.where(y > 0, "p", "q"), (y > 0) + 0.01 * y):
        study = select(frame, target, 1, missing="indicator", network="linear", permutations=0)
        assert ("leak", ("closed_on",)) in [(alert.kind, alert.columns) for alert in study.alerts]


def test_a_repeated_row_or_a_gap_does_not_hide_a_running_number():
    generator = np.random.default_rng(0)
    frame = pandas.DataFrame(generator.normal(size=(60, 4))).add_prefix("x").assign(id=100_000 + np.arange(60.0))
    with_gap = frame.copy()
    with_gap.loc[7, "id"] = np.nan
    for table in (pandas.concat([frame, frame.iloc[:1]]), with_gap):
        study = select(table, np.resize(["p", "q"], len(table)), 1, network="linear", permutations=0)
        assert [alert.columns for alert in study.alerts if alert.kind == "identifier"] == [("id",)]


@pytest.mark.parametrize("step", [1, 10, 0.5])
def test_a_target_with_any_constant_step_is_a_running_number(step):
    X = np.random.default_rng(0).normal(size=(300, 2))
    assert kinds(find_target_alerts(Rows(X, 7 + step * np.arange(300)), "regression")) == ["running target"]


def test_dropped_columns_are_neither_counted_nor_alerted():
    generator = np.random.default_rng(0)
    y = np.resize(["p", "q"], 100)
    frame = pandas.DataFrame(generator.normal(size=(100, 5)), columns=list("abcde")).assign(leak=(y == "p") * 1.0)
    frame["f"] = 2 * frame["e"]
    study = select(frame, y, 2, drop=["leak", "f"], network="linear", permutations=0)
    assert not {"leak", "copy"} & {alert.kind for alert in study.alerts}
    assert "of 5 columns" in study.verdict or "No sign" in study.verdict
    assert study.to_dict()["n_features"] == 5
