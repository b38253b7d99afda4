"""A new protocol is one class and one line: it runs in processes, resumes, is summarised, drawn and has a command."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tamiz.cli.main import app
from tamiz.errors import UnknownNameError
from tamiz.reproduce.protocol import Protocol, with_references
from tamiz.reproduce.registry import PROTOCOLS, load_protocol, protocol_names
from tamiz.reproduce.results_page import read_runs
from tamiz.reproduce.workflow import run_protocol

TOY = '''
from dataclasses import dataclass

from tamiz._extras import require
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.protocol import SEED_OPTION, Protocol, ProtocolOption
from tamiz.reproduce.summary import ProtocolSummary, failure_section, markdown_table


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


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The module of a protocol, and its line in the registry."""
    (tmp_path / "toy_protocol.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PROTOCOLS, "toy", "toy_protocol:Toy")
    return tmp_path / "run"


def test_a_protocol_runs_in_processes_and_resumes(toy):
    protocol, said = load_protocol("toy"), []
    run = run_protocol(protocol, protocol.make_plan([2, 3, 13]), toy, jobs=2, warn=said.append)
    assert run.summary.content["squares"] == [4, 9]
    assert run.cells.failures == {"square of 13": "ArithmeticError: 13 brings bad luck"}
    assert (run.cells.n_computed, run.cells.n_reused) == (2, 0)
    assert sorted(run.files) == ["csv", "json", "md", "run"]
    assert "No figure: matplotlib is not installed" in said[-1]
    assert "square of 13: ArithmeticError" in (toy / "results.md").read_text()
    again = run_protocol(protocol, protocol.make_plan([2, 3, 4]), toy, jobs=1)
    assert (again.cells.n_computed, again.cells.n_reused) == (1, 2)
    assert again.summary.content["squares"] == [4, 9, 16]
    assert read_runs([toy])[0].title == "Squares"


def test_a_protocol_has_a_command(toy):
    done = CliRunner().invoke(app, ["reproduce", "--help"])
    assert "toy" in done.stdout
    assert "Squares." in done.stdout
    done = CliRunner().invoke(app, ["reproduce", "toy", "--help"])
    for words in (
        "Square some numbers.",
        "--numbers",
        "1,2,3",
        "--seed",
        "--dask",
        "tamiz reproduce toy --numbers 1,2",
    ):
        assert words in done.stdout
    done = CliRunner().invoke(app, ["reproduce", "toy", "--numbers", "5,6", "--json", "-j", "1", "-o", str(toy)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["squares"] == [25, 36]
    assert "2 cells computed, 0 found finished, 0 failed" in done.stderr
    done = CliRunner().invoke(app, ["reproduce", "toy", "--numbers", "5,13", "-q", "-j", "1", "-o", str(toy)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "1 cell(s) failed, the first: square of 13: ArithmeticError" in done.stderr
    done = CliRunner().invoke(app, ["reproduce", "toy", "--numbers", "-1", "-o", str(toy / "other")])
    assert done.exit_code == 2
    assert "Numbers are at least 0." in done.stderr
    assert not (toy / "other").exists()


@pytest.mark.parametrize("name", protocol_names())
def test_what_a_protocol_says_of_itself(name):
    protocol = load_protocol(name)
    assert isinstance(protocol, Protocol)
    assert protocol.name == name
    assert protocol.headline.endswith(".")
    assert protocol.description.endswith(".")
    plan = protocol.make_plan(
        **{option.name: option.default for option in protocol.options if option.default is not None}
    )
    assert plan == protocol.make_plan(), "the defaults of the options are those of the plan"


def test_unknown_protocols_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'microarray'"):
        load_protocol("microaray")


def test_references_are_added_once():
    assert with_references(["random", "fisher"]) == ("random", "fisher", "all")
