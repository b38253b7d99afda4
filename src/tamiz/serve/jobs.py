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
    """Hold a piece of work that can be cancelled from another thread.

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


class _Page:
    """Hold the job that runs for a page, and the one that waits."""

    def __init__(self) -> None:
        self.running: LiveJob | None = None
        self.waiting: LiveJob | None = None


class LiveJobs:
    """Run jobs of several pages side by side, those of one page one after the other, the newest only.

    Examples
    --------
    >>> jobs, events = LiveJobs(), []
    >>> _ = jobs.submit("page", lambda job: job.emit("fit", m=3), events.append)
    >>> jobs.wait()
    True
    >>> events, jobs.n_running
    ([('fit', {'m': 3}), None], 0)
    """

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self._changed = threading.Condition()

    @property
    def n_running(self) -> int:
        """Return the number of pages with a job that runs or waits."""
        with self._changed:
            return len(self._pages)

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
            known = self._pages.get(page)
            if known is None:
                self._pages[page] = known = _Page()
                threading.Thread(target=self._run, args=(page, known), daemon=True, name="tamiz-live-fit").start()
            if known.running is not None:
                known.running.cancel()
            overtaken, known.waiting = known.waiting, job
        if overtaken is not None:
            overtaken.cancel()
            overtaken.run()  # ends at once, and says so to who listens
        return job

    def cancel_all(self) -> None:
        """Ask every job to end."""
        with self._changed:
            for page in self._pages.values():
                for job in (page.running, page.waiting):
                    if job is not None:
                        job.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no job runs; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pages, timeout)

    def _run(self, name: str, page: _Page) -> None:
        while True:
            with self._changed:
                page.running, page.waiting = page.waiting, None
                if page.running is None:
                    del self._pages[name]
                    self._changed.notify_all()
                    return
            try:
                page.running.run()
            except Exception:  # the page must stay free for its next job
                traceback.print_exc(file=sys.stderr)
