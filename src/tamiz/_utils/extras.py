"""Import optional dependencies, with an error that names the command which installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tamiz.errors import MissingExtraError


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
        raise MissingExtraError(f'{what} needs {package}. Install it with: pip install "tamiz[{extra}]"') from error
