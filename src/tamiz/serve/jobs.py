"""Run one job at a time for each page; a newer job of the same page ends the older one."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

#: Called with (kind, data) for each event of a job, and with None when the job has ended.
Send = Callable[[tuple[str, dict[str, Any]] | None], None]


class JobCancelled(Exception):
    """Raise inside a job that is no longer wanted."""


class LiveJob:
    """Work that can be cancelled from another thread.

    Parameters
    ----------
    work : callable
        ``work(job)``; calls :meth:`check` often and :meth:`emit` for each result.
    send : callable
        Takes the events; called from the thread of the job.
    before : LiveJob or None, default=None
        Job whose end is waited for.
    """

    def __init__(self, work: Callable[[LiveJob], None], send: Send, before: LiveJob | None = None) -> None:
        self._work, self._send, self._before = work, send, before
        self._cancelled, self.ended = threading.Event(), threading.Event()

    def cancel(self) -> None:
        """Ask the job to end; it does so at its next :meth:`check`."""
        self._cancelled.set()

    def check(self, *_: Any) -> None:
        """Raise JobCancelled if the job is no longer wanted; takes and ignores what an engine reports as progress."""
        if self._cancelled.is_set():
            raise JobCancelled

    def emit(self, kind: str, **data: Any) -> None:
        """Send an event, unless the job is no longer wanted."""
        self.check()
        self._send((kind, data))

    def run(self) -> None:
        """Do the work; send None at its end, whatever that was."""
        if self._before is not None:
            self._before.ended.wait()
            self._before = None
        try:
            self.check()
            self._work(self)
        except JobCancelled:
            pass
        except Exception:
            traceback.print_exc(file=sys.stderr)
        finally:
            self._send(None)
            self.ended.set()


class LiveJobs:
    """Run jobs of several pages side by side, those of one page one after the other, the newest only.

    Examples
    --------
    >>> jobs, events = LiveJobs(), []
    >>> _ = jobs.submit("page", lambda job: job.emit("fit", m=3), events.append)
    >>> jobs.wait()
    True
    >>> events
    [('fit', {'m': 3}), None]
    """

    def __init__(self) -> None:
        #: The newest job of each page.
        self._newest: dict[str, LiveJob] = {}
        self._lock = threading.Lock()

    def submit(self, page: str, work: Callable[[LiveJob], None], send: Send) -> LiveJob:
        """Cancel the job of the same page, and start this one as soon as that has ended.

        Parameters
        ----------
        page : str
            Whose job it is.
        work, send : callable
            As for :class:`LiveJob`.

        Returns
        -------
        LiveJob
        """
        with self._lock:
            self._newest = {name: job for name, job in self._newest.items() if not job.ended.is_set()}
            before = self._newest.get(page)
            job = self._newest[page] = LiveJob(work, send, before)
        if before is not None:
            before.cancel()
        threading.Thread(target=job.run, daemon=True, name="tamiz-live-fit").start()
        return job

    def cancel_all(self) -> None:
        """Ask every job to end."""
        for job in list(self._newest.values()):
            job.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no job runs; tell whether that is so."""
        return all(job.ended.wait(timeout) for job in list(self._newest.values()))
