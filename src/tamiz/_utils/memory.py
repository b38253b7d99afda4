"""Resources of this process: how much memory it may still take, and the threads of BLAS."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_CGROUP = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
#: Addresses that the compiler and the engine take when a run begins; they count under ``ulimit -v``.
_STILL_TO_LOAD = 300 * 1024**2


def _read_number(path: Path, pattern: str = r"\s*(\d+)\s*$") -> int | None:
    """Read a number from a file of the kernel; None if there is none ("max" means no limit)."""
    try:
        found = re.search(pattern, path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1])


def available_memory() -> int | None:
    """Find how many bytes this process may still take; None if the system does not tell.

    The least of the free memory of the machine, the limit of the container (cgroup) and ``ulimit -v``.
    """
    free = _read_number(_PROC / "meminfo", r"^MemAvailable:\s+(\d+)")
    limits = [] if free is None else [free * 1024]
    group_limit, group_used = _read_number(_CGROUP / "memory.max"), _read_number(_CGROUP / "memory.current")
    if group_limit is not None and group_used is not None:
        limits.append(max(0, group_limit - group_used))
    soft_limit = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft_limit >= 0:  # -1 stands for no limit
        used = _read_number(_PROC / "self/status", r"^VmSize:\s+(\d+)") or 0
        limits.append(max(0, soft_limit - used * 1024 - _STILL_TO_LOAD))
    return min(limits, default=None)


_thread_pools = cache(ThreadpoolController)  # looking for the libraries takes milliseconds
_lock, _limits = threading.Lock(), list[Any]()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of this process is inside.

    Its threads wait busily for each other: products with few columns take longer with them, and folds that run in threads
    would share the cores with them. Limits are those of the whole process: the first that enters sets them, the last that
    leaves restores them.
    """
    with _lock:
        _limits.append(None if _limits else _thread_pools().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _limits.pop() if len(_limits) > 1 else _limits.pop().restore_original_limits()
