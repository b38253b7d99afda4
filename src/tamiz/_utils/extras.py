"""Dependencies: import optional ones, or name the command which installs them; their versions; a Dask scheduler."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tamiz._version import __version__
from tamiz.errors import MissingExtraError, SourceError

#: Seconds to wait for a scheduler.
CONNECT_SECONDS = 10


def load_names(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Any, Any]:
    """Make ``__getattr__`` and ``__dir__`` of a package whose names are loaded when they are first used.

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping of str to sequence of str
        For each module, relative to the package, the names that are loaded from there.
    """

    def load(name: str) -> Any:
        for module, names in homes.items():
            if name in names:
                return getattr(import_module(f".{module}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(sys.modules[package].__all__)


def require(package: str, extra: str, what: str) -> Any:
    """Import an optional package.

    Parameters
    ----------
    package : str
        The module to import.
    extra : str
        The extra of tamiz that installs it.
    what : str
        What needs it; the error begins with it.

    Returns
    -------
    module

    Raises
    ------
    MissingExtraError
        If the package is not installed. An ImportError raised inside an installed package is not caught: it is not solved
        by installing the package again.

    Examples
    --------
    >>> require("json", "cli", "The report").__name__
    'json'
    >>> require("no_such_package", "torch", "DFS")
    Traceback (most recent call last):
    tamiz.errors.MissingExtraError: DFS needs no_such_package. Install it with: pip install "tamiz[torch]"
    """
    try:
        return import_module(package)
    except ImportError as error:
        try:
            installed = find_spec(package.partition(".")[0]) is not None
        except (ImportError, ValueError):  # a module set to None in sys.modules counts as missing
            installed = False
        if installed:
            raise
        name = package.partition(".")[0]
        raise MissingExtraError(f'{what} needs {name}. Install it with: pip install "tamiz[{extra}]"') from error


@contextmanager
def connect(address: str | None) -> Iterator[None]:
    """Send work to a Dask scheduler such as ``tcp://host:8786`` inside the context; None changes nothing."""
    if address is None:
        yield
        return
    distributed = require("distributed", "dask", "A scheduler")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"The scheduler {address} cannot be reached: {reason}") from None
    with client:
        yield


def active_client() -> Any:
    """Find the Dask client of this process, if one is active; a task on a worker has none."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        distributed.get_worker()
    except ValueError:
        try:
            return distributed.default_client()
        except ValueError:
            pass
    return None


def library_versions(
    packages: Sequence[str] = ("tamiz", "numpy", "scipy", "scikit-learn", "numba", "torch"),
) -> dict[str, str]:
    """Find the versions of Python and of those packages that are installed.

    Examples
    --------
    >>> sorted(library_versions(["numpy", "no-such-package"]))
    ['numpy', 'python']
    """
    import platform
    from importlib import metadata

    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = __version__ if package == "tamiz" else metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
