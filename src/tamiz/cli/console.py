"""What goes to the terminal: results to standard output, everything else to standard error."""

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

from tamiz.report.records import to_plain
from tamiz.report.text import clean_text


class Talk:
    """How a command speaks.

    Parameters
    ----------
    quiet : bool
        Say nothing but errors.
    as_json : bool
        Results as one JSON object instead of tables.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        # Names come from the data: no markup, no emoji codes, nothing that a terminal could obey.
        style: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": False}
        self.out = Console(file=sys.stdout, **style)
        self.err = Console(file=sys.stderr, **style)
        self.notes: list[str] = []

    def say(self, sentence: str) -> None:
        """A remark on the way; also kept for the report."""
        sentence = clean_text(sentence)
        self.notes.append(sentence)
        if not self.quiet:
            self.err.print(Text(sentence, style="dim"))

    def warn(self, sentence: str) -> None:
        """A remark that should be seen."""
        sentence = clean_text(sentence)
        self.notes.append(sentence)
        if not self.quiet:
            self.err.print(Text(sentence, style="yellow"))

    def show(self, *parts: Any) -> None:
        """Results for people."""
        if not self.quiet and not self.as_json:
            for part in parts:
                self.out.print(part)

    def result(self, record: dict[str, Any]) -> None:
        """Results for scripts."""
        if self.as_json:
            sys.stdout.write(json.dumps(to_plain(record), ensure_ascii=False, allow_nan=False, indent=2) + "\n")
            sys.stdout.flush()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar with the time left, on standard error; gone when it is done. Yields what to call at each step."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            # The default looks at the last half minute only, in which a network may end no step.
            TimeRemainingColumn(),
        )
        shown = not self.quiet and self.err.is_terminal
        with Progress(
            *columns, console=self.err, transient=True, disable=not shown, speed_estimate_period=600
        ) as progress:
            task = progress.add_task(label, total=total)
            yield lambda: progress.advance(task)
