"""Checks of the estimators' parameters: one line a parameter, messages that name the value."""

from __future__ import annotations

import math
import numbers
from typing import Any


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse what is not one of the choices.

    Examples
    --------
    >>> check_choice("variant", "sof", ("soft", "hard"))
    Traceback (most recent call last):
    ValueError: variant must be 'soft' or 'hard', got 'sof'.
    """
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        *most, last = map(repr, choices)
        known = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"{name} must be {known}, got {value!r}.")


def integer_or_auto(name: str, value: Any, automatic: int, least: int) -> int:
    """The integer meant, "auto" replaced.

    Examples
    --------
    >>> integer_or_auto("batch_size", "auto", 7, 1), integer_or_auto("batch_size", 3, 7, 1)
    (7, 3)
    """
    if isinstance(value, str) and value == "auto":
        return automatic
    if not _is_integer(value) or value < least:
        raise ValueError(f"{name} must be 'auto' or an integer from {least}, got {value!r}.")
    return int(value)


def number_or_auto(name: str, value: Any, automatic: float, positive: bool) -> float:
    """The number meant, "auto" replaced.

    Examples
    --------
    >>> number_or_auto("l2", 0, 0.5, positive=False)
    0.0
    >>> number_or_auto("learning_rate", -1, 0.5, positive=True)
    Traceback (most recent call last):
    ValueError: learning_rate must be 'auto' or a finite number above 0, got -1.
    """
    if isinstance(value, str) and value == "auto":
        return automatic
    if not _is_real(value) or value < 0 or (positive and value == 0):
        raise ValueError(
            f"{name} must be 'auto' or a finite number {'above' if positive else 'from'} 0, got {value!r}."
        )
    return float(value)


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Refuse what is no number from ``least`` to ``most``.

    Examples
    --------
    >>> check_number("rho", 2, 0, 1)
    Traceback (most recent call last):
    ValueError: rho must be a number from 0 to 1, got 2.
    """
    if not _is_real(value) or not least <= value <= most:
        upper = "" if most == math.inf else f" to {most:g}"
        raise ValueError(f"{name} must be a number from {least:g}{upper}, got {value!r}.")
