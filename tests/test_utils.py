"""Shared small things: atomic writes, names, extras, records, progress, messages, disk faults."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tamiz._utils.extras import require
from tamiz._utils.files import open_atomic, write_atomic
from tamiz._utils.progress import ProgressBar, format_size, format_time
from tamiz._utils.text import discard, list_some, pick, pick_name, plain, quote, suggest, to_plain
from tamiz.errors import MissingExtraError, TamizError, UnknownNameError, describe_disk_fault, is_disk_full

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")
METHODS = ["fisher", "relieff", "svm-rfe", "inf-fs", "sfs", "sfs+dfs"]


@pytest.mark.parametrize("content", [b"\x00\r\n\xff", "línea\n日本\n"])
def test_a_file_is_replaced_at_the_end_only(tmp_path, content):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with open_atomic(path, text=isinstance(content, str)) as file:
        file.write(content)
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [["a.txt"], []])
def test_an_exception_keeps_the_old_file_and_leaves_no_part(tmp_path, fault, before):
    for name in before:
        (tmp_path / name).write_text("old")

    def write_half():
        with open_atomic(tmp_path / "a.txt", text=True) as file:
            file.write("half of the n")
            file.flush()
            assert len(os.listdir(tmp_path)) == len(before) + 1  # the part does lie beside it
            raise fault

    with pytest.raises(fault):
        write_half()
    assert [(tmp_path / name).read_text() for name in os.listdir(tmp_path)] == ["old"] * len(before)


@posix
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    code = (
        "import os, signal, sys\nfrom tamiz._utils.files import open_atomic\nwith open_atomic(sys.argv[1]) as file:\n"
    )
    code += "    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    assert path.read_bytes() == b"old"
    write_atomic(path, b"new")  # what it left is in nobody's way
    assert path.read_bytes() == b"new"


@posix
def test_permissions_links_pipes_and_devices(tmp_path):
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            write_atomic(tmp_path / f"{mode}.txt", "a")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{mode}.txt").stat().st_mode) == mode
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "a.txt")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "a.txt").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE) as reader:
        write_atomic(tmp_path / "pipe", b"through")
        assert reader.communicate(timeout=300)[0] == b"through"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_atomic("/dev/null", "lost")
    assert Path("/dev/null").is_char_device()


def test_names_of_files_missing_folders_and_two_writers(tmp_path):
    for name in ("x" * 255, "日" * 85, "x" * 200 + ".html"):  # the longest that a file may have
        write_atomic(tmp_path / name, "a")
        assert (tmp_path / name).read_text() == "a"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(tmp_path / "missing" / "a.txt", "a")
    assert Path(caught.value.filename) == tmp_path / "missing" / "a.txt"  # not the part
    (tmp_path / "home").mkdir()
    with pytest.raises(OSError, match="home"):
        write_atomic(tmp_path / "home", "a")
    with open_atomic(tmp_path / "a", text=True) as first, open_atomic(tmp_path / "a", text=True) as second:
        first.write("first")
        second.write("second")
    assert (tmp_path / "a").read_text() == "first"  # left last


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Fisher", "fisher"),
        ("SVM RFE", "svm-rfe"),
        ("svm_rfe", "svm-rfe"),
        ("  inffs ", "inf-fs"),
        ("SFS + DFS", "sfs+dfs"),
    ],
)
def test_spelling_does_not_count(typed, name):
    assert pick_name(typed, iter(METHODS), "method") == name
    assert pick(typed, {one: one.upper() for one in METHODS}, "method") == name.upper()
    columns = ["dose a", "dose_a", "DOSE-A"]  # an exact name wins, then the first
    assert [pick_name(one, columns, "column") for one in (*columns, "Dose A")] == [*columns, "dose a"]
    assert (plain("Größe_1"), plain("日本 2")) == ("grösse1", "日本2")


def test_the_nearest_name_is_suggested_as_it_is_spelt():
    for typed, nearest in (
        ("fischer", "fisher"),
        ("SVMRFEE", "svm-rfe"),
        ("relief", "relieff"),
        ("sfsdfs", r"sfs\+dfs"),
    ):
        with pytest.raises(
            UnknownNameError, match=rf"Unknown method '{typed}'\. Did you mean '{nearest}'\? There are: fi"
        ):
            pick_name(typed, METHODS, "method")
    for given in ("zzzz", None, 3, "", ["fisher"], b"fisher"):
        with pytest.raises(ValueError, match="Unknown method") as caught:
            pick_name(given, METHODS, "method")
        assert isinstance(caught.value, TamizError)
    assert suggest("zzzz", METHODS) == suggest("fisher", []) == ""
    assert suggest("gene_1", ["gene 12", "gene 134", "age"], n=2) == " Did you mean 'gene 12' or 'gene 134'?"


@pytest.mark.parametrize(
    ("content", "name", "error", "message"),
    [
        (None, "toy_extra", MissingExtraError, r'DFS needs toy_extra\. Install it with: pip install "tamiz\[torch\]"'),
        (None, "toy_extra.inner", MissingExtraError, "DFS needs toy_extra. Install"),
        ("import toy_extra_dependency", "toy_extra", ModuleNotFoundError, "toy_extra_dependency"),
        ("", "toy_extra.inner", ImportError, r"toy_extra\.inner"),  # another version, not a missing one
        ("raise OSError('libtoy.so is missing')", "toy_extra", OSError, r"libtoy\.so"),
    ],
)
def test_a_missing_package_names_its_extra_and_a_broken_one_speaks_for_itself(
    tmp_path, monkeypatch, content, name, error, message
):
    monkeypatch.syspath_prepend(tmp_path)
    if content is not None:
        (tmp_path / "toy_extra").mkdir()
        (tmp_path / "toy_extra" / "__init__.py").write_text(content)
    try:
        with pytest.raises(error, match=message) as caught:
            require(name, "torch", "DFS")
    finally:
        sys.modules.pop("toy_extra", None)
    assert isinstance(caught.value, MissingExtraError) == (content is None)
    monkeypatch.setitem(sys.modules, "toy_switched_off", None)
    with pytest.raises(MissingExtraError, match="needs toy_switched_off"):
        require("toy_switched_off", "torch", "DFS")


def test_nested_records_become_plain():
    inner = dataclasses.make_dataclass("Inner", ["values", "place"])
    record = {1: inner(np.array([[1.5, np.inf]]), Path("a")), "b": (np.int64(3), np.bool_(True), None, {2.5})}
    found = to_plain(record)
    assert found == {"1": {"values": [[1.5, None]], "place": "a"}, "b": [3, True, None, "{2.5}"]}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_durations_and_sizes():
    times = {0: "0 s", 59.4: "59 s", 59.6: "1:00 min", 3599: "59:59 min", 3600: "1:00 h"}
    assert {seconds: format_time(seconds) for seconds in times} == times
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 5e12: "5000.0 GB"}
    assert {size: format_size(size) for size in sizes} == sizes


def test_a_terminal_gets_one_line_that_is_redrawn_and_a_log_plain_ones():
    for stream, interval, shown in ((Terminal(), 0.0, 4), (Terminal(), 3600.0, 2), (io.StringIO(), 0.0, 4)):
        bar = ProgressBar("fit", stream=stream, delay=0.0, interval=interval)
        for done in range(1, 5):
            bar.update(done, 4, "3 alive")
        bar.close()
        bar.close()
        text = stream.getvalue()
        lines = [line.removesuffix("\x1b[K") for line in text.replace("\n", "\r").split("\r") if line]
        assert len(lines) == shown
        assert lines[0].startswith("fit [#####...............]  25%  3 alive")
        assert lines[-1] == "fit [####################] 100%  3 alive"  # the last is never left out
        assert text.count("\n") == (1 if stream.isatty() else 4)
        assert ("\x1b" in text) == stream.isatty()
    for stream, options in ((Terminal(), {"delay": 3600.0}), (io.StringIO(), {"delay": 0.0, "only_terminal": True})):
        bar = ProgressBar("fit", stream=stream, **options)
        bar.update(1, 2)
        bar.close()
        assert stream.getvalue() == ""


def test_the_text_of_a_bar(capsys):
    stream = Terminal()
    bar = ProgressBar("", unit="bytes", stream=stream, delay=0.0, interval=0.0)
    bar.begin("one.gz")
    bar.update(100, 100)
    bar.begin("two.gz")
    bar.update(7, None)
    bar.close()
    assert stream.getvalue() == "\rone.gz [####################] 100% of 100 B\x1b[K\n\rtwo.gz 7 B\x1b[K\n"
    bar.begin("cifar.tar.gz", 100)  # what was there before does not count for the time left
    assert bar.line(100, 200, 10.0).endswith("50% of 200 B")
    assert bar.line(150, 200, 10.0).endswith("75% of 200 B  10 s left")
    for done, total, share in ((0, 0, "100%"), (0, 10, "0%"), (30, 10, "100%")):
        line = ProgressBar("fit").line(done, total, 10.0)
        assert share in line
        assert "left" not in line
    assert ProgressBar("cells").line(12, None, 1.0, "3 failed") == "cells 12  3 failed"
    bar = ProgressBar("fit", delay=0.0)
    bar.update(1, 2)
    assert capsys.readouterr().err.startswith("fit [")


@pytest.mark.parametrize("value", ["a\nb", "\x1b[31m", "\ud800", "x" * 500, 3.5, None])
def test_a_quoted_value_is_short_printable_and_on_one_line(value):
    text = quote(value)
    text.encode("utf-8")
    assert not {"\n", "\x1b"} & set(text)
    assert len(text) < 80
    assert (quote("abcdef", width=6), quote("abcdefg", width=6)) == ("'abcdef'", "'abcde…'")
    assert (list_some([]), list_some(range(2005))) == ("", "'0', '1', '2', '3', '4' and 2,000 more")
    assert discard("a message") is None


def test_disk_faults_say_what_to_do():
    for number in (errno.ENOSPC, errno.EDQUOT):
        fault = OSError(number, "it is full")
        assert is_disk_full(fault)
        message = describe_disk_fault(fault, "colon.mat", Path("data"))
        assert message.startswith(
            "The disk is full: colon.mat does not fit into data (it is full). Make room there, or set"
        )
        assert "TAMIZ_DATA_HOME" in message
    fault = PermissionError(errno.EACCES, "Permission denied")
    assert not is_disk_full(fault)
    assert describe_disk_fault(fault, "a.mat", Path("data")).startswith("Cannot write a.mat into data (Permission")
    assert "(no errno)" in describe_disk_fault(OSError("no errno"), "a.mat", Path("data"))


def test_blas_has_one_thread_while_any_thread_wants_it_and_its_own_number_after():
    from threadpoolctl import threadpool_info, threadpool_limits

    from tamiz._utils.memory import one_blas_thread

    def found():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # in another order than they came, as threads do
        assert found() == {1}
        second.__exit__(None, None, None)
        assert found() == {2}
