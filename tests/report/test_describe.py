"""Distributions, effects and stand-ins, against cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

from tamiz.report.describe import (
    check_report_table,
    describe_distribution,
    describe_kept,
    find_stand_ins,
    find_task,
    group_rows,
    mean_image,
)
from tamiz.selection import Selection


def keep(*ranking, **parts) -> Selection:
    """A selection of the features of rank 1 and 2."""
    ranks = np.array(ranking)
    return Selection(ranks <= 2, ranks, **parts)


def test_tables_of_all_kinds_are_read_alike():
    X = np.arange(12.0).reshape(3, 4)
    selection = keep(1, 2, 3, 4)
    kinds = [X, X.tolist(), X.astype(np.float32), pd.DataFrame(X), pl.DataFrame(X), sp.csr_matrix(X), sp.coo_array(X)]
    for kind in kinds:
        table = check_report_table(kind, selection)
        assert np.array_equal(table.toarray() if sp.issparse(table) else table, X)


def test_images_are_read_as_rows():
    picture = keep(*range(1, 9), shape=(2, 2, 2))
    assert check_report_table(np.zeros((3, 2, 2, 2)), picture).shape == (3, 8)


def test_other_tables_are_refused():
    with pytest.raises(ValueError, match="X has 3 columns, the selection was made on 4"):
        check_report_table(np.zeros((2, 3)), keep(1, 2, 3, 4))
    with pytest.raises(ValueError, match="The report needs X as a table of numbers"):
        check_report_table([["a", "b", "c", "d"]], keep(1, 2, 3, 4))


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0, 1, 1], "classification"),
        (["a", "b"], "classification"),
        ([0.5, 1.2], "regression"),
        (list(range(40)), "regression"),
        ([True, False], "classification"),
    ],
)
def test_task_from_the_target(y, task):
    assert find_task(y) == task


def test_task_from_the_estimator():
    assert find_task([0, 1], Ridge()) == "regression"
    assert find_task([0.5, 1.5], LogisticRegression()) == "classification"


def test_numeric_targets_fall_into_thirds():
    groups = group_rows(np.arange(9.0), "regression")
    assert [(label, rows.sum()) for label, rows in groups] == [
        ("lowest third", 3),
        ("middle third", 3),
        ("highest third", 3),
    ]
    assert [label for label, _ in group_rows(np.ones(4), "regression")] == ["lowest third"]
    assert [label for label, _ in group_rows(np.ones((4, 2)), "regression")] == ["all rows"]
    assert [label for label, _ in group_rows(np.array([None, "a", 1.5], dtype=object), "classification")] == [
        "1.5",
        "None",
        "a",
    ]


def test_distribution_by_class():
    values = np.array([0.0, 0.0, 1.0, 9.0, 10.0, np.nan, np.inf])
    groups = [("a", np.array([1, 1, 1, 0, 0, 0, 0], bool)), ("b", np.array([0, 0, 0, 1, 1, 1, 1], bool))]
    shown = describe_distribution(values, groups)
    assert [(g.n_rows, g.quantiles[2], sum(g.counts)) for g in shown.groups] == [(3, 0.0, 3), (2, 9.5, 2)]
    assert shown.n_missing == 2
    assert [g.counts for g in shown.groups] == [(3, 0, 0, 0), (0, 0, 0, 2)]


@pytest.mark.parametrize("values", [np.full(5, 3.0), np.array([0.0] * 999 + [7.0]), np.array([-1e300, 1e300])])
def test_distributions_without_spread(values):
    shown = describe_distribution(values, [("all", np.ones(values.size, bool))])
    assert sum(shown.groups[0].counts) == values.size
    assert np.all(np.diff(shown.edges) > 0)


def test_nothing_finite_has_no_distribution_and_an_empty_class_is_empty():
    assert describe_distribution(np.array([np.nan]), [("all", np.ones(1, bool))]) is None
    shown = describe_distribution(np.array([1.0]), [("none", np.zeros(1, bool))])
    assert shown.groups[0].n_rows == 0


@pytest.mark.parametrize("as_table", [np.asarray, sp.csc_matrix])
def test_stand_ins_are_the_correlated_features_left_out(as_table):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((200, 2))
    noise = rng.standard_normal((200, 3))
    X = np.column_stack([base, 2 * base[:, 0], -base[:, 1] + 0.3 * noise[:, 0], noise[:, 1], np.ones(200)])
    first, second = find_stand_ins(as_table(X), keep(1, 2, 3, 4, 5, 6))
    assert [(s.name, round(s.correlation, 6)) for s in first] == [("x2", 1.0)]
    assert [s.name for s in second] == ["x3"]
    assert second[0].correlation == pytest.approx(np.corrcoef(X[:, 1], X[:, 3])[0, 1])


def test_stand_ins_bear_missing_huge_and_few_rows():
    X = np.array([[1e200, 1e200, 0.0], [2e200, 2e200, np.nan], [3e200, 3e200, np.inf], [5e200, 5e200, 1.0]])
    selection = Selection(np.array([True, False, False]), np.array([1, 2, 3]))
    assert find_stand_ins(X, selection)[0][0].correlation == pytest.approx(1.0)
    assert find_stand_ins(X[:1], selection) == [()]
    everything = Selection(np.ones(3, bool), np.array([1, 2, 3]))
    assert find_stand_ins(X, everything) == [(), (), ()]


def test_missing_values_zeros_and_ones_and_years():
    rows = np.arange(6) < 3
    groups = [("a", rows), ("b", ~rows)]
    shares = describe_distribution(np.array([0.0, 1, np.nan, 1, 1, 1]), groups)
    assert shares.is_share
    assert [(g.n_rows, g.n_missing, g.counts) for g in shares.groups] == [(2, 1, (1, 1)), (3, 0, (0, 3))]
    years = describe_distribution(np.array([1900.0, 1907, 1950, 1987, 1999, 2001]), groups)
    assert all(float(edge).is_integer() for edge in years.edges)
    assert sum(sum(g.counts) for g in years.groups) == 6
    raw = np.array([[np.nan], [1.5], [2.5]])
    kept = describe_kept(keep_one(), np.array([[0.0, 2.0], [0.0, 1.5], [0.0, 2.5]]), ["a", "b", "b"], values=raw)
    assert kept[0].distribution.n_missing == 1  # the table has the value that was filled in


def keep_one():
    return Selection(np.array([False, True]), np.array([2, 1]))


def test_kept_features_without_a_table():
    kept = describe_kept(keep(2, 1, 3), fold_share=[0.5, 1.0, 0.0])
    assert [(k.name, k.rank, k.fold_share, k.distribution, k.stand_ins) for k in kept] == [
        ("x1", 1, 1.0, None, ()),
        ("x0", 2, 0.5, None, ()),
    ]


def test_target_of_another_length_is_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        describe_kept(keep(1, 2, 3), np.zeros((4, 3)), [0, 1])
    with pytest.raises(ValueError, match="one entry for each row"):
        describe_kept(keep(1, 2, 3), np.zeros((4, 3)), np.float64(3.0))


def test_mean_image_over_channels():
    picture = Selection(np.ones(8, bool), np.arange(1, 9), shape=(2, 2, 2))
    X = np.arange(16.0).reshape(2, 8)
    image = mean_image(X, picture)
    assert (image.height, image.width, image.mean) == (2, 2, (6.0, 7.0, 8.0, 9.0))
    assert mean_image(X, Selection(np.ones(8, bool), np.arange(1, 9))) is None
