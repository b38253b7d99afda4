"""Print results to standard output, everything else to standard error, and write the files of a command."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tamiz._utils.progress import format_size, format_time
from tamiz._utils.records import to_plain
from tamiz._utils.text import WARNING
from tamiz.cli.errors import name_options
from tamiz.cli.output import RESULTS, free_folder, output_folder
from tamiz.report.text import clean_text

#: Seconds between two lines about the progress where there is no terminal.
HEARTBEAT = 10.0


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
        self._stage, self._began, self._last = "", 0.0, 0.0
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
        stem = file.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")[0] or file.stem
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
        from tamiz.report.page import report

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
        now = time.monotonic()
        if stage != self._stage:
            self.__exit__()
            self._stage, self._began, self._last = stage, now, now
        if self.quiet:
            return
        if self.err.is_terminal:
            if self._bar is None:
                columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24))
                count = DownloadColumn() if stage.startswith("reading") else MofNCompleteColumn()  # bytes, or parts
                counts = (count, TextColumn("left"), TimeRemainingColumn())
                # The default looks at the last half minute only, in which a network may end no step.
                self._bar = Progress(*columns, *counts, console=self.err, transient=True, speed_estimate_period=600)
                self._bar.start()
                self._bar.add_task(stage, total=total)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
            if done >= total:
                self.__exit__()
        elif now - self._last >= HEARTBEAT and done:
            self._last = now
            left = (now - self._began) * (total - done) / done
            show = format_size if stage.startswith("reading") else "{:,}".format
            self.err.print(Text(f"{stage}: {show(done)} of {show(total)}, about {format_time(left)} left", style="dim"))

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
