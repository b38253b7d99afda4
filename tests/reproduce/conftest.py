"""Small disks, and cells that are quick to compute."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tamiz.paper.ground_truth import GroundTruth
from tamiz.paper.protocol import PROTOCOLS

TOY = '''
from dataclasses import dataclass

from tamiz._utils.extras import require
from tamiz.paper.store import Cell
from tamiz.paper.protocol import SEED_OPTION, Protocol, ProtocolOption
from tamiz.paper.store import ProtocolSummary, failure_section, markdown_table


@dataclass(frozen=True)
class ToyPlan:
    numbers: tuple
    seed: int


class Toy(Protocol):
    """Square some numbers."""

    name = "toy"
    headline = "Squares."
    description = "Square some numbers."
    example = "--numbers 1,2"
    options = (
        ProtocolOption("numbers", ("--numbers",), "Separated by commas.", "integers", shown_default="1,2,3"),
        SEED_OPTION,
    )

    def make_plan(self, numbers=(1, 2, 3), seed=0):
        if not numbers or min(numbers) < 0:
            raise ValueError("Numbers are at least 0.")
        return ToyPlan(tuple(numbers), seed)

    def make_cells(self, plan, data_home=None):
        return [Cell(self.name, f"square of {n}", {"n": n, "seed": plan.seed}) for n in plan.numbers]

    def run_cell(self, settings, data_home):
        if settings["n"] == 13:
            raise ArithmeticError("13 brings bad luck")
        return {"square": settings["n"] ** 2}

    def summarise(self, plan, cells, results, failures):
        found = {cell.settings["n"]: results[cell.key]["square"] for cell in cells if cell.key in results}
        table = markdown_table(["n", "square"], [[str(n), str(square)] for n, square in found.items()])
        parts = [table, *failure_section(failures)]
        content = {"protocol": self.name, "squares": list(found.values()), "failures": dict(failures)}
        records = [{"n": n, "square": square} for n, square in found.items()]
        return ProtocolSummary("Squares", "\\n\\n".join(parts), records, content)

    def draw(self, summary, cells, results, folder):
        require("no_such_drawing_package", "plot", "The figure")
'''


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


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The module of a protocol, and its line in the registry."""
    (tmp_path / "toy_protocol.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PROTOCOLS, "toy", "toy_protocol:Toy")
    return tmp_path / "run"
