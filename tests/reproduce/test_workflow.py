"""A protocol from its plan to its files."""

from __future__ import annotations

from tamiz.paper.protocol import load_protocol
from tamiz.paper.results import read_runs
from tamiz.paper.runner import run_protocol


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
