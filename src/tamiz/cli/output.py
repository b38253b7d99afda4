"""Write an output folder whole or not at all; never overwrite another run."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamiz._utils.text import list_some, quote
from tamiz.cli.errors import EXIT_OUTPUT, CommandError

#: Errors of a disk that takes no more; Python does not say for which file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _list_folder(folder: Path) -> list[str]:
    """Return the names in a folder, none if there is no such folder; raise if it is a file or cannot be read."""
    try:
        if folder.exists() and not folder.is_dir():
            raise CommandError(f"{folder} is a file; name a folder with --out.", EXIT_OUTPUT)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"{quote(folder)} cannot be looked into: {reason}.", EXIT_OUTPUT) from None


def _numbered(folder: Path, is_taken: Callable[[Path], Any]) -> Path:
    """Return the first of folder-2, folder-3, ... that is not taken."""
    number = 2
    while is_taken(other := folder.with_name(f"{folder.name}-{number}")):
        number += 1
    return other


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
    free = _numbered(folder, _list_folder)
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
            # A name has at most 255 bytes, and a letter may take four.
            return Path(
                tempfile.mkdtemp(prefix=f".{folder.name[:40]}.{os.getpid()}.", suffix=".part", dir=parent)
            ), made
        except PermissionError:
            if not folder.is_dir():
                raise
            return Path(tempfile.mkdtemp(prefix=".tamiz.", suffix=".part", dir=folder)), made
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        for path in reversed(made):
            path.rmdir()
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(
            f"{quote(folder)} cannot be written: {reason}. Name another folder with --out.", EXIT_OUTPUT
        ) from None


def _remove_abandoned(folder: Path) -> None:
    """Remove partial folders of runs that were killed: those whose process is gone."""
    for path in folder.absolute().parent.glob(f".{glob.escape(folder.name[:40])}.*.part"):
        owner = path.name.split(".")[-3]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(path, ignore_errors=True)


def _move(partial: Path, folder: Path, force: bool, results: Sequence[str]) -> None:
    """Move all files at once if the folder is new; else one by one, and remove what is left of an earlier run."""
    umask = os.umask(0)
    os.umask(umask)
    partial.chmod(0o777 & ~umask)  # mkdtemp makes folders that only their owner reads
    if not folder.exists():
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            partial.rename(folder)
            return
    if not force and any(path != partial for path in folder.iterdir()):
        other = _numbered(folder, Path.exists)
        partial.rename(other)
        raise CommandError(
            f"Another run has written to {folder} in the meantime. The results of this one are in {other}.", EXIT_OUTPUT
        )
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
        Whether the files of an earlier run may be replaced. Without it, results stand beside the folder if another run has
        written to it in the meantime.
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
    _remove_abandoned(folder)
    partial, made = _make_partial(folder)
    try:
        yield partial
        try:
            _move(partial, folder, force, results)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror}.", EXIT_OUTPUT) from None
    except OSError as error:
        here = error.filename is not None and str(partial) in str(error.filename)
        if here or error.errno in _FULL:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise CommandError(f"The results cannot be written to {folder}: {reason}.", EXIT_OUTPUT) from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.exists():
            for path in reversed(made):
                path.rmdir()
