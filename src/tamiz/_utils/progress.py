"""Draw a progress bar on stderr for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from typing import Literal, TextIO


def format_time(seconds: float) -> str:
    """Format a duration.

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


def format_size(n_bytes: float) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> format_size(512), format_size(1_730_000), format_size(2.5e9), format_size(999_999)
    ('512 B', '1.7 MB', '2.5 GB', '1.0 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 999.95 or unit == "GB":  # what would be shown as 1000.0 kB is 1.0 MB
            break
    return f"{n_bytes:.1f} {unit}"


class ProgressBar:
    """Draw one line that is updated on a terminal; in a file or a log, write a plain line every ten seconds.

    Parameters
    ----------
    label : str
        What is being done.
    unit : {"steps", "bytes"}, default="steps"
        What is counted. The total of bytes is shown.
    stream : text stream or None, default=None
        Where to write; None is ``sys.stderr``.
    delay : float, default=2.0
        Seconds before anything is drawn: short runs show nothing.
    interval : float or None, default=None
        Seconds between two lines; None is 0.2 on a terminal and 10 elsewhere.
    only_terminal : bool, default=False
        Whether to write nothing if the stream is no terminal.

    Examples
    --------
    >>> bar = ProgressBar("fit", stream=sys.stdout, delay=0.0, interval=0.0)
    >>> bar.update(5, 10, "3 alive")  # doctest: +ELLIPSIS
    fit [##########..........]  50%  3 alive ...left
    >>> bar.close()
    """

    def __init__(
        self,
        label: str,
        *,
        unit: Literal["steps", "bytes"] = "steps",
        stream: TextIO | None = None,
        delay: float = 2.0,
        interval: float | None = None,
        only_terminal: bool = False,
    ) -> None:
        self.label = label
        self.unit = unit
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.interval = (0.2 if self.terminal else 10.0) if interval is None else interval
        self.silent = only_terminal and not self.terminal
        self._started = time.monotonic()
        self._done_at_start = 0
        self._next = self._started + delay
        self._open = False
        self._not_drawn: tuple[int, int | None, str] | None = None

    def begin(self, label: str, done: int = 0) -> None:
        """Begin the next piece of work on a line of its own.

        Parameters
        ----------
        label : str
            What is being done.
        done : int, default=0
            Steps or bytes that were done before; they do not count for the time left.
        """
        self.close()
        self.label = label
        self._started = time.monotonic()
        self._done_at_start = done

    def update(self, done: int, total: int | None, note: str = "") -> None:
        """Draw that ``done`` of about ``total`` are done, if it is time to.

        Parameters
        ----------
        done : int
            Steps or bytes so far.
        total : int or None
            Steps or bytes in all; None if not known.
        note : str, default=""
            Text between the share and the time left.
        """
        now = time.monotonic()
        if self.silent or now < self._next:
            self._not_drawn = (done, total, note)
            return
        self._next = now + self.interval
        self._draw(done, total, note)

    def line(self, done: int, total: int | None, elapsed: float, note: str = "", width: int = 20) -> str:
        """Write the text of the bar.

        Examples
        --------
        >>> ProgressBar("fit").line(30, 120, 10.0, "7 alive")
        'fit [#####...............]  25%  7 alive  30 s left'
        >>> bar = ProgressBar("colon.mat", unit="bytes")
        >>> bar.line(500_000, 1_000_000, 10.0, width=10)
        'colon.mat [#####.....]  50% of 1.0 MB  10 s left'
        >>> bar.line(500_000, None, 10.0)
        'colon.mat 500.0 kB'
        """
        text = f"  {note}" if note else ""
        if total is None:
            return f"{self.label} {format_size(done) if self.unit == 'bytes' else done}{text}"
        share = min(1.0, done / total) if total > 0 else 1.0
        filled = int(share * width)
        size = f" of {format_size(total)}" if self.unit == "bytes" else ""
        gained = done - self._done_at_start
        left = f"  {format_time(elapsed * (total - done) / gained)} left" if gained > 0 and share < 1.0 else ""
        return f"{self.label} [{'#' * filled}{'.' * (width - filled)}] {share:4.0%}{size}{text}{left}"

    def close(self) -> None:
        """End the line on a terminal with the last update; what was drawn stays."""
        if self._open:
            if self._not_drawn is not None:
                self._draw(*self._not_drawn)
            self.stream.write("\n")
            self.stream.flush()
            self._open = False
        self._not_drawn = None

    def _draw(self, done: int, total: int | None, note: str) -> None:
        line = self.line(done, total, time.monotonic() - self._started, note)
        self.stream.write(f"\r{line}\x1b[K" if self.terminal else f"{line}\n")
        self.stream.flush()
        self._open, self._not_drawn = self.terminal, None
