"""A bar on stderr with the time left, for anything that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from typing import TextIO


def format_time(seconds: float) -> str:
    """A duration for people.

    Examples
    --------
    >>> format_time(4.2), format_time(95), format_time(7300)
    ('4 s', '1:35 min', '2:01 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    large, small, unit = (*divmod(whole, 60), "min") if whole < 3600 else (*divmod(whole // 60, 60), "h")
    return f"{large}:{small:02d} {unit}"


class ProgressBar:
    """One line that is redrawn on a terminal; into a file or a log, a plain line now and then.

    Parameters
    ----------
    label : str
        What is being done.
    stream : text stream or None
        Where to write; None is ``sys.stderr``.
    delay : float
        Seconds that pass without a trace: short runs show nothing.
    interval : float or None
        Seconds between two lines; None is 0.2 on a terminal and 10 elsewhere.

    Examples
    --------
    >>> bar = ProgressBar("fit", stream=sys.stdout, delay=0.0, interval=0.0)
    >>> bar.update(5, 10, "3 alive")  # doctest: +ELLIPSIS
    fit [##########..........]  50%  3 alive ...left
    >>> bar.close()
    """

    def __init__(
        self, label: str, *, stream: TextIO | None = None, delay: float = 2.0, interval: float | None = None
    ) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.interval = (0.2 if self.terminal else 10.0) if interval is None else interval
        self._started = time.monotonic()
        self._next = self._started + delay
        self._open = False

    def update(self, done: int, total: int, note: str = "") -> None:
        """``done`` of about ``total`` steps are done; draws only if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.interval
        line = self.line(done, total, now - self._started, note)
        self.stream.write(f"\r{line}\x1b[K" if self.terminal else f"{line}\n")
        self.stream.flush()
        self._open = self.terminal

    def line(self, done: int, total: int, elapsed: float, note: str = "", width: int = 20) -> str:
        """The text of the bar.

        Examples
        --------
        >>> ProgressBar("fit").line(30, 120, 10.0, "7 alive")
        'fit [#####...............]  25%  7 alive  30 s left'
        """
        share = min(1.0, done / total) if total > 0 else 1.0
        filled = int(share * width)
        left = f"  {format_time(elapsed * (1.0 - share) / share)} left" if share > 0 else ""
        text = f"  {note}" if note else ""
        return f"{self.label} [{'#' * filled}{'.' * (width - filled)}] {share:4.0%}{text}{left}"

    def close(self) -> None:
        """End the line; what was drawn stays."""
        if self._open:
            self.stream.write("\n")
            self.stream.flush()
            self._open = False
