"""Stability of selections over folds or resamples."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from tamiz._version import __version__


def _as_supports(supports: Any) -> np.ndarray:
    array = np.asarray(supports, dtype=bool)
    if array.ndim != 2 or array.shape[0] < 2:
        raise ValueError(f"Stability needs at least two selections, one per row; got shape {array.shape}.")
    return array


def nogueira_stability(supports: Any) -> float:
    """Return the stability of several selections after Nogueira, Sechidis and Brown (JMLR 18, 2018).

    1 means equal selections, 0 what random selections of the same sizes give on average. The sizes may differ. If every
    selection keeps all features, or none, the stability is not defined and NaN is returned.

    Parameters
    ----------
    supports : array-like of bool, shape (n_selections, n_features)
        One selection per row.

    Examples
    --------
    >>> nogueira_stability([[1, 1, 0, 0], [1, 1, 0, 0]])
    1.0
    """
    chosen = _as_supports(supports)
    n_selections, n_features = chosen.shape
    share = chosen.mean(axis=0)
    variance = n_selections / (n_selections - 1) * share * (1 - share)
    mean_size = float(chosen.sum(axis=1).mean())
    by_chance = mean_size / n_features * (1 - mean_size / n_features)
    if by_chance == 0:
        return math.nan
    return float(1 - variance.mean() / by_chance)


def kuncheva_index(supports: Any) -> float:
    """Return Kuncheva's consistency index (2007), the mean over all pairs of selections of equal size.

    For a pair that shares r of k features out of F it is (r F - k^2) / (k (F - k)).

    Examples
    --------
    >>> kuncheva_index([[1, 1, 0, 0], [1, 0, 1, 0]])
    0.0
    """
    chosen = _as_supports(supports)
    sizes = chosen.sum(axis=1)
    if np.any(sizes != sizes[0]):
        raise ValueError("Kuncheva's index needs selections of one size; use nogueira_stability for others.")
    n_selections, n_features = chosen.shape
    size = int(sizes[0])
    if size in (0, n_features):
        return math.nan
    # The number of selections that hold a feature tells how many pairs share it, without looping over pairs.
    holders = chosen.sum(axis=0)
    shared = float(np.sum(holders * (holders - 1) / 2)) / (n_selections * (n_selections - 1) / 2)
    return float((shared * n_features - size**2) / (size * (n_features - size)))


def library_versions(
    packages: Sequence[str] = ("tamiz", "numpy", "scipy", "scikit-learn", "numba", "torch"),
) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed.

    Parameters
    ----------
    packages : sequence of str, default=those that decide the numbers
        Names of distributions.

    Examples
    --------
    >>> sorted(library_versions(["numpy", "no-such-package"]))
    ['numpy', 'python']
    """
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = __version__ if package == "tamiz" else metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
