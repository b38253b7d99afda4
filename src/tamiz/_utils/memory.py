"""Find how much memory this process may still take."""

from __future__ import annotations

from pathlib import Path

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
