"""The record of the command that made a run."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tamiz import __version__
from tamiz.cli.main import app
from tamiz.paper.protocol import load_protocol
from tamiz.paper.results import command_of, read_run_record, write_run_record
from tamiz.paper.store import StoreError


def test_the_record_is_read_back(tmp_path):
    path = write_run_record(tmp_path, "tamiz reproduce surfaces")
    assert path == tmp_path / "run.json"
    record = read_run_record(tmp_path)
    assert (record.command, record.version) == ("tamiz reproduce surfaces", __version__)
    assert record.date.count("-") == 2
    write_run_record(tmp_path, None)
    assert read_run_record(tmp_path).sentence.startswith("Made from Python, tamiz ")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"command": null}'])
def test_a_damaged_record_is_none(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert read_run_record(tmp_path) is None


def test_a_record_that_cannot_be_written(tmp_path):
    with pytest.raises(StoreError, match="Name another folder"):
        write_run_record(tmp_path / "missing", None)


def test_the_command_has_what_was_typed_and_no_defaults(tmp_path):
    typed = ["ground-truth", "--problems", "xor,ring", "--sizes", "8", "--folds", "2", "-m", "fisher", "--seed", "0"]
    done = CliRunner().invoke(app, ["reproduce", *typed, "-j", "1", "-q", "-o", str(tmp_path / "my folder")])
    assert done.exit_code == 0, done.output
    command = json.loads((tmp_path / "my folder" / "run.json").read_text())["command"]
    assert command == "tamiz reproduce ground-truth --problems xor,ring --methods fisher --sizes 8 --folds 2"


def test_values_are_quoted():
    options = {"datasets": ["a b"], "recipe": "both", "n_repeats": 3}
    command = command_of(load_protocol("three-layer"), options)
    assert command == "tamiz reproduce three-layer --datasets 'a b' --repeats 3 --recipe both"
