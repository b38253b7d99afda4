"""``tamiz serve`` as a process: it prints its address, answers there, and ends on Ctrl-C with the documented code."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_USAGE

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
IGNORING = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
COMMAND = [sys.executable, "-m", "tamiz.cli.main", "serve"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize(("which", "ignored"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGINT, True)])
def test_it_serves_until_it_is_interrupted(small_csv, tmp_path, which, ignored):
    """Also where SIGINT is ignored from the start, as for a command that a shell script runs in the background."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [*(IGNORING if ignored else ()), *COMMAND, str(small_csv), "--target", "ill"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        try:
            line = process.stdout.readline()
            url = re.fullmatch(r"Live page: (http://127\.0\.0\.1:\d+/[\w-]{20,}/)\n", line)[1]
            with urllib.request.urlopen(url, timeout=300) as answer:
                assert b"<title>tamiz: live selection</title>" in answer.read()
            with urllib.request.urlopen(url + "tables/first", timeout=300) as answer:
                assert b'"target":"ill"' in answer.read()
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(url.rsplit("/", 2)[0] + "/", timeout=300)
            assert any(path.name.startswith("tamiz-serve-") for path in temporary.iterdir())
            process.send_signal(which)
            _, stderr = process.communicate(timeout=1200)
        finally:
            process.kill()
    assert process.returncode == EXIT_INTERRUPTED
    assert "Stopped." in stderr
    assert "Traceback" not in stderr
    assert [path for path in temporary.iterdir() if path.name.startswith("tamiz-serve-")] == []


def test_a_port_that_is_taken(tamiz):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = tamiz(f"serve --port {taken.getsockname()[1]}", code=EXIT_USAGE)
    assert "Take another, or leave --port out." in result.words


def test_the_extra_is_named_where_it_is_missing(tamiz, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert 'pip install "tamiz[serve]"' in tamiz("serve", code=EXIT_USAGE).stderr


def test_the_file_of_the_command_is_read_as_its_options_say(tmp_path):
    path = tmp_path / "german.csv"
    rows = "".join(f"{i % 7},5;{i % 2},25;{'ja' if i % 2 else 'nein'}\n" for i in range(40))
    path.write_text("Messung vom Montag\n" + "gen;masse;ill\n" + rows)
    options = shlex.split("--read 'delimiter=;' --read decimal=, --read skip_rows=1 --ignore gen --target ill")
    with subprocess.Popen(
        [*COMMAND, str(path), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            url = process.stdout.readline().removeprefix("Live page: ").strip()
            with urllib.request.urlopen(f"{url}tables/first", timeout=60) as answer:
                found = json.load(answer)
            wish = {"page": "p", "table": "first", "target": "ill", "m": 2}
            with urllib.request.urlopen(f"{url}fit", json.dumps(wish).encode(), timeout=60) as answer:
                events = answer.read().decode()
        finally:
            process.kill()
    assert (found["rows"], found["target"]) == (40, "ill")
    assert '"columns": 1,' in events  # one of the two is ignored
    assert (found["reading"]["delimiter"], found["reading"]["skip_rows"]) == (";", 1)
