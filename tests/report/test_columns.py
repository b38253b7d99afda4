"""Columns of the user's table: levels, distributions, clusters, folds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.report.columns import (
    Columns,
    describe_distribution,
    find_clusters,
    fold_grid,
    group_rows,
    image_planes,
    kept_grids,
    target_numbers,
)
from tamiz.selection import Selection

ALL = [("all", np.ones(6, dtype=bool))]


@pytest.fixture
def mixed():
    """A column with three levels, a number with an indicator of missing values, a yes or no of one feature, and a number."""
    names = ["size", "size is missing", "colour=red", "colour=blue", "colour=green", "sex=m", "other"]
    groups = np.array([0, 0, 1, 1, 1, 2, 3])
    selection = Selection(
        np.array([1, 1, 1, 1, 1, 1, 0], bool), np.array([3, 5, 1, 2, 4, 6, 7]), feature_names=names, groups=groups,
        group_names=["size", "colour", "sex", "other"],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    colour = np.array([0, 1, 2, 0, 1, 3])  # the last has none of the levels
    X = np.column_stack(
        [
            [1.0, 2, 3, 4, 5, 6], [0, 0, 0, 1, 0, 0], colour == 0, colour == 1, colour == 2, [0, 1, 0, 1, 0, 1],
            rng.normal(size=6),
        ]
    ).astype(float)  # fmt: skip
    return Columns(selection), X


def test_columns_count_once_whatever_is_inside(mixed):
    columns, _ = mixed
    assert (len(columns), columns.n_kept) == (4, 3)
    assert [columns.names[i] for i in columns.kept] == ["colour", "size", "sex"]
    assert columns.levels_of(1) == ["red", "blue", "green"]
    assert columns.levels_of(3) == []
    assert columns.of_features(np.arange(7.0)).tolist() == [1, 4, 5, 6]


def test_values_are_read_as_a_user_knows_them(mixed):
    columns, X = mixed
    codes, levels = columns.read(X, 1)
    assert (codes.tolist(), levels) == ([0, 1, 2, 0, 1, 3], ("red", "blue", "green", "other"))
    assert columns.read(sp.csc_matrix(X), 2)[1] == ("m", "not m")
    values, levels = columns.read(X, 0)
    assert levels == ()
    assert np.isnan(values).tolist() == [False, False, False, True, False, False]
    scores = columns.scores(X, [1], np.array([10.0, 0, 5, 20, 4, 7]))
    assert scores.ravel().tolist() == [15, 2, 5, 15, 2, 7]  # levels stand at the mean of the target


@pytest.mark.parametrize(
    ("values", "levels", "labels", "counts"),
    [
        ([0, 1, 1, 0, 1, 1], (), ("0", "1"), (2, 4)),
        ([0, 1, 2, 2, 2, 1], ("a", "b", "c"), ("a", "b", "c"), (1, 2, 3)),
        ([0, 1, 2, 3, 4, 5], (), (), (1, 1, 1, 1, 1, 1)),
        ([5, 5, 5, 5, 5, 5], (), (), (6,)),
    ],
)
def test_distributions_have_levels_or_bins(values, levels, labels, counts):
    found = describe_distribution(np.array(values, dtype=float), ALL, levels)
    assert (found.levels, found.groups[0].counts) == (labels, counts)


def test_axes_of_whole_numbers_end_at_the_data():
    years = np.random.default_rng(0).integers(1880, 2023, 500).astype(float)
    years[:2] = 1880, 2022
    found = describe_distribution(years, [("all", np.ones(500, bool))])
    assert found.ends == (1880, 2022)
    assert (found.edges[0], found.edges[-1]) == (1879.5, 2022.5)
    assert sum(found.groups[0].counts) == 500


def test_far_values_do_not_flatten_the_rest_and_missing_ones_are_counted():
    values = np.r_[np.random.default_rng(0).normal(size=997), 1e6, np.nan, np.nan]
    found = describe_distribution(values, [("all", np.ones(1000, bool))])
    assert found.ends[1] < 10
    assert (sum(found.groups[0].counts), found.groups[0].n_missing) == (998, 2)
    assert describe_distribution(np.full(3, np.nan), [("all", np.ones(3, bool))]) is None


def test_rare_levels_are_counted_together():
    found = describe_distribution(np.arange(20.0), [("all", np.ones(20, bool))], [f"l{i}" for i in range(20)])
    assert len(found.levels) == 8
    assert (found.levels[-1], found.groups[0].counts[-1]) == ("13 others", 13)


def test_groups_of_rows():
    assert [label for label, _ in group_rows(np.arange(9.0), "regression", "price")][2] == "highest third of price"
    assert len(group_rows(np.zeros((4, 2)), "regression")) == 1
    assert target_numbers(["a", "b", "a"], "classification").tolist() == [0, 1, 0]
    assert target_numbers(["a", "b", "c", "c"], "classification").tolist() == [0, 0, 1, 1]
    assert target_numbers(np.zeros((4, 2)), "regression") is None


def test_the_heat_map_clusters_rows_and_correlations_are_exact(table, selection):
    X, y = table
    heat, rows, both = kept_grids(Columns(selection), X, y, "classification", group_rows(y, "classification"))
    assert heat.values.shape == (12, 120)
    assert sorted(rows.tolist()) == list(range(120))
    columns = [int(name[5:]) for name in both.rows]
    assert both.values == pytest.approx(np.corrcoef(X[:, columns].T), abs=1e-5)
    one = Columns(Selection(np.array([True, False]), np.array([1, 2])))
    assert kept_grids(one, X[:, :2], y, "classification", group_rows(y, "classification")) is None


def test_clusters_are_more_than_chance_and_count_columns_not_levels(table, selection, mixed):
    X, y = table
    copied = X.copy()
    kept, left = selection.ordered[:2], np.flatnonzero(~selection.support)[:2]
    copied[:, left[0]], copied[:, kept[1]] = -copied[:, kept[0]], copied[:, kept[0]]
    for dense in (copied, sp.csc_matrix(copied)):
        cluster = find_clusters(Columns(selection), dense, y, "classification")[0]
        assert {int(kept[0]): 1.0, int(kept[1]): 1.0, int(left[0]): -1.0}.items() <= dict(cluster).items()
        assert cluster[0][0] == kept[0]
    noise = np.random.default_rng(0).normal(size=(20, 400))
    assert find_clusters(Columns(selection), noise, y[:20], "classification") == []
    rng = np.random.default_rng(0)
    levels = (rng.random((60, 7)) > 0.5).astype(float)
    levels[:, 6] = levels[:, 5]
    found = find_clusters(mixed[0], levels, rng.integers(0, 2, 60), "classification")
    assert [[mixed[0].names[column] for column, _ in cluster] for cluster in found] == [["sex", "other"]]


def test_folds_may_hold_features_or_columns(mixed):
    columns, _ = mixed
    by_feature = [np.array([0, 0, 1, 1, 1, 0, 1], bool)] * 3
    by_column = [np.array([0, 1, 0, 1], bool)] * 3
    for supports in (by_feature, by_column):
        grid, n_kept = fold_grid(columns, supports)
        assert (n_kept, grid.rows) == (3, ["colour", "size", "sex", "other"])
        assert grid.values.sum(axis=1).tolist() == [3, 0, 0, 3]
    assert fold_grid(columns, by_column[:1]) is None


@pytest.mark.parametrize(
    ("shape", "plane"), [((1, 4, 6), (4, 6)), ((8, 6, 3), (8, 6)), ((3, 8), (3, 8)), ((24,), None), ((1, 24), None)]
)
def test_images_are_found_by_their_shape(shape, plane):
    n = int(np.prod(shape))
    selection = Selection(np.arange(n) < 2, np.arange(1, n + 1), shape=shape)
    found = image_planes(selection, np.ones((5, n)))
    assert (None if found is None else found[0].shape) == plane
