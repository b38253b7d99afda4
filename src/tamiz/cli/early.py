"""Checks that take no time: a wrong path, number or name is told before scikit-learn and the engines are loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.prepare import parse_k
from tamiz.errors import MissingExtraError
from tamiz.estimators.networks import find_network
from tamiz.tables.files import is_stream
from tamiz.tables.formats import check_file


def check_k(text: str) -> None:
    """Raise if M is no number, or one that no table can have.

    Examples
    --------
    >>> check_k("0")
    Traceback (most recent call last):
    tamiz.cli.errors.CommandError: -k must be at least 1, got 0.
    """
    if text == "auto":
        return
    value = parse_k(text)
    if isinstance(value, int) and value < 1:
        raise CommandError(f"-k must be at least 1, got {text}.", EXIT_USAGE)
    if isinstance(value, float) and not 0 < value < 1:
        raise CommandError(f"-k={text} is a fraction out of range; give one between 0 and 1.", EXIT_USAGE)


def check_network(name: str) -> None:
    """Raise if a network needs a package that is not installed."""
    try:
        missing = not find_network(name).compiled and find_spec("torch") is None
    except (ImportError, ValueError):  # an import hook that forbids it
        missing = True
    if missing:
        raise MissingExtraError(f'--network {name} needs torch. Install it with: pip install "tamiz[torch]"')


def check_arguments(file: Path, k_values: str | None, network: str, test: Path | None = None) -> None:
    """Check what was typed, as far as that takes no time.

    Parameters
    ----------
    file : Path
        The table, which must be there.
    k_values : str or None
        Numbers of features, separated by commas.
    network : str
        Name of the network.
    test : Path or None, default=None
        Rows to test on, which must be there.
    """
    check_network(network)
    for word in (k_values or "").split(","):
        if word.strip():
            check_k(word.strip())
    for path in (file, test):
        if path is not None and not is_stream(path):
            check_file(path)
