"""The command itself."""

import subprocess
import sys

from typer.testing import CliRunner

from tamiz import __version__
from tamiz.cli.main import app

HEAVY = ("torch", "sklearn", "numba", "matplotlib", "pandas")


def test_the_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"tamiz {__version__}\n")


def test_every_command_is_listed():
    said = CliRunner().invoke(app, ["--help"]).stdout
    for name in ("select", "compare", "pairs", "apply", "demo", "datasets", "serve", "reproduce"):
        assert f" {name} " in said


def test_nothing_heavy_is_loaded_for_the_help():
    code = f"import sys, tamiz.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
