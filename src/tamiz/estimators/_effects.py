"""Evaluate the curves of an additive network in the units of the table, for the record of a selection."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erfinv

from tamiz.preprocessing.exact import DEVIATIONS, normalize_exact, uses_erf
from tamiz.selection import Selection

#: Points of a curve, and curves that are recorded, those of the best columns.
N_POINTS, MOST_CURVES = 65, 64


def record_effects(model: Any, selection: Selection, statistics: Any, normalize: str | None) -> dict[str, np.ndarray]:
    """Return the curves of the best selected columns.

    Parameters
    ----------
    model : AdditiveModel
        Its first columns are the selected ones, in the order of the table.
    selection : Selection
        Which columns those are.
    statistics : ColumnStatistics or None
        Mean and deviation of the columns that the model reads.
    normalize : {"erf", "erf2", "standard", None}
        Normalisation of the columns.

    Returns
    -------
    dict
        "feature", shape (n_curves,); "grid", shape (n_curves, n_points), in the units of the table; "curve", shape
        (n_curves, n_outputs, n_points), what the column adds to each output.
    """
    features = selection.ordered[:MOST_CURVES]
    grids, curves = [], []
    for place in np.searchsorted(selection.indices, features):
        knots, _ = model.effects(int(place))
        low, high = float(knots[0]), float(knots[-1])
        mean, deviation = (0.0, 1.0) if statistics is None else (statistics.mean[place], statistics.deviation[place])
        ends = _in_units_of_the_table(np.array([low, high]), mean, deviation, normalize)
        grid = np.linspace(ends[0], ends[1], N_POINTS)
        values = normalize_exact(grid, mean, deviation, normalize if statistics is not None else None)
        grids.append(grid)
        curves.append(model.effects(int(place), values)[1])
    return {"feature": features, "grid": np.array(grids), "curve": np.array(curves)}


def _in_units_of_the_table(values: np.ndarray, mean: float, deviation: float, normalize: str | None) -> np.ndarray:
    """Invert the normalisation; values at the ends of erf lie at most six deviations from the mean."""
    if normalize is None:
        return values
    z = values
    if uses_erf(normalize):
        z = np.clip(erfinv(np.clip(values, -1.0, 1.0)) * DEVIATIONS[normalize], -6.0, 6.0)
    return mean + deviation * z
