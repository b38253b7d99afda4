"""Bad arguments over every command: a message and a documented exit code, never a traceback."""

from __future__ import annotations

import click
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tamiz.cli.errors import EXIT_DATA, EXIT_MEMORY, EXIT_OK, EXIT_OUTPUT, EXIT_USAGE
from tamiz.cli.main import app

pytestmark = pytest.mark.timeout(3600)
LONG = "x" * 300
#: Arguments that are wrong wherever they stand; a command that lacks the option refuses them too.
KINDS = [
    *(
        ["--no-such-option"],
        ["-Z"],
        ["--seed"],
        ["-k"],
        ["--keep-na"],
        ["--out", "/proc/none/here"],
        ["--out", "table.csv/x"],
    ),
    *(["--seed", value] for value in ("x", "-1", "9" * 40, "")),
    *(["-k", value] for value in ("", "0", "-3", "1.5", "nan", "inf", "many", "99999", "1e400", "1,2,x", "\u0663x")),
    *(["--out", value] for value in ("/dev/null", LONG, "table.csv")),
    *(["--read", f"format={value}"] for value in ("parqet", "", "npz", "xlsx", "parquet", "arff", "svmlight", "arrow")),
    *(["--read", f"delimiter={value}"] for value in (";;", "", "\u00e9", "z", '"')),
    *(["--read", f"encoding={value}"] for value in ("hex", "", "utf-32")),
    *(
        ["--read", value]
        for value in ("skip_rows=-1", "skip_rows=9999", "decimal=x", "decimal=", "nope=1", "header", "=")
    ),
    *(["--target", value] for value in ("nope", "", "0", "99", "a*", LONG)),
    *(["--ignore", value] for value in ("zz*", "9-2", "y", "*", "", "[a")),
    *(["--folds", value] for value in ("1", "x")),
    *(["--methods", value] for value in ("fisherr", "", ",")),
    *(["--network", value] for value in ("mpl", "")),
    *(["--task", value] for value in ("regresion", "regression")),
    *(["--jobs", value] for value in ("0", "-2")),
    *(["--categorical", "nope"], ["--read", "max_categories=1"], ["--repeats", "0"], ["--training", "variant=sofft"]),
]
#: Files in the place of the table or of the model.
FILES = {
    "missing.csv": None,
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "header.csv": b"a,b,y\n",
    "one.csv": b"a\n1\n2\n",
    "ragged.csv": b"a,b,y\n1,2,x\n3\n",
    "binary.csv": bytes(range(256)) * 4,
    "zeros.csv": bytes(5000),
    "same.csv": b"a,b,y\n" + b"1,2,x\n" * 9,
    "text.csv": b"a,y\n" + b"".join(b"w%d,x%d\n" % (i, i % 2) for i in range(9)),
    "png.parquet": b"\x89PNG\r\n\x1a\n" + bytes(60),
    "noending": b"a,y\n1,x\n",
    "model.tamiz": b"hello",
    "/dev/zero": None,
    "/dev/null": None,
    ".": None,
    LONG: None,
}
DOCUMENTED = {EXIT_OK, EXIT_USAGE, EXIT_DATA, EXIT_OUTPUT, EXIT_MEMORY}


def commands(group=None, path=()):
    """Yields the words of every command."""
    group = typer.main.get_command(app) if group is None else group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small table, where the commands run."""
    rng = np.random.default_rng(0)
    rows = "".join(f"{a:.3f},{b:.3f},{c:.3f},{'pq'[int(a > 0)]}\n" for a, b, c in rng.normal(size=(16, 3)))
    (tmp_path / "table.csv").write_text("a,b,c,y\n" + rows)
    for name, content in FILES.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def argument_lists(command):
    """Returns what is typed behind a command: each kind of bad argument, each kind of bad file."""
    if command[0] == "apply":
        return [[*KINDS[i], "model.tamiz", "table.csv"] for i in range(len(KINDS))] + [
            [name, "table.csv"] for name in FILES
        ]
    if command[0] in ("select", "compare", "pairs"):
        usual = ["table.csv", "--target", "y", "--folds", "2", "-q"]
        return [[*usual, *kind] for kind in KINDS] + [[name, "--target", "y", "--folds", "2"] for name in FILES]
    # Whatever is right would start hours of work: the option that nobody has comes last.
    return [[*kind, "--no-such-option"] for kind in KINDS]


def test_every_command_says_what_is_wrong(folder, cases, check_all):
    lines = [[*command, *more] for command in commands() for more in argument_lists(command)]
    assert len(KINDS) >= 60
    order, runner = np.random.default_rng(cases(1, 1)[0]).permutation(len(lines)), CliRunner()

    def check(number):
        result = runner.invoke(app, lines[number])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise AssertionError(f"{lines[number]}") from result.exception
        assert result.exit_code in DOCUMENTED, f"{lines[number]}: exit code {result.exit_code}"
        assert "Traceback" not in result.output, f"{lines[number]}: {result.output[-200:]!r}"
        assert result.exit_code == EXIT_OK or result.stderr.strip(), f"{lines[number]}: no message"

    check_all(check, order[: len(cases(100, len(lines)))])
