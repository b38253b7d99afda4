"""Normalise columns in float64 with NumPy: the reference of the compiled normalisation, and what model files use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Normalisations and how many standard deviations each divides a column by: "erf" as the code that the authors of the paper
#: released, "erf2" as the paper prints it; "standard" does without the error function.
DEVIATIONS = {"erf": math.sqrt(2.0), "erf2": 2.0, "standard": 1.0}
#: Normalisations that end with the error function.
WITH_ERF = ("erf", "erf2")
#: Largest size of a standardised number: where the deviation is next to nothing, a new number may be infinitely far out,
#: and the sum of two infinities of different sign is NaN.
FARTHEST = 1e15


def normalize_exact(values: np.ndarray, mean: Any, deviation: Any, kind: str | None) -> np.ndarray:
    """Normalise in float64: ``z = (x - mean) / deviation`` for "standard", ``erf(z / sqrt(2))`` and ``erf(z / 2)`` for others.

    Parameters
    ----------
    values : ndarray
        Finite numbers.
    mean, deviation : float or ndarray
        Statistics that broadcast against the values; where the deviation is 0, so is the result.
    kind : {"erf", "erf2", "standard", None}
        Normalisation, see :data:`DEVIATIONS`; None only converts to float64.

    Returns
    -------
    ndarray of float64
        A new array.

    Examples
    --------
    >>> normalize_exact(np.array([[3.0, 1.0]]), np.array([1.0, 1.0]), np.array([2.0, 0.0]), "standard").tolist()
    [[1.0, 0.0]]
    """
    from scipy.special import erf

    z = values.astype(np.float64)
    if kind is None:
        return z
    with np.errstate(over="ignore"):  # an infinite difference is far out, and erf of it 1
        z -= mean
        z /= np.where(np.asarray(deviation) > 0, deviation, np.inf) * DEVIATIONS[kind]
    z[np.isnan(z)] = 0.0  # infinite in a constant column
    return erf(z, out=z) if kind in WITH_ERF else np.clip(z, -FARTHEST, FARTHEST, out=z)
