"""Heat maps of other M: the columns of every set, each once, over the rows of the page's heat map."""

import base64

import numpy as np

from tamiz.report.evidence import KeptSet
from tamiz.report.heat_sets import heat_sets_payload, make_heat_sets
from tamiz.report.raster import quantise
from tamiz.report.together import MOST_COLUMNS, make_heat_map


def make_parts(n_columns=60):
    X = np.random.default_rng(0).normal(size=(30, n_columns))
    rows = np.arange(30) < 15
    names = [f"c{i}" for i in range(n_columns)]
    heat = make_heat_map(X, [0, 1, 2, 3], names, [("a", rows), ("b", ~rows)])
    return X, heat, names


def kept(*columns):
    return KeptSet(len(columns), columns, (None,) * len(columns))


def test_cells_are_those_that_the_page_would_draw_itself():
    X, heat, names = make_parts()
    found = make_heat_sets(X, heat, [kept(5, 2, 9), kept(2)], names.__getitem__)
    assert sorted(found.names) == ["c2", "c5", "c9"]
    assert sorted(found.names[i] for i in found.orders[3]) == ["c2", "c5", "c9"]
    assert [found.names[i] for i in found.orders[1]] == ["c2"]
    z = (X[heat.rows, 2] - X[:, 2].mean()) / X[:, 2].std()
    np.testing.assert_array_equal(found.codes[found.orders[1][0]], quantise(z, 3.0))


def test_large_sets_show_their_first_columns_and_the_largest_are_left_out():
    X, heat, names = make_parts()
    sets = [kept(*range(60)), kept(*range(10, 30))]
    assert len(make_heat_sets(X, heat, sets, names.__getitem__).orders[60]) == MOST_COLUMNS
    assert list(make_heat_sets(X, heat, sets, names.__getitem__, most_cells=25 * 30).orders) == [20]
    assert make_heat_sets(X, heat, sets, names.__getitem__, most_cells=10) is None


def test_the_script_gets_names_cells_and_orders():
    X, heat, names = make_parts()
    found = make_heat_sets(X, heat, [kept(5, 2)], names.__getitem__)
    payload = heat_sets_payload(found)
    assert payload["names"] == list(found.names)
    assert payload["orders"] == {"2": list(found.orders[2])}
    assert base64.b64decode(payload["codes"]) == found.codes.tobytes()
