"""Cells in processes and on a cluster: what is there is not computed again, what fails or dies takes nothing with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tamiz.paper import runner
from tamiz.paper.runner import run_cells
from tamiz.paper.store import Cell, CellStore


def shares(results):
    """Results without the seconds, which differ."""
    return {key: result["share"] for key, result in results.items()}


def bad_cell(cell):
    return Cell(cell.protocol, "the bad one", {**cell.settings, "data": "another table"})


def test_bad_cell_damaged_cell_and_second_start(tmp_path, quick_cells):
    cells = [bad_cell(quick_cells[0]), *quick_cells[:5], quick_cells[0]]
    store, said, steps = CellStore(tmp_path), [], []
    first = run_cells(
        cells, store, jobs=2, warn=said.append, progress=lambda done, total, note: steps.append((done, total))
    )
    assert list(first.failures) == ["the bad one"]
    assert "the bad one failed" in said[0]
    assert (first.n_computed, first.n_reused) == (5, 0)
    assert steps == [(i, 6) for i in range(1, 7)]

    store.path_of(quick_cells[2]).write_text("{")
    second = run_cells(cells[1:], CellStore(tmp_path, said.append), jobs=2)
    assert (second.n_computed, second.n_reused, second.failures) == (1, 4, {})
    assert "is damaged" in said[-1]
    assert shares(second.results) == shares(first.results)


def test_a_worker_that_is_killed_takes_one_cell_at_most(tmp_path, quick_cells):
    """Every worker is killed as soon as it is there, until a cell has been given up; then all is left in peace."""
    peace = threading.Event()

    def kill_workers():
        while not peace.is_set():
            for child in multiprocessing.active_children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.02)

    def give_up(sentence):
        peace.set()

    killer = threading.Thread(target=kill_workers)
    killer.start()
    try:
        report = run_cells(quick_cells[:6], CellStore(tmp_path), jobs=2, warn=give_up)
    finally:
        peace.set()
        killer.join()
    assert len(report.failures) == 1
    assert "was killed" in next(iter(report.failures.values()))
    assert report.n_computed == 5
    assert len(report.results) == 5


class FaultyPool(ProcessPoolExecutor):
    """A pool whose second submission fails as where a pipe was closed; ``breaks``: because a worker had died."""

    breaks = True
    submissions = 0

    def submit(self, *args, **kwargs):
        type(self).submissions += 1
        if type(self).submissions == 2:
            self._broken = "a worker died" if self.breaks else False
            raise OSError("handle is closed")
        return super().submit(*args, **kwargs)


@pytest.mark.parametrize("breaks", [True, False])
def test_a_pool_that_breaks_while_a_cell_is_handed_over(tmp_path, quick_cells, monkeypatch, breaks):
    """Nothing is lost where a worker's death closed the pipe; any other fault of the system is not swallowed."""
    monkeypatch.setattr(FaultyPool, "breaks", breaks)
    monkeypatch.setattr(FaultyPool, "submissions", 0)
    monkeypatch.setattr(
        runner, "_make_pool", lambda jobs: FaultyPool(jobs, mp_context=multiprocessing.get_context("spawn"))
    )
    if not breaks:
        with pytest.raises(OSError, match="handle is closed"):
            run_cells(quick_cells[:3], CellStore(tmp_path), jobs=2)
        return
    report = run_cells(quick_cells[:3], CellStore(tmp_path), jobs=2)
    assert (report.n_computed, report.failures) == (3, {})


def test_full_disk_stops_the_run_and_leaves_no_process(tiny_disk, quick_cells):
    from tamiz.paper.store import StoreError

    (tiny_disk / "ballast").write_bytes(b"x" * 20_000)
    before = {child.pid for child in multiprocessing.active_children()}  # other tests may have left a pool running
    with pytest.raises(StoreError, match="is full"):
        run_cells(quick_cells, CellStore(tiny_disk / "cells"), jobs=2)
    assert {child.pid for child in multiprocessing.active_children()} <= before


COMMAND = [sys.executable, "-m", "tamiz.cli.main", "reproduce", "ground-truth", "--problems", "xor,ring"]
COMMAND += ["--sizes", "128,256", "-m", "relieff", "--out"]


def start(folder, jobs):
    command = [*COMMAND, str(folder), "--jobs", str(jobs)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finished(folder):
    return len(list(Path(folder, "cells").rglob("*.json")))


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_kill_9_and_second_start_give_the_same_table_bit_for_bit(tmp_path):
    with start(tmp_path / "killed", jobs=2) as run:
        while finished(tmp_path / "killed") < 5:
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.02)
        workers = children_of(run.pid)
        run.kill()
    assert workers
    deadline = time.monotonic() + 600
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its killed parent"
        time.sleep(0.05)
    kept = finished(tmp_path / "killed")
    assert 5 <= kept < 48
    assert not (tmp_path / "killed" / "results.md").exists()

    with start(tmp_path / "killed", jobs=1) as second, start(tmp_path / "whole", jobs=1) as whole:
        said = second.communicate()[1]
        whole.communicate()
    assert (second.returncode, whole.returncode) == (0, 0)
    assert f"{48 - kept} cells computed, {kept} found finished, 0 failed" in said
    for name in ("results.md", "results.csv", "results.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
