"""Wrong paths, numbers and names are told before anything heavy is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import parse_k

RUN = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
sys.argv = ["tamiz", *{arguments}]
from tamiz.cli.main import app
try:
    app(prog_name="tamiz")
except SystemExit as end:
    print(end.code, sorted({{"sklearn", "scipy", "numba", "torch"}} & set(sys.modules)))
"""


def run(arguments, blocked=()):
    code = RUN.format(blocked=list(blocked), arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1], done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select", "no-such-file.csv"], "There is no file no-such-file.csv"),
        (["select", __file__, "-k", "some"], "-k must be a number"),
        (["select", __file__, "-k", "1.5"], "-k=1.5 is a fraction out of range"),
        (["compare", "no-such-file.csv"], "There is no file no-such-file.csv"),
        (["compare", __file__, "-k", "5,0"], "-k must be at least 1"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_loaded(arguments, message):
    last, said = run(arguments)
    assert last == f"{EXIT_USAGE} []"
    assert message in said
    assert "Traceback" not in said


def test_a_method_that_needs_torch_says_so_in_one_line(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,y\n" + "\n".join(f"{i},{i % 3},{'uv'[i % 2]}" for i in range(20)))
    last, said = run(["compare", str(table), "-t", "y", "-m", "dfs", "-k", "1"], blocked=["torch"])
    assert last.startswith(f"{EXIT_USAGE} ")
    assert said.strip() == 'Error: The method dfs needs torch. Install it with: pip install "tamiz[torch]"'


def test_numbers_that_are_fine():
    assert [parse_k(text) for text in ("1", "20", "0.5", "auto")] == [1, 20, 0.5, "auto"]
    with pytest.raises(CommandError, match="-k must be at least 1, got -3"):
        parse_k("-3")
