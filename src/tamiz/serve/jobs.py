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
    """

    def __init__(self, work: Callable[[LiveJob], None], send: Send) -> None:
        self._work = work
        self._send = send
        self._cancelled = threading.Event()

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
        try:
            self.check()
            self._work(self)
        except JobCancelled:
            pass
        finally:
            self._send(None)


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
        #: The job that runs for each page, and the one that waits.
        self._pages: dict[str, list[LiveJob | None]] = {}
        self._changed = threading.Condition()

    def submit(self, page: str, work: Callable[[LiveJob], None], send: Send) -> LiveJob:
        """Start a job as soon as the one before it has ended, which is asked to.

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
        job = LiveJob(work, send)
        with self._changed:
            if page not in self._pages:
                self._pages[page] = [None, None]
                threading.Thread(target=self._run, args=(page,), daemon=True, name="tamiz-live-fit").start()
            running, overtaken = self._pages[page]
            self._pages[page][1] = job
        if running is not None:
            running.cancel()
        if overtaken is not None:
            overtaken.cancel()
            overtaken.run()  # ends at once, and says so to who listens
        return job

    def cancel_all(self) -> None:
        """Ask every job to end."""
        with self._changed:
            for job in [job for both in self._pages.values() for job in both if job is not None]:
                job.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no job runs; tell whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pages, timeout)

    def _run(self, page: str) -> None:
        while True:
            with self._changed:
                job = self._pages[page][1]
                self._pages[page] = [job, None]
                if job is None:
                    del self._pages[page]
                    self._changed.notify_all()
                    return
            try:
                job.run()
            except Exception:  # the page must stay free for its next job
                traceback.print_exc(file=sys.stderr)
