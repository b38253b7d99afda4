"""Heat maps of the sets that are kept with other M, for the slider of the page: cells of all of them, each column once."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamiz.report.describe import standardise_columns
from tamiz.report.evidence import HeatMap, HeatSets, KeptSet
from tamiz.report.raster import COLOURS, quantise
from tamiz.report.text import shorten
from tamiz.report.together import MOST_COLUMNS, cluster_order

#: Cells that a page holds for the slider; sets beyond are not drawn, and the page says so.
MOST_CELLS = 150_000


def heat_sets_payload(sets: HeatSets) -> dict[str, Any]:
    """Return what the script needs to draw the heat maps."""
    return {
        "names": [shorten(name, 60) for name in sets.names],
        "codes": base64.b64encode(sets.codes.tobytes()).decode("ascii"),
        "orders": {str(m): list(order) for m, order in sets.orders.items()},
        "colours": [list(colour) for colour in COLOURS],
    }


def make_heat_sets(
    X: Any, heat: HeatMap, sets: Sequence[KeptSet], name_of: Callable[[int], str], most_cells: int = MOST_CELLS
) -> HeatSets | None:
    """Return the heat maps of the sets of a curve, smallest M first as long as the cells are few enough.

    Parameters
    ----------
    X : table
        The table of ``heat``.
    heat : HeatMap
        Heat map of the page, whose rows the others have too.
    sets : sequence of KeptSet
        Columns by M.
    name_of : callable
        Name of a column by its number.
    most_cells : int, default=150_000
        Cells of all sets together.

    Returns
    -------
    HeatSets or None
        None without any set.

    Examples
    --------
    >>> heat = HeatMap(("a",), np.arange(3), np.zeros((1, 3)), np.zeros(3, int), ("x",))
    >>> found = make_heat_sets(np.eye(3), heat, [KeptSet(2, (0, 2), (None, None)), KeptSet(1, (2,), (None,))], "abc".__getitem__)
    >>> found.names, found.orders
    (('c', 'a'), {1: (0,), 2: (1, 0)})
    """
    most_columns = most_cells // max(1, len(heat.rows))
    places: dict[int, int] = {}
    chosen: list[KeptSet] = []
    for entry in sorted(sets, key=lambda entry: entry.n_features):
        new = [column for column in entry.columns[:MOST_COLUMNS] if column not in places]
        if len(places) + len(new) > most_columns:
            break
        places.update({column: len(places) + i for i, column in enumerate(new)})
        chosen.append(entry)
    if not chosen:
        return None
    columns = np.array(list(places), dtype=np.int64)
    z = standardise_columns(X, columns, np.arange(X.shape[0]))[heat.rows].T * np.sqrt(X.shape[0])
    orders = {}
    for entry in chosen:
        mine = np.array([places[column] for column in entry.columns[:MOST_COLUMNS]], dtype=np.int64)
        order = cluster_order(z[mine]) if mine.size > 1 else np.arange(mine.size)
        orders[entry.n_features] = tuple(mine[order].tolist())
    return HeatSets(tuple(name_of(int(column)) for column in columns), quantise(z, 3.0), orders)
