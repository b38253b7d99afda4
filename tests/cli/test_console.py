"""What goes to standard output and what to standard error."""

import json

import pytest
from rich.text import Text

from tamiz.cli.console import Terminal, json_text


def test_messages_go_to_stderr_and_are_kept(capsys):
    terminal = Terminal()
    terminal.say("See `target`.")
    terminal.say("Warning: \x1b[31mred")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "See --target." in shown.err
    assert "\x1b[31m" not in shown.err
    assert terminal.notes[0] == "See --target."
    assert len(terminal.notes) == 2


@pytest.mark.parametrize(("quiet", "as_json"), [(True, False), (False, True), (True, True), (False, False)])
def test_results_are_tables_or_json_or_nothing(capsys, quiet, as_json):
    terminal = Terminal(quiet, as_json)
    terminal.finish({"k": 3}, Text("a table"))
    terminal.say("a note")
    shown = capsys.readouterr()
    assert ("a table" in shown.out) == (not quiet and not as_json)
    assert ('"k": 3' in shown.out) == as_json
    assert ("a note" in shown.err) == (not quiet)
    assert terminal.notes == ["a note"]


@pytest.mark.parametrize("name", ["größe", "\ud800", "日本"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_can_be_written_in_any_encoding(name, encoding):
    text = json_text({"name": name, "score": float("nan")}, encoding)
    assert json.loads(text.encode(encoding).decode(encoding)) == {"name": name, "score": None}


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    with Terminal() as terminal:
        for done in range(3):
            terminal.progress("folds", done, 3)
        assert capsys.readouterr() == ("", "")  # nothing within ten seconds
        monkeypatch.setattr("tamiz.cli.console.HEARTBEAT", 0.0)
        terminal.progress("fits", 2, 3)
        assert capsys.readouterr().err.startswith("fits [#############.......]  67%  ")
