"""The output folder: whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from tamiz.cli.console import RESULTS, free_folder, output_folder
from tamiz.cli.errors import EXIT_OUTPUT, CommandError


def fill(folder, force=False, fail=None):
    with output_folder(folder, force) as partial:
        (partial / "a.txt").write_text("new")
        if fail is not None:
            raise fail
    return folder


def test_a_new_or_empty_folder_appears_whole_and_readable(tmp_path):
    folder = fill(tmp_path / "deep" / "run")
    assert (folder / "a.txt").read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    for name in ("empty", "x" * 255):  # the longest name that a folder can have
        (tmp_path / name).mkdir()
        assert (fill(tmp_path / name) / "a.txt").exists()


@pytest.mark.parametrize("fail", [KeyboardInterrupt(), ValueError("x"), CommandError("y")])
def test_whatever_goes_wrong_nothing_is_left_and_an_earlier_run_stays(tmp_path, fail):
    with pytest.raises(type(fail)):
        fill(tmp_path / "deep" / "run", fail=fail)
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a.txt").write_text("old")
    with pytest.raises(type(fail)):
        fill(folder, force=True, fail=fail)
    assert (folder / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "is a file"),
        ("file/below", "cannot be written"),
        ("x" * 300, "cannot be looked into|cannot be written"),
        ("a\0b", "cannot be looked into|cannot be written"),
        pytest.param(
            "/proc/tamiz",  # nobody may write there
            "cannot be written",
            marks=pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc"),
        ),
    ],
)
def test_refusals(tmp_path, name, message):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandError, match=message) as caught:
        fill(free_folder(tmp_path / name))
    assert caught.value.exit_code == EXIT_OUTPUT


@pytest.mark.skipif(getattr(os, "getuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CommandError, match="cannot be written: Permission denied"):
            fill(tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


def test_force_leaves_nothing_of_an_earlier_run_behind(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("report.html", "reduced.npz", "selected.json", "mine.txt"):
        (folder / name).write_text("old")
    with output_folder(folder, True, RESULTS["tamiz-"]) as partial:
        (partial / "report.html").write_text("new")
        (partial / "reduced.csv").write_text("new")
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == {"report.html": "new", "reduced.csv": "new", "mine.txt": "old"}


def test_a_second_run_goes_to_a_numbered_folder(tmp_path):
    said = []
    for expected in ("run", "run-2", "run-3"):
        folder = free_folder(tmp_path / "run", report=said.append)
        assert folder == tmp_path / expected
        fill(folder)
    assert free_folder(tmp_path / "run", force=True) == tmp_path / "run"
    assert len(said) == 2
    assert "run-2, since" in said[0]


def test_a_run_that_ends_while_another_has_written_keeps_both(tmp_path):
    def overtaken():
        with output_folder(tmp_path / "run") as partial:
            (partial / "a.txt").write_text("second")
            fill(tmp_path / "run")

    with pytest.raises(CommandError, match=r"Another run has written to .*run in the meantime.* in .*run-2"):
        overtaken()
    assert (tmp_path / "run" / "a.txt").read_text() == "new"
    assert (tmp_path / "run-2" / "a.txt").read_text() == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run-2"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk(tmp_path, code):
    with pytest.raises(CommandError, match=f"cannot be written to .*: {os.strerror(code)}") as caught:
        fill(tmp_path / "run", fail=OSError(code, os.strerror(code)))
    assert caught.value.exit_code == EXIT_OUTPUT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs the list of processes")
def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path):
    code = "import os; from pathlib import Path; from tamiz.cli.console import output_folder\n"
    code += "with output_folder(Path('run')) as partial: (partial / 'a.txt').write_text('x'); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 9
    alive = tmp_path / f".run.{os.getpid()}.x.part"
    alive.mkdir()
    assert len(list(tmp_path.iterdir())) == 2
    fill(tmp_path / "run")
    assert sorted(tmp_path.iterdir()) == [alive, tmp_path / "run"]
