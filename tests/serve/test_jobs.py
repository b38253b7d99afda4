"""Jobs of a page: the newest only, and nothing keeps running."""

import threading

from tamiz.serve.fits import LiveJobs

#: Only against hanging for ever: a busy machine may take long.
PATIENCE = 300


def test_a_newer_job_ends_the_older_of_the_same_page_only():
    jobs, started = LiveJobs(), threading.Event()
    ended, events = [], []

    def endless(job):
        started.set()
        try:
            while True:
                job.check()
        finally:
            ended.append("old")

    jobs.submit("one", endless, events.append)
    assert started.wait(PATIENCE)
    gate, other = threading.Event(), []
    jobs.submit("two", lambda job: (gate.wait(PATIENCE), job.emit("fit", m=2)), other.append)
    jobs.submit("one", lambda job: job.emit("fit", m=1), events.append)
    gate.set()
    assert jobs.wait(PATIENCE)
    assert ended == ["old"]
    assert events == [None, ("fit", {"m": 1}), None]
    assert other == [("fit", {"m": 2}), None]


def test_of_many_waiting_jobs_the_last_runs_and_all_end():
    jobs, gate, started = LiveJobs(), threading.Event(), threading.Event()
    ran, ended = [], []
    jobs.submit("page", lambda job: (started.set(), gate.wait(PATIENCE), job.check(), ran.append(-1)), ended.append)
    assert started.wait(PATIENCE)
    for i in range(50):
        jobs.submit("page", lambda job, i=i: ran.append(i), ended.append)
    gate.set()
    assert jobs.wait(PATIENCE)
    assert ran == [49]
    assert ended == [None] * 51


def test_a_job_that_fails_sends_its_error_and_leaves_the_page_free():
    jobs, events = LiveJobs(), []
    jobs.submit("page", lambda job: 1 / 0, events.append)
    assert jobs.wait(PATIENCE)
    kind, data = events.pop(0)
    assert (kind, type(data["error"])) == ("problem", ZeroDivisionError)
    jobs.submit("page", lambda job: job.emit("fit"), events.append)
    assert jobs.wait(PATIENCE)
    assert events == [None, ("fit", {}), None]


def test_all_are_cancelled():
    jobs, started = LiveJobs(), threading.Barrier(3)

    def endless(job):
        started.wait(PATIENCE)
        while True:
            job.check()

    for page in "ab":
        jobs.submit(page, endless, lambda event: None)
    started.wait(PATIENCE)
    assert not jobs.wait(0)
    jobs.cancel_all()
    assert jobs.wait(PATIENCE)
