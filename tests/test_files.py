"""Atomic writes: the old file or the new one, never a part, whatever happens in between."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tamiz._utils.files import open_atomic, write_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")


def test_a_new_file(tmp_path):
    write_atomic(tmp_path / "a.bin", b"\x00\r\n\xff")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n\xff"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_text_is_utf8_with_the_same_line_ends_everywhere(tmp_path):
    write_atomic(str(tmp_path / "a.txt"), "línea\n日本\n")
    assert (tmp_path / "a.txt").read_bytes() == "línea\n日本\n".encode()


def test_an_existing_file_is_replaced_at_the_end_only(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with open_atomic(path, text=True) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_keeps_the_old_file_and_leaves_no_part(tmp_path, fault):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with open_atomic(path, text=True) as file:
            file.write("half of the n")
            file.flush()
            assert len(os.listdir(tmp_path)) == 2  # the part does lie beside it
            raise fault

    with pytest.raises(fault):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_exception_before_the_first_file_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="stop"), open_atomic(tmp_path / "a.txt"):
        raise ValueError("stop")
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
from tamiz._utils.files import open_atomic
with open_atomic(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == b"old"
    write_atomic(path, b"new")  # what it left is in nobody's way
    assert path.read_bytes() == b"new"


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "a.txt", "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


@posix
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_atomic(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "there"]


@posix
def test_a_device_is_written_to_and_not_replaced(tmp_path):
    try:
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (tmp_path / "null").write_bytes(b"")
    except OSError as fault:
        pytest.skip(f"making a device is not allowed here: {fault}")
    write_atomic(tmp_path / "null", "lost")
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE) as reader:
        write_atomic(tmp_path / "pipe", b"through")
        assert reader.communicate(timeout=300)[0] == b"through"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["x" * 255, "日" * 85, "x" * 200 + ".html"])
def test_the_longest_names_that_a_file_may_have(tmp_path, name):
    try:
        (tmp_path / name).write_bytes(b"")
    except OSError as fault:
        pytest.skip(f"this file system does not take such a name: {fault}")
    write_atomic(tmp_path / name, "a")
    assert (tmp_path / name).read_text() == "a"


def test_a_missing_folder_is_named_without_the_part(tmp_path):
    path = tmp_path / "missing" / "a.txt"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(path, "a")
    assert Path(caught.value.filename) == path


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "home").mkdir()
    with pytest.raises(OSError, match="home"):
        write_atomic(tmp_path / "home", "a")
    assert (tmp_path / "home").is_dir()


def test_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with open_atomic(path, text=True) as first, open_atomic(path, text=True) as second:
        first.write("first")
        second.write("second")
    assert path.read_text() == "first"  # left last
    assert os.listdir(tmp_path) == ["a.txt"]
