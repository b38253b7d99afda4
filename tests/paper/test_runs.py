"""Runs: cells on disk, in processes and on a cluster. What is there is not computed again; a fault takes nothing with it."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tamiz.paper import runner
from tamiz.paper.protocol import Cell, load_protocol
from tamiz.paper.runner import CellStore, ClusterError, StoreError, execute, run_cells, run_protocol

CELL = Cell("microarray", "toy, split 1", {"dataset": "toy", "unit": 0, "parameters": {"alpha": 0.5}})


def scores(results):
    """Results without the seconds, which differ."""
    return {key: result["scores"] for key, result in results.items()}


def bad_cell(cell):
    return Cell(cell.protocol, "the bad one", {**cell.settings, "data": "another table"})


# ---- the store


def test_result_comes_back_bit_for_bit(tmp_path):
    result = {"scores": [["SVM", None, [0.1 + 0.2, 1 / 3, 1e-17]]], "support": [[1, 2]], "none": None}
    CellStore(tmp_path).write(CELL, result, {"numpy": "2"})
    record = CellStore(tmp_path).read(CELL)
    assert record["result"] == result
    assert (record["settings"], record["versions"], record["tamiz"]) == (CELL.settings, {"numpy": "2"}, CELL.version)
    renamed = Cell("microarray", "renamed", dict(reversed(CELL.settings.items())))
    assert CellStore(tmp_path).read(renamed)["result"] == result


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content.replace(b'"score":0.5', b'"score":0.6'),
        lambda content: b"[1, 2]",
        lambda content: b'{"checksum": 1}',
        lambda content: b"\xff\xfe\x00",
        lambda content: b"[" * 100_000,
    ],
    ids=["half", "empty", "altered", "list", "other record", "no text", "brackets"],
)
def test_a_damaged_file_is_named_and_not_believed(tmp_path, damage):
    said = []
    store = CellStore(tmp_path, said.append)
    store.write(CELL, {"score": 0.5})
    path = store.path_of(CELL)
    path.write_bytes(damage(path.read_bytes()))
    assert store.read(CELL) is None
    assert str(path) in said[0]
    assert CELL.name in said[0]
    store.write(CELL, {"score": 0.5})
    assert store.read(CELL)["result"] == {"score": 0.5}


def test_full_disk_keeps_what_is_there(tiny_disk):
    store = CellStore(tiny_disk / "cells")
    store.write(CELL, {"a": 1})
    with pytest.raises(StoreError, match=r"disk of .*cells is full. Make room and start again"):
        store.write(Cell("microarray", "big", {"unit": 7}), {"a": "x" * 100_000})
    assert store.read(CELL)["result"] == {"a": 1}
    assert [file for file in (tiny_disk / "cells").rglob("*") if file.name.endswith(".part")] == []


def test_folders_that_cannot_be_used(tmp_path, read_only_disk):
    with pytest.raises(StoreError, match=r"cannot be used .*Read-only.*--out"):
        CellStore(read_only_disk / "cells")
    (tmp_path / "cells").write_text("not a folder")
    with pytest.raises(StoreError, match=re.escape(str(tmp_path / "cells"))):
        CellStore(tmp_path / "cells")


# ---- processes


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
    assert scores(second.results) == scores(first.results)
    assert second.sources == first.sources == {runner.source_of_package()}


def test_a_worker_that_is_killed_takes_one_cell_at_most(tmp_path, quick_cells):
    """Every worker is killed as soon as it is there, until a cell has been given up; then all is left in peace."""
    peace = threading.Event()

    def kill_workers():
        while not peace.is_set():
            for child in multiprocessing.active_children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.02)

    killer = threading.Thread(target=kill_workers)
    killer.start()
    try:
        report = run_cells(quick_cells[:6], CellStore(tmp_path), jobs=2, warn=lambda sentence: peace.set())
    finally:
        peace.set()
        killer.join()
    assert len(report.failures) == 1
    assert "was killed" in next(iter(report.failures.values()))
    assert report.n_computed == len(report.results) == 5


COMMAND = [sys.executable, "-m", "tamiz.cli.main", "reproduce", "ground-truth", "--problems", "xor,ring"]
COMMAND += ["--sizes", "128,256", "-m", "relieff", "--out"]


def start(folder, jobs):
    command = [*COMMAND, str(folder), "--jobs", str(jobs)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finished(folder):
    return len(list(Path(folder, "cells").rglob("*.json")))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_kill_9_and_second_start_give_the_same_table_bit_for_bit(tmp_path):
    with start(tmp_path / "killed", jobs=2) as run:
        while finished(tmp_path / "killed") < 5:
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.02)
        workers = [int(word) for word in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
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


# ---- a Dask cluster


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", "nonsense", "", "tcp://h:abc", "http://x:1"])
def test_unreachable_cluster(tmp_path, quick_cells, monkeypatch, address):
    """For an address that is none no client is made: it would print a trace when it is collected."""
    distributed = pytest.importorskip("distributed")
    if address != "tcp://127.0.0.1:9":
        monkeypatch.delattr(distributed.Client, "__init__")
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", 0.2)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at .*leave --dask out"):
        run_cells(quick_cells[:1], CellStore(tmp_path), dask=address)


def test_dask_worker_killed_in_the_middle(tmp_path, quick_cells):
    """A real cluster of two processes, one of which is killed when the first cells are back."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
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
    assert scores(report.results) == {cell.key: execute(cell)["result"]["scores"] for cell in quick_cells}


# ---- from a plan to files


def test_a_protocol_runs_in_processes_and_resumes(toy):
    protocol, said = load_protocol("toy"), []
    run = run_protocol(protocol(numbers=[2, 3, 13]), toy, jobs=2, warn=said.append)
    assert run.summary.content["squares"] == [4, 9]
    assert run.failures == {"square of 13": "ArithmeticError: 13 brings bad luck"}
    assert (run.n_computed, run.n_reused) == (2, 0)
    assert sorted(run.files) == ["csv", "json", "md", "run"]
    assert "No figure: matplotlib is not installed" in said[-1]
    again = run_protocol(protocol(numbers=[2, 3, 4]), toy, jobs=1)
    assert (again.n_computed, again.n_reused) == (1, 2)
    assert again.summary.content["squares"] == [4, 9, 16]
    record = json.loads((toy / "run.json").read_text())
    assert record["command"] == "tamiz reproduce toy --numbers 2,3,4"
    assert record["options"] == {"numbers": [2, 3, 4], "seed": 0}
    assert record["sources"] == [runner.source_of_package()]
    assert {"python", "numpy", "tamiz"} <= set(record["versions"])
    assert record["processor"].endswith("cores")


def test_options_are_checked_before_anything_is_read():
    microarray = load_protocol("Microarray")
    for options, message in [
        ({"datasets": ["colonn"]}, "Did you mean 'colon'"),
        ({"learners": ["svn"]}, "Unknown learner 'svn'. Did you mean 'SVM'"),
        ({"grid": "smal"}, "Unknown grid 'smal'. Did you mean 'small'"),
        ({"k": [0]}, "-k must be at least 1"),
        ({"repeats": 0}, "--repeats must be at least 1, got 0"),
        ({"recipe": "papper"}, "Did you mean 'paper'"),
        ({"methods": ["fisher", "e2efs-ranking"]}, "no recipe for the method 'e2efs-ranking': leave it out"),
    ]:
        with pytest.raises(ValueError, match=message):
            microarray(**options)
    with pytest.raises(TypeError, match="colour"):
        microarray(colour="red")
    with pytest.raises(ValueError, match=r"Unknown protocol 'imags'. Did you mean 'images'"):
        load_protocol("imags")
