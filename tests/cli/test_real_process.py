"""The command as a process of its own: signals, limits of memory, pipes, imports."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_OUTPUT

resource = pytest.importorskip("resource", reason="Windows has neither these limits nor these signals")
COMMAND = [sys.executable, "-m", "tamiz.cli.main"]
#: Only against hanging for ever: a busy machine may take ten times as long as a quiet one.
PATIENCE = 1200
QUICK = "--folds 2 --permutations 0 --no-report"


def run(line, cwd, **more):
    pipes = {"capture_output": True, **more} if "stdout" not in more else {"stderr": subprocess.PIPE, **more}
    return subprocess.run([*COMMAND, *shlex.split(line)], cwd=cwd, text=True, timeout=PATIENCE, check=False, **pipes)


@pytest.mark.parametrize(
    ("which", "network", "compiling"),
    [
        (signal.SIGINT, "linear", False),
        (signal.SIGTERM, "mlp", False),
        (signal.SIGHUP, "linear", False),
        (signal.SIGINT, "linear", True),
        (signal.SIGTERM, "linear", True),
    ],
)
def test_an_interrupt_leaves_no_partial_files_and_no_process(small_csv, tmp_path, which, network, compiling):
    """Also while the engine is being compiled in the threads of the folds: nobody waits for the compiler to end."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if compiling else {})}
    options = f"select small.csv -t ill -k 2 --network {network} --repeats 1000 -j 2"
    with subprocess.Popen(
        [*COMMAND, *options.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr.readline().startswith("Task: classification")
            sign = "tamiz: compiling" if compiling else "trainings" if network == "mlp" else None
            assert sign is None or any(sign in line for line in process.stderr)
            deadline = time.monotonic() + PATIENCE
            while not list(tmp_path.glob(".tamiz-small.*.part")) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(1)
            os.killpg(process.pid, which)  # as the terminal does
            _, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == EXIT_INTERRUPTED, stderr
    assert stderr.strip().endswith("Error: Interrupted; nothing was written.")  # nor a word on threads
    assert "Traceback" not in stderr
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(process.pid)
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"small.csv"}


def processes_of(session):
    """The command lines of the living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append((folder / "cmdline").read_text())
    return found


def test_json_on_stdout_can_be_piped_and_no_torch_is_loaded(small_csv, tmp_path):
    code = (
        "import sys; from tamiz.cli.main import app\n"
        "loaded = lambda *names: sorted(set(names) & set(sys.modules))\n"
        "print(loaded('torch', 'sklearn', 'numba', 'matplotlib', 'pandas'), file=sys.stderr)\n"
        "try: app()\n"
        "finally: print(loaded('torch', 'matplotlib'), file=sys.stderr)"
    )
    options = f"select small.csv -t ill -k 2 {QUICK} --json -q".split()
    result = subprocess.run(
        [sys.executable, "-c", code, *options], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout)["k"] == 2
    assert result.stderr == "[]\n[]\n"


def test_completion(tmp_path):
    completion = {"_TAMIZ_COMPLETE": "complete_bash", "COMP_WORDS": "tamiz sel", "COMP_CWORD": "1"}
    assert run("", tmp_path, env={**os.environ, **completion}).stdout.strip() == "select"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("more", ["", "--json"])
def test_output_that_cannot_be_written(tmp_path, more):
    with open("/dev/full", "w") as full:
        result = run(f"datasets {more}", tmp_path, stdout=full)
    assert result.returncode == EXIT_OUTPUT
    assert result.stderr == "Error: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("more", ["", "--json"])
def test_a_closed_output(small_csv, tmp_path, more):
    line = f"{sys.executable} -m tamiz.cli.main select small.csv -t ill -k 2 {QUICK} -o out {more} >&-"
    result = subprocess.run(line, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "out" / "selected.json").exists()


def test_a_full_disk(small_csv, tmp_path):
    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = run(f"select small.csv -t ill -k 2 {QUICK} -q", tmp_path, preexec_fn=little)
    assert result.returncode == EXIT_OUTPUT
    assert result.stderr.startswith("Error: The results cannot be written to tamiz-small: File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]


def test_terminals_and_file_names_that_are_not_utf8(small_csv, tmp_path):
    name = os.fsdecode(b"caf\xe9 \xff.csv")
    (tmp_path / name).write_text(small_csv.read_text().replace("gene 2", "größe"))
    line, ascii_only = f"select '{name}' -t ill -k 2 {QUICK}", {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = run(line, tmp_path, env=ascii_only)
    assert result.returncode == 0, result.stderr
    assert "gr??e" in result.stdout
    record = json.loads(run(f"{line} --json -o again", tmp_path, env=ascii_only).stdout)
    assert record["file"] == json.loads((tmp_path / "again" / "selected.json").read_text())["file"] == name
    assert "größe" in [kept["column"] for kept in record["selected"]]


def test_a_table_from_standard_input(small_csv, tmp_path):
    with open(small_csv) as table:
        result = run(f"select - --read format=csv -t ill -k 2 {QUICK} -q", tmp_path, stdin=table)
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


def test_a_network_on_a_small_table(tamiz, small_csv):
    result = tamiz("select small.csv -t ill -k 8 --network mlp --folds 2 --json")
    assert "Network mlp: 11 trainings" in result.words
    assert len(result.record["selected"]) == 8
    scores = result.record["scores"]
    assert scores["kept"] == scores["all_features"]  # the same fit in another thread
    assert scores["kept"]["value"] > 0.85
