"""How a download shows that it moves: a bar on stderr, only for people, and only if it takes a while."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """What a download calls as bytes arrive."""

    def __call__(self, name: str, received: int, total: int | None) -> None:
        """``received`` of ``total`` bytes (None if the server does not say) of the file ``name`` are there."""


def format_size(n_bytes: float) -> str:
    """A size for people.

    Examples
    --------
    >>> format_size(512), format_size(1_730_000), format_size(2.5e9)
    ('512 B', '1.7 MB', '2.5 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    raise AssertionError("unreachable")


class TerminalBar:
    """A line on a terminal that is redrawn a few times a second, once ``delay`` seconds have passed.

    Parameters
    ----------
    stream : text stream or None
        Where to draw; nothing is drawn if it is not a terminal. None means ``sys.stderr``.
    delay : float
        Seconds that pass without a bar: short downloads leave no trace.
    interval : float
        Seconds between two drawings.
    """

    def __init__(self, stream: TextIO | None = None, delay: float = 2.0, interval: float = 0.2) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.delay = delay
        self.interval = interval
        self._started = time.monotonic()
        self._last = 0.0
        self._drawn = False

    def __call__(self, name: str, received: int, total: int | None) -> None:
        now = time.monotonic()
        complete = total is not None and received >= total
        if not self.stream.isatty() or now - self._started < self.delay:
            return
        if now - self._last < self.interval and not complete:
            return
        self._last = now
        self.stream.write("\r" + self.line(name, received, total) + "\x1b[K")
        if complete:
            self.stream.write("\n")
        self._drawn = not complete
        self.stream.flush()

    @staticmethod
    def line(name: str, received: int, total: int | None, width: int = 30) -> str:
        """The text of the bar.

        Examples
        --------
        >>> TerminalBar.line("colon.mat", 500_000, 1_000_000, width=10)
        'colon.mat [#####.....]  50% of 1.0 MB'
        >>> TerminalBar.line("colon.mat", 500_000, None)
        'colon.mat 500.0 kB'
        """
        if not total:
            return f"{name} {format_size(received)}"
        share = min(1.0, received / total)
        filled = int(share * width)
        return f"{name} [{'#' * filled}{'.' * (width - filled)}] {share:4.0%} of {format_size(total)}"

    def close(self) -> None:
        """End a line that was left open by a broken download."""
        if self._drawn:
            self.stream.write("\n")
            self.stream.flush()
            self._drawn = False
