"""Cells on a Dask cluster: addresses that are none, and workers that die."""

from __future__ import annotations

import os
import signal

import pytest

from tamiz.paper import runner as dask_runner
from tamiz.paper.runner import ClusterError, execute, run_cells
from tamiz.paper.store import Cell, CellStore


def shares(results):
    """Results without the seconds, which differ."""
    return {key: result["share"] for key, result in results.items()}


def bad_cell(cell):
    return Cell(cell.protocol, "the bad one", {**cell.settings, "data": "another table"})


def test_unreachable_cluster(tmp_path, quick_cells, monkeypatch):
    monkeypatch.setattr(dask_runner, "CONNECT_TIMEOUT", 0.2)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at 'tcp://127.0.0.1:9'.*leave --dask out"):
        run_cells(quick_cells[:1], CellStore(tmp_path), dask="tcp://127.0.0.1:9")
    with pytest.raises(ClusterError, match="No Dask scheduler answers at 'nonsense://x'"):
        run_cells(quick_cells[:1], CellStore(tmp_path), dask="nonsense://x")


@pytest.mark.parametrize("address", ["nonsense", "", "tcp://h:abc", "http://x:1"])
def test_an_address_that_is_none_ends_at_once(tmp_path, quick_cells, address, monkeypatch):
    """No client is made for it: one would be heard of again when it is collected, 20 seconds later and with a trace."""
    distributed = pytest.importorskip("distributed")

    def refuse(*args, **kwargs):
        raise AssertionError("a client was made")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at .*leave --dask out"):
        run_cells(quick_cells[:1], CellStore(tmp_path), dask=address)


def test_dask_worker_killed_in_the_middle(tmp_path, quick_cells):
    """A real cluster of two processes, one of which is killed when the first cells are back."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        victims = [worker.process.pid for worker in cluster.workers.values()][:1]
        stored = []

        def progress(done, total, note):
            stored.append(note)
            if done == 2:
                os.kill(victims.pop(), signal.SIGKILL)

        cells = [bad_cell(quick_cells[0]), *quick_cells]
        report = run_cells(cells, CellStore(tmp_path), dask=cluster.scheduler_address, progress=progress)
    assert victims == []
    assert list(report.failures) == ["the bad one"]
    assert report.n_computed == len(quick_cells) == len(report.results)
    assert len(stored) == len(set(stored)) == len(cells)
    here = {cell.key: execute(cell)["result"]["share"] for cell in quick_cells}
    assert shares(report.results) == here
