"""Versions of the packages that decide the numbers."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata


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
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
