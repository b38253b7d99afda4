"""Runs: cells on disk and in processes. What is there is not computed again; a fault takes nothing with it."""

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
from tamiz.paper.runner import CellStore, StoreError, run_cells, run_protocol

CELL = Cell("microarray", "toy, split 1", {"dataset": "toy", "unit": 0, "parameters": {"alpha": 0.5}})


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


def test_a_protocol_runs_in_processes_and_resumes(toy):
    """A cell that fails and a file that is damaged cost themselves only."""
    protocol, said, steps = load_protocol("toy"), [], []
    run = run_protocol(
        *(protocol(numbers=[2, 3, 13]), toy),
        jobs=2,
        warn=said.append,
        progress=lambda done, total, note: steps.append((done, total)),
    )
    assert run.summary.content["squares"] == [4, 9]
    assert run.failures == {"square of 13": "ArithmeticError: 13 brings bad luck"}
    assert "square of 13 failed" in said[0]
    assert (run.n_computed, run.n_reused) == (2, 0)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert sorted(run.files) == ["json", "md", "run"]
    assert "No figure: matplotlib is not installed" in said[-1]
    plan = protocol(numbers=[2, 3, 4])
    CellStore(toy / "cells").path_of(plan.make_cells()[0]).write_text("{")
    again = run_protocol(plan, toy, jobs=1, warn=said.append)
    assert (again.n_computed, again.n_reused) == (2, 1)
    assert any("is damaged; square of 2 is computed again" in sentence for sentence in said)
    assert again.summary.content["squares"] == [4, 9, 16]
    record = json.loads((toy / "run.json").read_text())
    assert record["command"] == "tamiz reproduce toy --numbers 2,3,4"
    assert record["options"] == {"numbers": [2, 3, 4], "seed": 0}
    assert record["sources"] == [runner.source_of_package()]
    assert {"python", "numpy", "tamiz"} <= set(record["versions"])
    assert record["processor"].endswith("cores")


def test_a_worker_that_is_killed_takes_one_cell_at_most(toy):
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
    cells = load_protocol("toy")(numbers=[*range(6)]).make_cells()
    try:
        report = run_cells([*cells, cells[0]], CellStore(toy, lambda sentence: peace.set()), jobs=2)
    finally:
        peace.set()
        killer.join()
    assert len(report.failures) == 1
    assert "was killed" in next(iter(report.failures.values()))
    assert report.n_computed == len(report.results) == 5, "equal cells are computed once"


KILLED = """
import sys
from pathlib import Path
from tamiz.paper.protocol import PROTOCOLS, load_protocol
from tamiz.paper.runner import run_protocol
sys.path.insert(0, sys.argv[1])
PROTOCOLS["toy"] = "toy_protocol:Toy"
run_protocol(load_protocol("toy")(numbers=[*range(100, 200)]), Path(sys.argv[2]), jobs=2)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_kill_9_and_second_start_give_the_same_table_bit_for_bit(toy, tmp_path):
    cells = toy / "cells"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), str(toy)], stderr=subprocess.PIPE) as run:
        while len(list(cells.rglob("*.json"))) < 5:
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.01)
        workers = [int(word) for word in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
        run.kill()
    assert workers
    deadline = time.monotonic() + 600
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its killed parent"
        time.sleep(0.02)
    kept = len(list(cells.rglob("*.json")))
    assert 5 <= kept < 100
    assert not (toy / "results.md").exists()
    plan = load_protocol("toy")(numbers=[*range(100, 200)])
    second, whole = (run_protocol(plan, folder, jobs=1) for folder in (toy, tmp_path / "whole"))
    assert (second.n_computed, second.n_reused, whole.n_computed) == (100 - kept, kept, 100)
    for name in ("results.md", "results.json"):
        assert (toy / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("protocol", "options", "message"),
    [
        ("microarray", {"grid": "smal"}, "Unknown grid 'smal'. Did you mean 'small'"),
        ("microarray", {"k": [0]}, "-k must be at least 1"),
        ("microarray", {"repeats": 0}, "--repeats must be at least 1, got 0"),
        ("three-layer", {"learners": ["SVM"]}, "Unknown learner 'SVM'"),
        ("images", {"methods": ["fisher"]}, "fisher is not part of the tables of images"),
        ("images", {"device": "gpu"}, "device must be"),
        ("ground-truth", {"problems": ["ring xor"]}, r"Did you mean 'ring\+xor'"),
        ("ground-truth", {"methods": ["all"]}, "finds every true one"),
        ("ground-truth", {"sizes": [4]}, "at least 8"),
        ("ground-truth", {"folds": 1}, "--folds must be at least 2"),
    ],
)
def test_options_are_checked_before_anything_is_read(protocol, options, message):
    """Further ones are checked through the command line, tests/cli/test_reproduce.py."""
    with pytest.raises(ValueError, match=message):
        load_protocol(protocol)(**options)
