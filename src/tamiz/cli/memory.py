"""How much memory there is, how much will be needed, and a refusal before it is too late."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

from tamiz.cli.errors import EXIT_MEMORY, UserError

_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
#: Addresses that the compiler and the engine take when a run begins; they count under ``ulimit -v``.
_STILL_TO_LOAD = 300 * 1024**2


def human_bytes(amount: float) -> str:
    """An amount of memory for people.

    Examples
    --------
    >>> human_bytes(1536), human_bytes(2.5e9)
    ('1.5 KB', '2.3 GB')
    """
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1024 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the loop always returns")


def _number_after(path: Path, key: str) -> int | None:
    """The number that follows ``key`` in a file of the kernel, in bytes; None where there is none."""
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
    """Bytes this process may still take: the machine's, the container's and ``ulimit -v``, the least of them.

    None where the system does not say.
    """
    limits = [_number_after(_PROC / "meminfo", "MemAvailable:")]
    group_limit, group_used = _plain_number(_CGROUP / "memory.max"), _plain_number(_CGROUP / "memory.current")
    if group_limit is not None and group_used is not None:
        limits.append(max(0, group_limit - group_used))
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft_limit != resource.RLIM_INFINITY:
        used = _number_after(_PROC / "self/status", "VmSize:") or 0
        limits.append(max(0, soft_limit - used - _STILL_TO_LOAD))
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


class MemoryBudget:
    """Says what will be needed before it is used, and refuses at once what cannot be had.

    Parameters
    ----------
    say : callable
        Where the sentence goes.
    speak_from : int, default=256 MB
        Amounts below this are not worth a sentence.

    Examples
    --------
    >>> MemoryBudget(print).require(10, "the table")
    >>> MemoryBudget(print).require(2**60, "the table")
    Traceback (most recent call last):
    tamiz.cli.errors.UserError: the table needs about 1073741824.0 GB of memory, ... are available...
    """

    def __init__(self, say: Callable[[str], None], speak_from: int = 256 * 1024**2) -> None:
        self.say = say
        self.speak_from = speak_from

    def require(self, amount: float, what: str) -> None:
        """Say that ``what`` needs ``amount`` bytes; raise :class:`UserError` where there are fewer."""
        available = available_memory()
        if available is not None and amount > available:
            raise UserError(
                f"{what} needs about {human_bytes(amount)} of memory, but only {human_bytes(available)} are available. "
                "Leave columns out with --ignore, take fewer rows, or use a machine with more memory.",
                EXIT_MEMORY,
            )
        if amount >= self.speak_from:
            rest = "" if available is None else f" ({human_bytes(available)} are available)"
            self.say(f"Memory: {what} needs about {human_bytes(amount)}{rest}.")
