"""A new protocol is one class and one line: it runs in processes, resumes, is summarised, drawn and has a command."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tamiz.cli.main import app
from tamiz.paper.protocol import Protocol, load_protocol, protocol_names, with_references


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


def test_references_are_added_once():
    assert with_references(["random", "fisher"]) == ("random", "fisher", "all")
