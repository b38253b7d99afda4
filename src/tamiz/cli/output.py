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

from tamiz._utils.text import discard, quote
from tamiz.cli.errors import EXIT_OUTPUT, CommandError

#: Errors of a disk that takes no more; Python does not say for which file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Files of commands by the beginning of their folders: what an earlier run wrote and this one did not is removed.
RESULTS = {
    "tamiz-": ("report.html", "selected.*", "reduced.*", "model.tamiz"),
    "tamiz-compare-": ("report.html", "compare.*"),
    "tamiz-pairs-": ("report.html", "pairs.*", "columns.csv"),
    "tamiz-apply-": ("predictions.csv", "reduced.*"),
}


def _cannot(folder: Path, what: str, error: Exception) -> CommandError:
    reason = getattr(error, "strerror", None) or str(error)
    return CommandError(f"{quote(folder)} cannot be {what}: {reason}. Name another folder with --out.", EXIT_OUTPUT)


def free_folder(folder: Path, force: bool = False, report: Callable[[str], None] = discard) -> Path:
    """Find the folder for results: itself if it is new, empty or may be replaced, else folder-2, folder-3, ...

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
    free, number = folder, 1
    try:
        if folder.exists() and not folder.is_dir():
            raise CommandError(f"{folder} is a file; name a folder with --out.", EXIT_OUTPUT)
        while not force and free.exists() and (free.is_file() or any(free.iterdir())):
            number += 1
            free = folder.with_name(f"{folder.name}-{number}")
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise _cannot(folder, "looked into", error) from None
    if number > 1:
        report(f"Folder: {free}, since {folder} holds an earlier run (--force replaces it).")
    return free


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
        other = free_folder(folder)
        partial.rename(other)
        message = f"Another run has written to {folder} in the meantime. The results of this one are in {other}."
        raise CommandError(message, EXIT_OUTPUT)
    written = sorted(path.name for path in partial.iterdir())
    for name in written:
        os.replace(partial / name, folder / name)
    for path in [path for pattern in results for path in folder.glob(pattern)]:
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
        Whether the files of an earlier run may be replaced; other files in the folder stay. Without it, results stand beside
        the folder if another run has written to it in the meantime.
    results : sequence of str, default=()
        Patterns of the files of the command.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as somewhere:
    ...     with output_folder(Path(somewhere) / "run") as partial:
    ...         _ = (partial / "a.txt").write_text("hello")
    ...     (Path(somewhere) / "run" / "a.txt").read_text()
    'hello'
    """
    parent = folder.absolute().parent
    made = [path for path in (parent, *parent.parents) if not path.exists()]
    try:
        for path in parent.glob(f".{glob.escape(folder.name[:40])}.*.part"):  # of runs that were killed
            owner = path.name.split(".")[-3]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
                shutil.rmtree(path, ignore_errors=True)
        parent.mkdir(parents=True, exist_ok=True)
        # On the same disk: beside the final one, or in it. A name has at most 255 bytes, and a letter may take four.
        place = folder if folder.is_dir() and not os.access(parent, os.W_OK) else parent
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}.{os.getpid()}.", suffix=".part", dir=place))
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise _cannot(folder, "written", error) from None
    try:
        yield partial
        try:
            _move(partial, folder, force, results)
        except OSError as error:
            raise _cannot(folder, "written", error) from None
    except OSError as error:
        if str(partial) in str(error.filename) or error.errno in _FULL:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise CommandError(f"The results cannot be written to {folder}: {reason}.", EXIT_OUTPUT) from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.exists():
            for path in made:
                path.rmdir()
