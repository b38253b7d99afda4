"""Constraints on parameters, in the form of scikit-learn, that read a registry when they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions


class NameOf(StrOptions):
    """Accept the names that a function gives at the time of the check, so that what is registered later counts too.

    Parameters
    ----------
    names : callable
        Returns the names.

    Examples
    --------
    >>> NameOf(lambda: ["a", "b"]).is_satisfied_by("b")
    True
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        super().__init__(set(names()))

    @property
    def options(self) -> set[str]:
        """Return the names there are now."""
        return set(self._names())

    @options.setter
    def options(self, value: set[str]) -> None:
        """Ignore what the base class stores."""


AUTO = StrOptions({"auto"})


def whole_number(least: int) -> Interval:
    """Return the constraint of an integer of at least ``least``."""
    return Interval(Integral, least, None, closed="left")


def finite_number(least: float, *, or_equal: bool = True, most: float = np.inf) -> Interval:
    """Return the constraint of a finite number above, or from, ``least``, and below ``most``."""
    return Interval(Real, least, most, closed="left" if or_equal else "neither")
