"""Finished cells on disk: one small file each, written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamiz._files import write_atomic
from tamiz.errors import TamizError
from tamiz.reproduce.cells import Cell, canonical_json

STORE_FORMAT = 1


class StoreError(TamizError):
    """Raise if the folder of a run cannot be used; the message says what to do."""


def store_error(fault: OSError, folder: Path) -> StoreError:
    """Return the error that tells the user what a fault of the disk means.

    Examples
    --------
    >>> str(store_error(OSError(errno.ENOSPC, "No space left on device"), Path("run")))
    'The disk of run is full. Make room and start again: finished cells are kept and not computed twice.'
    """
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"The disk of {folder} is full. Make room and start again: finished cells are kept and not computed twice."
        )
    return StoreError(f"{folder} cannot be used ({fault.strerror or fault}). Name another folder with --out.")


def check_run_folder(folder: Path) -> None:
    """Create the folder of a run if it is missing, and check that it can be written.

    Raises
    ------
    StoreError
        If it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise store_error(fault, folder) from None


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(record).encode()).hexdigest()


class CellStore:
    """Keep the finished cells of a run in a folder.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    warn : callable, default=no-op
        Called with a sentence if a damaged file is moved aside.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = CellStore(Path(folder))
    ...     cell = Cell("microarray", "toy", {"split": 0})
    ...     store.write(cell, {"score": 0.1})
    ...     store.read(cell), store.read(Cell("microarray", "toy", {"split": 1}))
    ({'score': 0.1}, None)
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder = folder
        self.warn = warn
        check_run_folder(folder)

    def path_of(self, cell: Cell) -> Path:
        """Return the file of a cell; two letters of its key name a folder, so that none gets too large."""
        return self.folder / cell.key[:2] / f"{cell.key}.json"

    def read(self, cell: Cell) -> Any:
        """Return the result of a cell, or None if it is missing or damaged (the file is then moved aside)."""
        path = self.path_of(cell)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise store_error(fault, path) from None
        try:
            record = json.loads(content)
            checksum = record.pop("checksum")
            if record["format"] != STORE_FORMAT or record["key"] != cell.key or checksum != _checksum(record):
                raise ValueError
            return record["result"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._move_aside(path, cell)
            return None

    def _move_aside(self, path: Path, cell: Cell) -> None:
        target = path.with_suffix(".damaged")
        number = 1
        while target.exists():
            number += 1
            target = path.with_suffix(f".damaged{number}")
        try:
            os.replace(path, target)
        except OSError as fault:
            raise store_error(fault, path) from None
        self.warn(f"{path} is damaged: moved to {target.name}; {cell.name} is computed again.")

    def write(self, cell: Cell, result: Any, versions: dict[str, str] | None = None) -> None:
        """Write the result of a cell, with its settings and the versions of what ran."""
        record = {
            "format": STORE_FORMAT,
            "key": cell.key,
            "protocol": cell.protocol,
            "name": cell.name,
            "tamiz": cell.version,
            "settings": dict(cell.settings),
            "versions": versions or {},
            "result": result,
        }
        record["checksum"] = _checksum(record)
        path = self.path_of(cell)
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, canonical_json(record) + "\n")
        except OSError as fault:
            raise store_error(fault, self.folder) from None
