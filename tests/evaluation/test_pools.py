"""Pieces of work in threads and processes: order, one torch thread each, errors, processes that die."""

from __future__ import annotations

import multiprocessing
import operator
import os
import threading
import time

import pytest

from tamiz.evaluation.pools import one_torch_thread, run_in_processes, run_in_threads

#: Functions of this file would not be found by other processes; ``eval`` is.
DESCRIBE = "(number, __import__('os').getpid(), __import__('torch').get_num_threads())"


def test_results_come_in_order_from_processes_with_one_thread_each():
    pytest.importorskip("torch")
    told = []
    results = run_in_processes(eval, DESCRIBE, [({"number": i},) for i in range(4)], 2, told.append)
    assert [result[0] for result in results] == [0, 1, 2, 3]
    assert os.getpid() not in {result[1] for result in results}
    assert {result[2] for result in results} == {1}
    assert sorted(told) == [0, 1, 2, 3]


def test_one_job_stays_in_this_process_and_gives_the_threads_back():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        results = run_in_processes(eval, DESCRIBE, [({"number": 7},)], 1)
        assert results == [(7, os.getpid(), 1)]
        with pytest.raises(ZeroDivisionError), one_torch_thread():
            raise ZeroDivisionError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_error_or_the_death_of_a_process_reaches_the_caller_and_leaves_no_process():
    before = set(multiprocessing.active_children())  # a pool of joblib that an earlier test left
    with pytest.raises(ZeroDivisionError, match="division"):
        run_in_processes(operator.truediv, 1, [(1,), (0,), (2,)], 2)
    with pytest.raises(MemoryError, match="ended from outside"):
        run_in_processes(eval, "__import__('os')._exit(9)", [({},), ({},)], 2)
    assert set(multiprocessing.active_children()) <= before


def test_an_error_in_one_thread_reaches_the_caller_and_stops_the_others():
    started, steps = threading.Event(), []

    def fail(tick):
        started.wait()
        raise ZeroDivisionError("here")

    def go_on(tick):
        for _ in range(10_000):
            tick()
            steps.append(1)
            started.set()
            time.sleep(0.01)

    with pytest.raises(ZeroDivisionError, match="here"):
        run_in_threads([fail, go_on, go_on], 2)
    assert 1 <= len(steps) < 10_000


def test_processes_start_where_signals_cannot_be_blocked(monkeypatch):
    """As on Windows, whose ``signal`` has no ``pthread_sigmask``."""
    monkeypatch.delattr("signal.pthread_sigmask", raising=False)
    assert run_in_processes(pow, 2, [(3,), (5,)], 2) == [8, 32]
