"""The lock between processes: exclusive, and gone when its owner is killed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tamiz.datasets.errors import DatasetError
from tamiz.datasets.locking import file_lock

COUNT = """
import sys
from pathlib import Path
from tamiz.datasets.locking import file_lock
path, lock = map(Path, sys.argv[1:])
for _ in range(50):
    with file_lock(lock, poll=0.001):
        path.write_text(str(int(path.read_text()) + 1))
"""
HOLD = """
import sys
from pathlib import Path
from tamiz.datasets.locking import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_counting_with_three_processes(tmp_path):
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "count"), str(tmp_path / "lock")]
    workers = [subprocess.Popen(command) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "150"
    assert not (tmp_path / "lock").exists()


def test_waiting_ends_with_a_clear_error_and_a_killed_owner_frees_the_lock(tmp_path):
    lock = tmp_path / "lock"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], **pipes) as owner:
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(DatasetError, match="Another process has held the lock"), file_lock(lock, 0.1):
            pass
        owner.kill()
        owner.wait(30)
    assert lock.exists()  # nobody was left to remove it, and it does not matter
    with file_lock(lock, timeout=5):
        assert lock.exists()


def test_lock_is_freed_after_an_error(tmp_path):
    with pytest.raises(KeyError), file_lock(tmp_path / "lock"):
        raise KeyError
    with file_lock(tmp_path / "lock", timeout=0.1):
        pass
