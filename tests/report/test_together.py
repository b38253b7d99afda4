"""Clusters, folds, pairs and projections."""

from __future__ import annotations

import numpy as np

from tamiz.report.together import (
    MOST_COLUMNS,
    MOST_ROWS,
    find_partners,
    make_correlations,
    make_fold_grid,
    make_heat_map,
    make_projections,
)
from tamiz.selection import Selection


def first(n_features, n_kept):
    return Selection(np.arange(n_features) < n_kept, np.arange(1, n_features + 1))


def halves(n_rows):
    rows = np.arange(n_rows) % 2 == 0
    return [("even", rows), ("odd", ~rows)]


def test_the_heat_map_is_bounded_and_keeps_both_classes():
    X = np.random.default_rng(0).normal(size=(900, 80))
    names = [f"x{i}" for i in range(80)]
    heat = make_heat_map(X, range(80), names, halves(900), wrong=np.arange(900) == 7)
    assert heat.z.shape == (MOST_COLUMNS, MOST_ROWS)
    assert (heat.n_rows, set(heat.groups)) == (900, {0, 1})
    place = heat.names.index("x3")
    expected = (X[:, 3] - X[:, 3].mean()) / X[:, 3].std()
    np.testing.assert_allclose(heat.z[place], expected[heat.rows])
    assert np.array_equal(heat.wrong, heat.rows == 7)
    assert make_heat_map(X, [0], ["x0"], halves(900)) is None


def test_like_columns_stand_side_by_side():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(60, 2))
    X = base[:, [0, 1, 0, 1, 0, 1]] + 0.05 * rng.normal(size=(60, 6))
    names = list("abcdef")
    heat = make_heat_map(X, range(6), names, halves(60))
    assert {frozenset(heat.names[:3]), frozenset(heat.names[3:])} == {frozenset("ace"), frozenset("bdf")}
    found = make_correlations(X, range(6), names, heat.names)
    np.testing.assert_allclose(found.values, np.corrcoef(X[:, [names.index(n) for n in heat.names]].T), atol=1e-5)


def test_the_grid_of_folds_names_what_the_fit_left_out():
    supports = [np.array([1, 0, 1, 0], bool), np.array([1, 0, 1, 0], bool), np.array([0, 1, 1, 0], bool)]
    grid = make_fold_grid(first(4, 2), [1, 0], supports)
    assert grid.names == ("x1", "x0", "x2")
    assert grid.kept == (True, True, False)
    assert grid.chosen.sum(axis=1).tolist() == [1, 2, 3]
    assert make_fold_grid(first(4, 2), [1, 0], supports[:1]) is None


def test_partners_of_kept_columns():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 12))
    y = np.where(X[:, 0] * X[:, 7] > 0, "a", "b")
    names = [f"x{i}" for i in range(12)]
    found = find_partners(X, y, "classification", first(12, 2), [0, 1], names)
    assert [(p.name, p.partner, p.partner_kept) for p in found.found] == [("x0", "x7", False)]
    assert (found.n_searched, found.note) == (12, "")
    few = find_partners(X[:10], y[:10], "classification", first(12, 2), [0, 1], names)
    assert few.found == ()
    assert "cannot be judged on 10 rows" in few.note
    two = find_partners(X, np.ones((300, 2)), "regression", first(12, 2), [0, 1], names)
    assert "one target" in two.note


def test_projections_learn_from_the_training_rows_alone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    X[0, 0], X[1, 1] = np.nan, np.inf
    fold = np.arange(30), np.arange(30, 40)
    every, kept = make_projections(X, halves(40), fold, np.arange(5) < 3)
    assert (every.title, kept.title) == ("All 5 columns", "The 3 columns the fold kept")
    assert every.held_out.sum() == 10
    changed = X.copy()
    changed[35] *= 100
    again = make_projections(changed, halves(40), fold, np.arange(5) < 3)[0]
    np.testing.assert_allclose(again.points[:30], every.points[:30])
    assert np.isfinite(again.points).all()
