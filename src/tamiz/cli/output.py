"""Write an output folder whole or not at all; never overwrite another run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tamiz.cli.errors import EXIT_OUTPUT, CommandError
from tamiz.tables.messages import list_some


def _list_folder(folder: Path) -> list[str]:
    """Return the names in a folder, none if there is no such folder; raise if it is a file or cannot be read."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; name a folder with --out.", EXIT_OUTPUT)
    try:
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise CommandError(f"{folder} cannot be looked into: {error.strerror}.", EXIT_OUTPUT) from None


def free_folder(folder: Path, force: bool = False, report: Callable[[str], None] = lambda message: None) -> Path:
    """Return the folder itself if it is new, empty or may be replaced; else the first of folder-2, folder-3, ... that is.

    Parameters
    ----------
    folder : Path
        Where the files shall be.
    force : bool, default=False
        Whether an earlier run may be replaced.
    report : callable, default=no message
        Called with a message if it is another folder.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as somewhere:
    ...     _ = (Path(somewhere) / "a.txt").write_text("an earlier run")
    ...     free_folder(Path(somewhere)).name == Path(somewhere).name + "-2"
    True
    """
    if force or not _list_folder(folder):
        return folder
    number = 2
    while _list_folder(folder.with_name(f"{folder.name}-{number}")):
        number += 1
    free = folder.with_name(f"{folder.name}-{number}")
    report(f"Folder: {free}, since {folder} holds an earlier run (--force replaces it).")
    return free


def _check_folder(folder: Path, force: bool) -> None:
    """Raise if the folder is a file, cannot be read, or holds files that may not be replaced."""
    there = _list_folder(folder)
    if there and not force:
        raise CommandError(
            f"{folder} already holds {list_some(there, limit=3)}. "
            "Name another folder with --out, or say --force to replace the files of an earlier run.",
            EXIT_OUTPUT,
        )


def _make_partial(folder: Path) -> tuple[Path, list[Path]]:
    """Make a folder on the same disk, beside the final one (or in it); also return parents that had to be made."""
    made = []
    parent = folder.absolute().parent
    try:
        for missing in reversed([path for path in (parent, *parent.parents) if not path.exists()]):
            missing.mkdir()
            made.append(missing)
        try:
            return Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=parent)), made
        except PermissionError:
            if not folder.is_dir():
                raise
            return Path(tempfile.mkdtemp(prefix=".tamiz.", suffix=".part", dir=folder)), made
    except OSError as error:
        for path in reversed(made):
            path.rmdir()
        raise CommandError(
            f"{folder} cannot be written: {error.strerror}. Name another folder with --out.", EXIT_OUTPUT
        ) from None


def _move(partial: Path, folder: Path, results: Sequence[str]) -> None:
    """Move all files at once if the folder is new; else one by one, and remove what is left of an earlier run."""
    if not folder.exists():
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)  # mkdtemp makes folders that only their owner reads
        partial.rename(folder)
        return
    written = sorted(path.name for path in partial.iterdir())
    for name in written:
        os.replace(partial / name, folder / name)
    partial.rmdir()
    for pattern in results:
        for path in folder.glob(pattern):
            if path.name not in written and path.is_file():
                path.unlink()


@contextmanager
def output_folder(folder: Path, force: bool = False, results: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a folder to write to, which becomes ``folder`` on success and is removed on any error.

    Parameters
    ----------
    folder : Path
        Where the files shall be in the end.
    force : bool, default=False
        Whether the files of an earlier run may be replaced.
    results : sequence of str, default=()
        Patterns of the files that the command writes: those of an earlier run that are not written again are removed. Other
        files in the folder stay in any case.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as somewhere:
    ...     with output_folder(Path(somewhere) / "run") as partial:
    ...         _ = (partial / "a.txt").write_text("hello")
    ...     (Path(somewhere) / "run" / "a.txt").read_text()
    'hello'
    """
    _check_folder(folder, force)
    partial, made = _make_partial(folder)
    try:
        yield partial
        try:
            _move(partial, folder, results)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror}.", EXIT_OUTPUT) from None
    except OSError as error:
        if error.errno is not None and error.filename is not None and str(partial) in str(error.filename):
            raise CommandError(f"The results cannot be written to {folder}: {error.strerror}.", EXIT_OUTPUT) from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.exists():
            for path in reversed(made):
                path.rmdir()
