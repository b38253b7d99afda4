"""The progress bar, on a terminal and in a log, for steps and for bytes."""

from __future__ import annotations

import io
import sys

import pytest

from tamiz._utils.progress import ProgressBar, format_size, format_time


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(stream) -> list[str]:
    """The lines as they were drawn, one after the other."""
    return [line.removesuffix("\x1b[K") for line in stream.getvalue().replace("\n", "\r").split("\r") if line]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1:00 min"), (3599, "59:59 min"), (3600, "1:00 h")]
)
def test_durations(seconds, text):
    assert format_time(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (5e12, "5000.0 GB")],
)
def test_sizes(n_bytes, text):
    assert format_size(n_bytes) == text


@pytest.mark.parametrize("unit", ["steps", "bytes"])
def test_a_short_run_shows_nothing(unit):
    for stream in (Terminal(), io.StringIO()):
        bar = ProgressBar("fit", unit=unit, stream=stream, delay=3600.0)
        for done in range(10):
            bar.update(done, 10)
        bar.close()
        assert stream.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_redrawn():
    stream = Terminal()
    bar = ProgressBar("fit", stream=stream, delay=0.0, interval=0.0)
    bar.update(1, 4, "9 alive")
    bar.update(4, 4, "3 alive")
    assert stream.getvalue().count("\n") == 0
    bar.close()
    bar.close()
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\n")
    assert [line.split("  ")[0] for line in drawn(stream)] == [
        "fit [#####...............]",
        "fit [####################] 100%",
    ]


def test_a_log_gets_plain_lines():
    stream = io.StringIO()
    bar = ProgressBar("fit", stream=stream, delay=0.0, interval=0.0)
    bar.update(1, 2)
    bar.update(2, 2, "refining")
    bar.close()
    first, second = stream.getvalue().splitlines()
    assert first.startswith("fit [##########..........]  50%")
    assert second == "fit [####################] 100%  refining"
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_lines_in_between_are_left_out_but_not_the_last_on_a_terminal():
    stream = Terminal()
    bar = ProgressBar("fit", stream=stream, delay=0.0, interval=3600.0)
    for done in range(1, 101):
        bar.update(done, 100)
    bar.close()
    assert [line.split("] ")[1].split("%")[0].strip() for line in drawn(stream)] == ["1", "100"]


def test_only_on_a_terminal():
    log, terminal = io.StringIO(), Terminal()
    for stream in (log, terminal):
        bar = ProgressBar("colon.mat", unit="bytes", stream=stream, delay=0.0, interval=0.0, only_terminal=True)
        bar.update(50, 100)
        bar.close()
    assert log.getvalue() == ""
    assert "50% of 100 B" in terminal.getvalue()


def test_a_broken_download_ends_its_line():
    stream = Terminal()
    bar = ProgressBar("colon.mat", unit="bytes", stream=stream, delay=0.0)
    bar.update(50, 100)
    bar.close()
    assert stream.getvalue().endswith("\n")


def test_files_have_lines_of_their_own():
    stream = Terminal()
    bar = ProgressBar("", unit="bytes", stream=stream, delay=0.0, interval=0.0)
    bar.begin("one.gz")
    bar.update(10, 100)
    bar.update(100, 100)
    bar.begin("two.gz")
    bar.update(7, None)
    bar.close()
    assert [line.split(" ")[0] for line in stream.getvalue().split("\n")] == ["\rone.gz", "\rtwo.gz", ""]
    assert drawn(stream)[1:] == ["one.gz [####################] 100% of 100 B", "two.gz 7 B"]


def test_what_was_there_before_does_not_count_for_the_time_left():
    bar = ProgressBar("", unit="bytes")
    bar.begin("cifar.tar.gz", 100)
    assert bar.line(100, 200, 10.0).endswith("50% of 200 B")
    assert bar.line(150, 200, 10.0).endswith("75% of 200 B  10 s left")


@pytest.mark.parametrize(("done", "total", "share"), [(0, 0, "100%"), (0, 10, "0%"), (30, 10, "100%")])
def test_odd_totals(done, total, share):
    line = ProgressBar("fit").line(done, total, 10.0)
    assert share in line
    assert "left" not in line


def test_stderr_is_the_default(capsys):
    bar = ProgressBar("fit", delay=0.0)
    assert bar.stream is sys.stderr
    bar.update(1, 2)
    bar.close()
    assert capsys.readouterr().out == ""


def test_a_count_without_a_total():
    assert ProgressBar("cells").line(12, None, 1.0, "3 failed") == "cells 12  3 failed"
