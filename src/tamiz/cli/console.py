"""Print results to standard output, and everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tamiz._utils.text import WARNING
from tamiz.cli.errors import name_options
from tamiz.report.records import to_plain
from tamiz.report.text import clean_text


def json_text(record: Any, encoding: str = "utf-8") -> str:
    r"""Return results as JSON; letters that the encoding lacks, and halves of surrogate pairs, are escaped.

    Parameters
    ----------
    record : object
        The results.
    encoding : str, default="utf-8"
        Encoding of where the text goes.

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
        self.quiet = quiet
        self.as_json = as_json
        # Names come from the data: no markup, no emoji codes, nothing that a terminal could obey.
        style: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": False}
        self.out = Console(file=sys.stdout, **style)
        self.err = Console(file=sys.stderr, **style)
        self.notes: list[str] = []

    def say(self, message: str) -> None:
        """Print a message, and keep it for the report; one that begins with "Warning:" is printed to be seen."""
        self._note(message, "yellow" if message.startswith(WARNING) else "dim")

    def warn(self, message: str) -> None:
        """Print a message that should be seen, and keep it for the report."""
        self._note(message, "yellow")

    def _note(self, message: str, style: str) -> None:
        message = clean_text(name_options(message))
        self.notes.append(message)
        if not self.quiet:
            self.err.print(Text(message, style=style))

    def show(self, *parts: Any) -> None:
        """Print results as tables and text."""
        if not self.quiet and not self.as_json:
            for part in parts:
                self.out.print(part)

    def result(self, record: dict[str, Any]) -> None:
        """Print results as JSON, if asked for."""
        if self.as_json:
            sys.stdout.write(json_text(record, sys.stdout.encoding or "utf-8"))
            sys.stdout.flush()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar with the time left on standard error; yield a function to call after each step."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        shown = not self.quiet and self.err.is_terminal
        # The default looks at the last half minute only, in which a network may end no step.
        with Progress(
            *columns, console=self.err, transient=True, disable=not shown, speed_estimate_period=600
        ) as progress:
            task = progress.add_task(label, total=total)
            yield lambda: progress.advance(task)
