"""Small disks, and cells that are quick to compute."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tamiz.reproduce.protocols.ground_truth import GroundTruth


def _mount(path, options: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root on Linux to mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")


@pytest.fixture
def tiny_disk(tmp_path):
    """A folder on a disk of 32 kB: room for a few cells."""
    path = tmp_path / "tiny"
    path.mkdir()
    _mount(path, "size=32k")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def read_only_disk(tmp_path):
    """A folder that not even root may write to."""
    path = tmp_path / "readonly"
    path.mkdir()
    _mount(path, "size=32k,ro")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture(scope="session")
def quick_cells():
    """Some cells of the ground-truth protocol, a few milliseconds each."""
    protocol = GroundTruth()
    return protocol.make_cells(protocol.make_plan(["xor"], ["relieff"], [8, 16], n_folds=6))


@pytest.fixture(scope="session")
def data_home():
    """The folder with the data sets of the paper."""
    home = os.environ.get("TAMIZ_DATA_HOME")
    if not home:
        pytest.skip("needs TAMIZ_DATA_HOME")
    return home
