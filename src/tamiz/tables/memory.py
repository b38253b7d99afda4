"""Find how much memory there is, and raise before a table is read that does not fit."""

from __future__ import annotations

from collections.abc import Callable

from tamiz._utils.memory import available_memory, format_memory
from tamiz._utils.text import discard
from tamiz.errors import TableMemoryError


class MemoryBudget:
    """Check the memory that is needed before it is taken.

    Parameters
    ----------
    report : callable, default=discard
        Called with a message if much memory is needed.
    report_from : int, default=256 * 1024**2
        Amounts below this are not reported.

    Examples
    --------
    >>> MemoryBudget(print).require(10, "the table")
    >>> MemoryBudget(print).require(2**60, "the table")
    Traceback (most recent call last):
    tamiz.errors.TableMemoryError: the table needs about 1073741824.0 GB of memory, ... are available...
    """

    def __init__(self, report: Callable[[str], None] = discard, report_from: int = 256 * 1024**2) -> None:
        self.report = report
        self.report_from = report_from

    def require(self, amount: float, what: str) -> None:
        """Report that ``what`` needs ``amount`` bytes; raise TableMemoryError if there are fewer."""
        available = available_memory()
        if available is not None and amount > available:
            raise TableMemoryError(
                f"{what} needs about {format_memory(amount)} of memory, but only {format_memory(available)} are "
                "available. Leave columns out with `ignore`, take fewer rows, or use a machine with more memory."
            )
        if amount >= self.report_from:
            rest = "" if available is None else f" ({format_memory(available)} are available)"
            self.report(f"Memory: {what} needs about {format_memory(amount)}{rest}.")
