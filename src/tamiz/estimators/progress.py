"""A progress bar with the time left, on stderr, in a few lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tamiz.core import Rule

WIDTH = 30
SECONDS_BETWEEN = 0.1


def clock(seconds: float) -> str:
    """Seconds as people read them.

    Examples
    --------
    >>> clock(4.2), clock(75), clock(7300)
    ('4 s', '1:15', '2:01:40')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ProgressBar:
    """A bar that redraws itself on a terminal; elsewhere (a log file) only its last line is written.

    Parameters
    ----------
    title : str
        What is going on.
    stream : file, optional
        Where to; stderr by default.

    Examples
    --------
    >>> import sys
    >>> with ProgressBar("selecting", stream=sys.stdout) as bar:
    ...     bar.update(0.5, "12 features alive")
    selecting [###############...............]  50%, ... s, 12 features alive
    """

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self.title = title
        self.stream = sys.stderr if stream is None else stream
        self.started = time.perf_counter()
        self.drawn = -SECONDS_BETWEEN
        self.last: tuple[float, str] = (0.0, "")

    def __enter__(self) -> ProgressBar:
        return self

    def update(self, fraction: float, note: str = "") -> None:
        """Say how much is done, from 0 to 1."""
        self.last = (min(max(fraction, 0.0), 1.0), note)
        elapsed = time.perf_counter() - self.started
        if self.stream.isatty() and elapsed - self.drawn >= SECONDS_BETWEEN:
            self.drawn = elapsed
            done = self.last[0]
            left = f"{clock(elapsed * (1 - done) / done)} left" if done > 0 else "starting"
            self.stream.write(f"\r{self._line(left)}\033[K")
            self.stream.flush()

    def _line(self, when: str) -> str:
        done, note = self.last
        filled = round(WIDTH * done)
        bar = "#" * filled + "." * (WIDTH - filled)
        return f"{self.title} [{bar}] {done:4.0%}, {when}" + (f", {note}" if note else "")

    def __exit__(self, *_: Any) -> None:
        end = clock(time.perf_counter() - self.started)
        self.stream.write(("\r" if self.stream.isatty() else "") + self._line(end))
        self.stream.write("\033[K\n" if self.stream.isatty() else "\n")
        self.stream.flush()


@contextmanager
def watch_selection(
    verbose: int | bool, rule: Rule, refinement_steps: int
) -> Iterator[Callable[[int, int, int], None] | None]:
    """The ``progress`` argument of an engine: a bar if ``verbose``, otherwise None.

    Examples
    --------
    >>> with watch_selection(False, Rule(10, 2), 100) as progress:
    ...     progress is None
    True
    """
    if not verbose:
        yield None
        return
    with ProgressBar(f"selecting {rule.n_features_to_select} of {rule.n_features}") as bar:

        def progress(step: int, n_alive: int, refined: int) -> None:
            # When the selection will be closed is not known before it is; about the end of the ramp is a fair guess.
            before = step - refined if refined else max(step, rule.warmup_steps + rule.ramp_steps)
            note = "refining" if refined else f"{n_alive} alive"
            bar.update(step / (before + refinement_steps), note)

        yield progress
        bar.update(1.0, f"{rule.n_features_to_select} selected")
