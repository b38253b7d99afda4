"""Normalise columns in float64 with NumPy: the reference of the compiled normalisation, and what model files use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Largest size of a standardised number: where the deviation is next to nothing, a new number may be infinitely far out,
#: and the sum of two infinities of different sign is NaN.
FARTHEST = 1e15


def normalize_exact(values: np.ndarray, mean: Any, deviation: Any, kind: str | None) -> np.ndarray:
    """Normalise in float64: ``erf(z / sqrt(2))`` for ``kind="erf"``, ``z = (x - mean) / deviation`` for "standard".

    Parameters
    ----------
    values : ndarray
        Finite numbers.
    mean, deviation : float or ndarray
        Statistics that broadcast against the values; where the deviation is 0, so is the result.
    kind : {"erf", "standard", None}
        Normalisation; None only converts to float64.

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
        z /= np.where(np.asarray(deviation) > 0, deviation, np.inf) * (math.sqrt(2.0) if kind == "erf" else 1.0)
    z[np.isnan(z)] = 0.0  # infinite in a constant column
    return erf(z, out=z) if kind == "erf" else np.clip(z, -FARTHEST, FARTHEST, out=z)
