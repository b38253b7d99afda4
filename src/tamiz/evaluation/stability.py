"""Stability of selections over folds or resamples, and the versions of the libraries that made them."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from tamiz._version import __version__


def nogueira_stability(supports: Any) -> float:
    """Compute the stability of several selections after Nogueira, Sechidis and Brown (JMLR 18, 2018).

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
    chosen = np.asarray(supports, dtype=bool)
    if chosen.ndim != 2 or chosen.shape[0] < 2:
        raise ValueError(f"Stability needs at least two selections, one per row; got shape {chosen.shape}.")
    share, density = chosen.mean(axis=0), float(chosen.mean())
    variance = len(chosen) / (len(chosen) - 1) * share * (1 - share)
    return math.nan if density in (0.0, 1.0) else float(1 - variance.mean() / (density * (1 - density)))


def library_versions(
    packages: Sequence[str] = ("tamiz", "numpy", "scipy", "scikit-learn", "numba", "torch"),
) -> dict[str, str]:
    """Find the versions of Python and of those packages that are installed.

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
