"""Print results to standard output, all else to standard error; write the files of a command whole or not at all."""

from __future__ import annotations

import contextlib
import datetime
import errno
import glob
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from tamiz._utils.progress import ProgressBar
from tamiz._utils.text import WARNING, discard, quote, to_plain
from tamiz.cli.errors import EXIT_OUTPUT, CommandError, name_options
from tamiz.report.text import clean_text

#: Seconds between two lines about the progress where there is no terminal.
HEARTBEAT = 10.0
#: Errors of a disk that takes no more; Python does not say for which file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Files of commands by the beginning of their folders: what an earlier run wrote and this one did not is removed.
RESULTS = {
    "tamiz-": ("report.html", "selected.*", "reduced.*", "model.tamiz"),
    "tamiz-compare-": ("report.html", "compare.*"),
    "tamiz-pairs-": ("report.html", "pairs.*", "columns.csv"),
    "tamiz-apply-": ("predictions.csv", "reduced.*"),
}


def json_text(record: Any, encoding: str = "utf-8") -> str:
    r"""Write results as JSON; letters that the encoding lacks, and halves of surrogate pairs, are escaped.

    Examples
    --------
    >>> json_text({"name": "größe"}, "ascii")
    '{\n  "name": "gr\\u00f6\\u00dfe"\n}\n'
    """
    plain = to_plain(record)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = json.dumps(plain, allow_nan=False, indent=2)
    return text + "\n"


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


class Terminal:
    """Print messages, progress and results of a command.

    Parameters
    ----------
    quiet : bool, default=False
        Print nothing but errors.
    as_json : bool, default=False
        Print results as one JSON object instead of tables.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.command = shlex.join(["tamiz", *sys.argv[1:]])
        # Names come from the data: no markup, no emoji codes, nothing that a terminal could obey.
        style: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": False}
        self.out = Console(file=sys.stdout, **style)
        self.err = Console(file=sys.stderr, **style)
        self.notes: list[str] = []
        self._bar: Progress | None = None
        self._stage = ""
        self._folder, self._partial = Path(), Path()
        self._files: dict[str, str] = {}

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @contextmanager
    def results(self, out: Path | None, file: Path, prefix: str, force: bool) -> Iterator[Path]:
        """Yield a folder for the results; they appear in ``out``, or a folder named after the file, all at once."""
        from tamiz.tables.files import without_packing

        stem = without_packing(file).stem
        if str(file) == "-" or file.is_relative_to("/dev") or file.is_relative_to("/proc"):
            stem = "table"
        # The name of a folder has at most 255 bytes, and a temporary one beside it some more.
        stem = stem.encode("utf-8", "surrogateescape")[:150].decode("utf-8", "ignore") or "table"
        self._folder = free_folder(out or Path(prefix + stem), force, self.say)
        with output_folder(self._folder, force, RESULTS[prefix]) as self._partial:
            yield self._partial
        self._partial = self._folder  # the report follows: nothing is lost if it fails or is interrupted

    def write(self, kind: str, name: str, content: Any = None) -> Path:
        """Write a file of the results: text as it is, other objects as JSON, None leaves it to the caller."""
        self._files[kind] = name
        if content is not None:
            text = content if isinstance(content, str) else json_text(content)
            (self._partial / name).write_text(text, encoding="utf-8", newline="")
        return self._partial / name

    def report(self, found: Any, about: Mapping[str, Any], **more: Any) -> None:
        """Write the report of a comparison or of a search for pairs."""
        from tamiz.report import report

        created = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        report(found, path=self.write("report", "report.html"), created=created, **about, **more)

    def say(self, message: str) -> None:
        """Print a message, and keep it for the report; one that begins with "Warning:" is printed to be seen."""
        message = clean_text(name_options(message))
        self.notes.append(message)
        if not self.quiet:
            self.err.print(Text(message, style="yellow" if message.startswith(WARNING) else "dim"))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show a bar with the time left; without a terminal print a line every ten seconds."""
        if stage != self._stage:
            self.__exit__()
            unit: Literal["bytes", "steps"] = "bytes" if stage.startswith("reading") else "steps"
            self._stage, self._lines = stage, ProgressBar(stage, unit=unit, delay=HEARTBEAT, interval=HEARTBEAT)
        if self.quiet:
            return
        if self.err.is_terminal:
            if self._bar is None:
                # The default looks at the last half minute only, in which a network may end no step.
                self._bar = Progress(console=self.err, transient=True, speed_estimate_period=600)
                self._bar.start()
                self._bar.add_task(stage, total=total)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
            if done >= total:
                self.__exit__()
        else:
            self._lines.update(done, total)

    def finish(self, record: dict[str, Any], show: Callable[[Any], Any] | Any, open_report: bool = False) -> None:
        """Print the results of a command as tables or JSON, and open its report if asked for.

        ``show`` makes the tables from the record, which names the files that were written by then.
        """
        self.__exit__()
        if self._files:
            record["files"] = {kind: str(self._folder / name) for kind, name in self._files.items()}
        if self.as_json:
            sys.stdout.write(json_text(record, sys.stdout.encoding or "utf-8"))
            sys.stdout.flush()
        elif not self.quiet:
            self.out.print(show(record) if callable(show) else show)
        if open_report and "report" in self._files:
            typer.launch(str(Path(record["files"]["report"]).absolute()))
