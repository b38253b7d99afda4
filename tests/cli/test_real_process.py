"""The command as a process of its own: signals, limits of memory, pipes, imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_OUTPUT

resource = pytest.importorskip("resource", reason="Windows has neither these limits nor these signals")
COMMAND = [sys.executable, "-m", "tamiz.cli.main"]
#: Only against hanging for ever: a busy machine may take ten times as long as a quiet one.
PATIENCE = 1200


def run(*arguments, cwd, **more):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False, **more
    )


@pytest.fixture
def wide_csv(tmp_path):
    """Wide enough for a fit to take a while."""
    generator = np.random.default_rng(0)
    path = tmp_path / "wide.csv"
    header = ",".join([*(f"g{i}" for i in range(3000)), "y"])
    rows = [",".join([*(f"{v:.3f}" for v in generator.normal(size=3000)), "ab"[i % 2]]) for i in range(200)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("which", "compiling"),
    [
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        (signal.SIGHUP, False),
        (signal.SIGINT, True),
        (signal.SIGTERM, True),
    ],
)
def test_an_interrupt_leaves_no_partial_files(wide_csv, tmp_path, which, compiling):
    """Also while the engine is being compiled in the threads of the folds: nobody waits for the compiler to end."""
    environment = dict(os.environ)
    if compiling:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    with subprocess.Popen(
        [*COMMAND, "select", str(wide_csv), "-t", "y", "-k", "10", "--repeats", "1000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Task: classification")
            if compiling:
                assert any(line.startswith("tamiz: compiling") for line in process.stderr)
            deadline = time.monotonic() + PATIENCE
            while not list(tmp_path.glob(".tamiz-wide.*.part")) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(1)
            process.send_signal(which)
            _, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == EXIT_INTERRUPTED, stderr
    assert "nothing was written" in stderr
    assert "Traceback" not in stderr
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"wide.csv"}


def test_json_on_stdout_can_be_piped_and_no_torch_is_loaded(small_csv, tmp_path):
    code = (
        "import sys; from tamiz.cli.main import app\n"
        "try: app()\n"
        "finally: print(sorted(m for m in ('torch', 'matplotlib') if m in sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "select", str(small_csv), "-t", "ill", "-k", "2", "--folds", "2", "--json", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert json.loads(result.stdout)["k"] == 2
    assert result.stderr.strip() == "[]"


def test_exit_codes_and_completion(tmp_path):
    assert run(cwd=tmp_path).returncode == 2
    assert run("sieve", cwd=tmp_path).returncode == 2
    wrong = run("select", "none.csv", "-t", "y", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("Error: There is no file none.csv")
    completion = {"_TAMIZ_COMPLETE": "complete_bash", "COMP_WORDS": "tamiz sel", "COMP_CWORD": "1"}
    assert run(cwd=tmp_path, env={**os.environ, **completion}).stdout.strip() == "select"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_output_that_cannot_be_written(tmp_path, more):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*COMMAND, "datasets", *more], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert result.returncode == EXIT_OUTPUT
    assert result.stderr == "Error: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("more", ["", "--json"])
def test_a_closed_output(small_csv, tmp_path, more):
    line = f"{sys.executable} -m tamiz.cli.main select {small_csv} -t ill -k 2 --folds 2 --permutations 0 -o out {more} >&-"
    result = subprocess.run(line, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "out" / "selected.json").exists()


def test_a_full_disk(small_csv, tmp_path):
    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = run("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2, "-q", cwd=tmp_path, preexec_fn=little)
    assert result.returncode == EXIT_OUTPUT
    assert result.stderr.startswith("Error: The results cannot be written to tamiz-small: File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]


def test_terminals_and_file_names_that_are_not_utf8(small_csv, tmp_path):
    name = os.fsdecode(b"caf\xe9 \xff.csv")
    (tmp_path / name).write_text(small_csv.read_text().replace("gene 2", "größe"))
    arguments = ("select", name, "-t", "ill", "-k", 2, "--folds", 2)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = run(*arguments, cwd=tmp_path, env=ascii_only)
    assert result.returncode == 0, result.stderr
    assert "gr??e" in result.stdout
    result = run(*arguments, "--json", "-o", "again", cwd=tmp_path, env=ascii_only)
    record = json.loads(result.stdout)
    assert record["file"] == name
    assert "größe" in [kept["column"] for kept in record["selected"]]
    assert json.loads((tmp_path / "again" / "selected.json").read_text())["file"] == name


def test_a_table_from_standard_input(small_csv, tmp_path):
    with open(small_csv) as table:
        result = run(
            "select", "-", "--read", "format=csv", "-t", "ill", "-k", 2, "--folds", 2, "-q", cwd=tmp_path, stdin=table
        )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "tamiz-table" / "reduced.csv").exists()


def test_an_interrupt_while_modules_are_loaded():
    code = (
        "import builtins\nload = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = interrupted\nimport tamiz.cli.main\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (EXIT_INTERRUPTED, "")


def test_a_network_on_a_small_table(small_csv, tmp_path):
    result = run("select", small_csv, "-t", "ill", "-k", 8, "--network", "mlp", "--folds", 2, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Network mlp: 11 trainings" in " ".join(result.stderr.split())
    record = json.loads(result.stdout)
    assert len(record["selected"]) == 8
    assert record["scores"]["kept"] == record["scores"]["all_features"]  # the same fit in another thread
    assert record["scores"]["kept"]["value"] > 0.85


def test_an_interrupt_ends_the_threads_of_a_network(small_csv, tmp_path):
    with subprocess.Popen(
        [*COMMAND, "select", str(small_csv), "-t", "ill", "-k", "2", "--network", "mlp", "--repeats", "50", "-j", "2"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert any("trainings" in line for line in process.stderr)
            time.sleep(2)
            os.killpg(process.pid, signal.SIGINT)  # as the terminal does
            _, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == EXIT_INTERRUPTED
    assert stderr.strip().endswith("Error: Interrupted; nothing was written.")  # nor a word on threads
    assert "Traceback" not in stderr
    deadline = time.monotonic() + PATIENCE
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(process.pid)
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]


def processes_of(session):
    """The command lines of the living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append((folder / "cmdline").read_text())
    return found
