"""Base classes of the exceptions that tamiz raises."""

from __future__ import annotations


class TamizError(Exception):
    """Base class of every exception that tamiz defines; the message says what to do.

    Exceptions about an argument also derive from ``ValueError``, those about a missing package from ``ImportError``, so
    that ``except ValueError`` keeps working.
    """


class UnknownNameError(TamizError, ValueError):
    """Raise for a name that is not in a registry; the message suggests the nearest one."""


class DivergenceError(TamizError, FloatingPointError, ValueError):
    """Raise if numbers become infinite or NaN in training or scoring; the message says which setting to change."""


class MissingExtraError(TamizError, ImportError):
    """Raise if an optional dependency is not installed; the message holds the command that installs it."""
