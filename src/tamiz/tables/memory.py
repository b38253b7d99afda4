"""Find how much memory there is, and raise before a table is read that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tamiz._utils.text import discard
from tamiz.errors import TableMemoryError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
#: Addresses that the compiler and the engine take when a run begins; they count under ``ulimit -v``.
_STILL_TO_LOAD = 300 * 1024**2


def format_memory(amount: float) -> str:
    """Return an amount of memory with its unit.

    Examples
    --------
    >>> format_memory(1536), format_memory(2.5e9)
    ('1.5 KB', '2.3 GB')
    """
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"


def _number_after(path: Path, key: str) -> int | None:
    """Return the number after ``key`` in a file of the kernel, in bytes; None if there is none."""
    try:
        for line in path.read_text().splitlines():
            words = line.split()
            if words and words[0] == key:
                return int(words[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _plain_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" means no limit
        return None


def available_memory() -> int | None:
    """Return how many bytes this process may still take; None if the system does not tell.

    The least of the free memory of the machine, the limit of the container (cgroup) and ``ulimit -v``.
    """
    limits = [_number_after(_PROC / "meminfo", "MemAvailable:")]
    group_limit, group_used = _plain_number(_CGROUP / "memory.max"), _plain_number(_CGROUP / "memory.current")
    if group_limit is not None and group_used is not None:
        limits.append(max(0, group_limit - group_used))
    if resource is not None:
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft_limit != resource.RLIM_INFINITY:
            used = _number_after(_PROC / "self/status", "VmSize:") or 0
            limits.append(max(0, soft_limit - used - _STILL_TO_LOAD))
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


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
