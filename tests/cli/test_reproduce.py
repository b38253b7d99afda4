"""``tamiz reproduce`` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tamiz.cli.main import app

QUICK = ["reproduce", "ground-truth", "--problems", "xor", "--sizes", "8", "--folds", "2", "-m", "relieff"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["microarray", "-d", "colonn"], "Unknown dataset 'colonn'. Did you mean 'colon'?"),
        (["microarray", "-d", "colon", "-m", "fischer"], "Unknown method 'fischer'. Did you mean 'fisher'?"),
        (["microarray", "-d", "colon", "--learners", "smv"], "Unknown learner 'smv'. Did you mean 'SVM'?"),
        (["microarray", "-d", "colon", "--recipe", "authors"], "Unknown recipe 'authors'"),
        (["three-layer", "-m", "e2efs-ranking"], "leave it out, or use --recipe tamiz"),
        (["microarray", "-d", "colon", "-k", "ten"], "'ten' is not a list of whole numbers"),
        (["microarray", "-d", ","], "names nothing"),
        (["three-layer", "-m", "e2ef"], "Did you mean 'e2efs'?"),
        (["ground-truth", "--problems", "rong"], "Did you mean 'ring'?"),
        (["images", "-d", "colon"], "colon holds no images"),
        (["images", "--depth", "17"], "The depth of a Wide ResNet is 6n + 4"),
        (["ground-truth", "-m", "svmrfee"], "Did you mean 'svm-rfe'?"),
        (["surfaces", "--learners", "SVM"], "surfaces has no option --learners; it has --seed, --points."),
        (["micro"], "Unknown protocol 'micro'"),
        (["surfaces", "--points", "1"], "--points must be at least 2, got 1"),
    ],
)
def test_unknown_names_are_refused_before_anything_is_written(tmp_path, words, message):
    done = run("reproduce", *words, "--out", tmp_path / "run")
    assert done.exit_code in (2, 3)
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_data_or_folder_that_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIZ_DATA_HOME", str(tmp_path / "empty"))
    (tmp_path / "file").write_text("x")
    for words, folder, code, message in (
        (["reproduce", "microarray", "-d", "gina_rebuilt"], "run", 3, "put gina_rebuilt.npz into"),
        (QUICK, "file", 4, "Name another folder with --out"),
    ):
        done = run(*words, "--out", tmp_path / folder)
        assert done.exit_code == code
        assert message in done.stderr


def test_datasets_are_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIZ_DATA_HOME", str(tmp_path))
    said = run("datasets").stdout
    assert "colon" in said
    assert "to download" in said
    assert all(len(line) <= 80 for line in said.splitlines()[:-1])
    record = json.loads(run("datasets", "--json").stdout)
    assert record["data_home"] == str(tmp_path)
    assert {"name", "shape", "origin", "in_data_home"} <= set(record["datasets"][0])


def test_surfaces(tmp_path):
    done = run("reproduce", "surfaces", "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["protocol"] == "surfaces"
    files = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert files == ["cells", "figure.png", "results.json", "results.md", "run.json"]


@pytest.mark.data
def test_microarray_from_the_command_to_the_page(tmp_path):
    if not os.environ.get("TAMIZ_DATA_HOME"):
        pytest.skip("needs TAMIZ_DATA_HOME")
    words = ["reproduce", "microarray", "-d", "colon", "-m", "fisher", "-k", "10", "--repeats", "1", "--jobs", "1"]
    words += ["--out", tmp_path]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "9 cells computed, 0 found finished, 0 failed, in" in done.stderr
    assert "Fisher, SVM" in done.stdout
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["cells", "results.json", "results.md", "run.json"]
    before = {name: (tmp_path / name).read_bytes() for name in names if name.startswith("results")}
    done = run(*words)
    assert "0 cells computed, 9 found finished" in done.stderr
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    # A cell that cannot be computed (more features than there are): said, left out of the table, exit code 1.
    done = run(*words, "--learners", "naive", "-k", "5000")
    assert done.exit_code == 1
    said = " ".join(done.stderr.split())
    assert "colon, split 1, fisher failed: ValueError: -k=5000 is more than the 2,000 features" in said
    assert "3 cells computed, 0 found finished, 6 failed" in said
    quiet = run(*words, "--learners", "naive", "-k", "5000", "-q")
    assert (quiet.exit_code, quiet.stdout) == (1, "")
    assert quiet.stderr.startswith("Error: 6 cells failed, the first: colon, split 1, fisher: ValueError")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_says_that_cells_are_kept(tmp_path):
    words = ["reproduce", "ground-truth", "--problems", "ring", "--sizes", "256,512", "-m", "relieff"]
    command = [sys.executable, "-m", "tamiz.cli.main", *words, "--jobs", "1", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while not list(Path(tmp_path).rglob("*.json")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=1200)[1]
    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
