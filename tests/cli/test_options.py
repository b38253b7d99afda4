"""Options that need more than a type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import FileOptions, ResultOptions


@pytest.mark.parametrize(("typed", "meant"), [("tab", "\t"), ("\\t", "\t"), ("space", " "), (";", ";"), (None, None)])
def test_delimiters(typed, meant):
    assert FileOptions(file=Path("t.csv"), delimiter=typed).delimiter == meant


@pytest.mark.parametrize("typed", ["", "ab", '"', "\n", "ü"])
def test_delimiters_that_are_none(typed):
    with pytest.raises(CommandError, match="must be one character") as caught:
        FileOptions(file=Path("t.csv"), delimiter=typed)
    assert caught.value.exit_code == EXIT_USAGE


def test_the_folder_of_the_results():
    assert ResultOptions().folder(Path("a/genes.csv"), "tamiz-") == Path("tamiz-genes")
    assert ResultOptions(out=Path("x")).folder(Path("genes.csv"), "tamiz-") == Path("x")
