"""The output folder: whole or not at all."""

from __future__ import annotations

import os

import pytest

from tamiz.cli.errors import EXIT_OUTPUT, CommandError
from tamiz.cli.output import free_folder, output_folder


def fill(folder, force=False, fail=None):
    with output_folder(folder, force) as partial:
        (partial / "a.txt").write_text("new")
        if fail is not None:
            raise fail
    return folder


def test_a_new_folder_appears_whole_and_readable(tmp_path):
    folder = fill(tmp_path / "deep" / "run")
    assert (folder / "a.txt").read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert (fill(tmp_path / "run") / "a.txt").exists()


@pytest.mark.parametrize("fail", [KeyboardInterrupt(), ValueError("x"), CommandError("y")])
def test_whatever_goes_wrong_nothing_is_left(tmp_path, fail):
    with pytest.raises(type(fail)):
        fill(tmp_path / "deep" / "run", fail=fail)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_the_earlier_one_as_it_was(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fill(folder, force=True, fail=KeyboardInterrupt())
    assert (folder / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_refusals(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "b.txt").write_text("old")
    for folder, message in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "full", r"already holds 'b.txt'.*--force"),
        (tmp_path / "file" / "below", "cannot be written"),
    ):
        with pytest.raises(CommandError, match=message) as caught:
            fill(folder)
        assert caught.value.exit_code == EXIT_OUTPUT
    assert (fill(tmp_path / "full", force=True) / "b.txt").read_text() == "old"


def test_force_leaves_nothing_of_an_earlier_run_behind(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("report.html", "reduced.npz", "selected.json", "mine.txt"):
        (folder / name).write_text("old")
    with output_folder(folder, force=True, results=("report.html", "reduced.*", "selected.json")) as partial:
        (partial / "report.html").write_text("new")
        (partial / "reduced.csv").write_text("new")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "report.html": "new",
        "reduced.csv": "new",
        "mine.txt": "old",
    }


def test_a_second_run_goes_to_a_numbered_folder(tmp_path):
    said = []
    assert free_folder(tmp_path / "run", report=said.append) == tmp_path / "run"
    for expected in ("run", "run-2", "run-3"):
        folder = free_folder(tmp_path / "run", report=said.append)
        assert folder == tmp_path / expected
        fill(folder)
    assert free_folder(tmp_path / "run", force=True) == tmp_path / "run"
    assert len(said) == 2
    assert "run-2, since" in said[0]


@pytest.mark.skipif(getattr(os, "getuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CommandError, match="cannot be written: Permission denied"):
            fill(tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that nobody may write to")
def test_a_folder_that_nobody_may_write():
    from pathlib import Path

    with pytest.raises(CommandError, match="cannot be written"):
        fill(Path("/proc/tamiz"))
