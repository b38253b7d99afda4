"""What cannot be run ends with one message and a code, and writes nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas
import pytest

from tamiz.cli.errors import EXIT_DATA, EXIT_OUTPUT, EXIT_USAGE, CommandError
from tamiz.cli.options import parse_k


@pytest.fixture(scope="module")
def tables(small_frame, tmp_path_factory):
    """A folder of tables that the mistakes are made with."""
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(0)

    def write(columns, name):
        pandas.DataFrame(columns).to_csv(folder / name, index=False)

    write(small_frame, "small.csv")
    (folder / "small.dat").write_text("a,b\n1,2\n")
    np.savez(folder / "small.npz", X=np.ones((4, 2)), y=np.arange(4))
    groups = np.repeat(np.arange(20), 4)
    patients = pandas.DataFrame(random.normal(size=(80, 6)).round(4), columns=[f"g{i}" for i in range(6)]).assign(
        patient=[f"p{p}" for p in groups],
        day=[f"2024-{i % 12 + 1:02d}-{i // 12 + 1:02d}" for i in range(80)],
        gap=[None if i == 5 else i for i in range(80)],
        tied=np.arange(80) // 40,
        copy=np.resize(["no", "yes"], 20)[groups],
        ill=np.resize(["no", "yes"], 20)[groups],
    )
    write(patients, "patients.csv")
    rows = patients.drop(columns=["patient", "day", "gap", "tied", "copy"])[:2]
    write(rows.assign(ill=["yes", "odd"]), "odd.csv")
    write(rows.rename(columns={"ill": "sick"}), "sick.csv")
    (folder / "narrow.csv").write_text("g0,ill\n1,yes\n2,no\n")
    numbers = pandas.DataFrame(random.normal(size=(60, 8)).round(4), columns=[*"abcdef", "height", "mass"])
    write(numbers, "t.csv")
    write(numbers.assign(height=["tall", "small"] * 30), "text.csv")
    write(numbers.assign(mass="heavy"), "heavy.csv")
    write(numbers.assign(mass=1.0), "constant.csv")
    write(numbers.assign(mass=[np.nan] + [1.0, 2.0, 3.0] * 19 + [0.5, 0.25]), "gap.csv")
    colours = {"age": random.normal(size=30), "dose": random.normal(size=30), "colour": ["red", "green", "blue"] * 10}
    write({**colours, "noise": random.normal(size=30), "ill": ["yes", "no"] * 15}, "colours.csv")
    noise = pandas.DataFrame(random.normal(size=(200, 40)).round(4), columns=[*(f"x{i}" for i in range(39)), "y"])
    write(noise, "noise.csv")
    write(noise[:24], "short.csv")
    write(noise.iloc[:, 30:], "slim.csv")
    rare = {"a": range(30), "b": np.arange(30) % 3, "y": ["rare"] * 2 + ["common"] * 28}
    write(rare, "rare.csv")
    write({"a": range(7), "b": np.arange(7) % 3, "y": np.arange(7) / 2}, "few.csv")
    write({"a": range(30), "b": np.arange(30) * 7 % 5, "y": [f"w{i}" for i in range(30)]}, "classes.csv")
    (folder / "taken").write_text("mine")
    return folder


SELECT = [  # what follows `tamiz select`, exit code, message
    ("nothing.csv -t ill", EXIT_USAGE, "There is no file"),
    ("small.csv", EXIT_USAGE, "--target"),
    ("small.csv -t il", EXIT_USAGE, "Did you mean 'ill'?"),
    ("small.csv -t ill -k 9", EXIT_USAGE, "-k=9 is more than the 8 features"),
    ("small.csv -t ill -k nan", EXIT_USAGE, "fraction out of range"),
    ("small.csv -t ill -i nope", EXIT_USAGE, "no column to ignore 'nope'"),
    ("small.csv -t ill --task regression", EXIT_USAGE, "holds text"),
    ("small.csv -t ill --read delimiter=ab", EXIT_USAGE, "one character"),
    ("small.csv -t ill --folds 1", EXIT_USAGE, "--folds"),
    ("small.dat -t ill", EXIT_USAGE, "names no format. Say which with --read format=...: "),
    ("small.csv -t ill --read format=parqet", EXIT_USAGE, "Unknown format 'parqet'. Did you mean 'parquet'?"),
    ("small.npz -t ill", EXIT_USAGE, "leave --target out"),
    ("small.csv -t ill --training variant=softer", EXIT_USAGE, "softer"),
    ("small.csv -t ill --network liner", EXIT_USAGE, "Unknown network 'liner'. Did you mean 'linear'?"),
    ("small.csv -t ill --read delimiter=;", EXIT_DATA, "one column only"),
    ("small.csv -t ill --out small.csv", EXIT_OUTPUT, "is a file"),
    ("rare.csv -t y", EXIT_DATA, "-k auto needs at least 3 rows of each class, and 'rare' has 2: give"),
    ("few.csv -t y --task regression", EXIT_DATA, "-k auto needs at least 8 rows"),
    # Folds, weights and scores.
    ("patients.csv -t ill -k 2 --folds 2 --groups ill", EXIT_USAGE, "--groups names the target 'ill' itself"),
    ("patients.csv -t ill -k 2 --folds 2 --groups patient --time day", EXIT_USAGE, "not both"),
    ("patients.csv -t ill -k 2 --folds 2 --groups patint", EXIT_USAGE, "Did you mean 'patient'"),
    ("patients.csv -t ill -k 2 --folds 21 --groups patient", EXIT_DATA, "20 groups, fewer than the 21 folds"),
    ("patients.csv -t ill -k 2 --folds 2 --groups copy", EXIT_DATA, "other groups"),
    ("patients.csv -t ill -k 2 --folds 2 --time patient", EXIT_DATA, "must hold numbers or dates"),
    ("patients.csv -t ill -k 2 --folds 2 --time gap", EXIT_DATA, "has no value in 1 of 80 rows"),
    ("patients.csv -t ill -k 2 --folds 2 --time tied", EXIT_DATA, "Use fewer folds"),
    ("patients.csv -t ill -k 2 --weights patient", EXIT_DATA, "'patient' holds text; numbers are needed"),
    ("patients.csv -t ill -k 2 --scoring acc", EXIT_USAGE, "Unknown scoring 'acc'"),
    ("patients.csv -t ill -k 2 --scoring mae", EXIT_USAGE, "is not for classification"),
    ("patients.csv -t ill -k 2 --training class_weight=heavy", EXIT_USAGE, "class_weight"),
    ("patients.csv -t ill -k 2 --training loss=hinge", EXIT_USAGE, "loss"),
    # A file to test on.
    ("patients.csv -t ill -k 2 --groups patient --test odd.csv -i day -i tied -i gap -i copy --folds 2 --permutations 0",
     EXIT_DATA, "odd.csv: The rows to test on have classes that there are no training rows of: 'odd'"),
    ("patients.csv -t ill -k 2 --groups patient --test sick.csv -i day -i tied -i gap -i copy --folds 2 --permutations 0",
     EXIT_USAGE, "sick.csv: There is no target 'ill'"),
    ("patients.csv -t ill -k 2 --groups patient --test narrow.csv -i day -i tied -i gap -i copy --folds 2 --permutations 0",
     EXIT_DATA, "that the model needs"),
    ("patients.csv -t ill -k 2 --test none.csv", EXIT_USAGE, "There is no file none.csv"),
    # Columns that are forced, and the false discovery rate.
    ("colours.csv -t ill -k 2 --keep colour --drop colour", EXIT_USAGE, "'colour'"),
    ("colours.csv -t ill -k 2 --keep age --keep dose --keep colour", EXIT_USAGE, "keep"),
    ("colours.csv -t ill -k 5", EXIT_USAGE, "-k=5 is more than the 4 feature"),
    ("colours.csv -t ill -k 2 --keep ill", EXIT_USAGE, "column 'ill' is not among the features"),
    ("noise.csv -t y --fdr 0.2", EXIT_DATA, "No column passes at a false discovery rate of 0.2: at least 5 columns"),
    ("short.csv -t y --fdr 0.2", EXIT_DATA, "--fdr needs at least 20 rows in each training fold, there are 19"),
    ("slim.csv -t y --fdr 0.1", EXIT_DATA, "--fdr of 0.1 keeps no column or at least 10, there are 9"),
    ("noise.csv -t y --fdr 0", EXIT_USAGE, "--fdr must be a number between 0 and 1, such as 0.1, got 0.0"),
    ("noise.csv -t y --fdr 1", EXIT_USAGE, "--fdr must be a number between 0 and 1, such as 0.1, got 1.0"),
    ("noise.csv -t y --fdr 0.2 -k 3", EXIT_USAGE, "--fdr cannot be combined with -k:"),
    ("noise.csv -t y --fdr 0.2 --keep x1", EXIT_USAGE, "--fdr cannot be combined with --keep:"),
    ("noise.csv -t y --fdr 0.2 --weights x1", EXIT_USAGE, "--fdr cannot be combined with --weights:"),
    ("noise.csv -t y --fdr 0.2 --missing indicator", EXIT_USAGE, "--fdr cannot be combined with --missing:"),
    # Several targets.
    ("text.csv -t height,mass -k 2", EXIT_USAGE, "The target 'height' holds text"),
    ("heavy.csv -t height,mass -k 2", EXIT_DATA, "The column 'mass' holds text; numbers are needed there"),
    ("constant.csv -t height,mass -k 2", EXIT_DATA, "The target 'mass' is constant"),
    ("gap.csv -t height,mass -k 2", EXIT_DATA, "no finite value in 1 rows"),
    ("t.csv -t height,mas -k 2", EXIT_USAGE, "There is no target 'mas' among the 8 columns"),
    ("t.csv -t height,mass -k 2 --task classification", EXIT_USAGE, "Several targets are numbers"),
    ("t.csv -t height,mass -k 2 --groups mass", EXIT_USAGE, "--groups names the target 'mass' itself"),
    ("t.csv -t height,height -k 2", EXIT_USAGE, "--target names 'height' twice"),
    ("t.csv -t height -t mass -t height -k 2", EXIT_USAGE, "--target names 'height' twice"),
    ("t.csv -t height -t 7 -k 2", EXIT_USAGE, "--target names 'height' twice"),
]  # fmt: skip
OTHERS = [  # command line, exit code, message
    ("sieve", EXIT_USAGE, "sieve"),
    ("compare small.csv -t ill -m fischer", EXIT_USAGE, "Did you mean 'fisher'?"),
    ("compare small.csv -t ill -m ,", EXIT_USAGE, "at least one method"),
    ("compare small.csv -t ill -k ,", EXIT_USAGE, "Give -k numbers of columns"),
    ("compare small.csv -t ill -k 2,abc", EXIT_USAGE, "Give -k numbers of columns, such as -k 5,10,20; got '2,abc'"),
    ("compare small.csv -t ill -k 2,99", EXIT_USAGE, "-k=99 is more than the 8"),
    ("compare t.csv -t height -t 8 -t mass -k 2", EXIT_USAGE, "--target names 'mass' twice"),
    ("compare t.csv -t height -t mass -k 2 --task classification", EXIT_USAGE, "Several targets are numbers"),
    ("compare t.csv -t height,mass -k 2 -m fisher", EXIT_USAGE, "'fisher' needs classes"),
    ("compare t.csv -t height -k 2 -m fisher", EXIT_USAGE, "'fisher' needs classes"),
    ("pairs small.csv -t il", EXIT_USAGE, "Did you mean 'ill'"),
    ("pairs small.csv", EXIT_USAGE, "--target"),
    ("pairs small.csv -t ill --degree 7", EXIT_USAGE, "degree"),
    ("pairs small.csv -t ill --method quick", EXIT_USAGE, "method"),
    ("pairs constant.csv -t mass", EXIT_DATA, "mass"),
    ("pairs small.csv -t ill --out taken", EXIT_OUTPUT, "is a file"),
    ("pairs classes.csv -t y", EXIT_DATA, "Error: "),
    ("pairs t.csv -t height -t mass", EXIT_USAGE, "pairs takes one target"),
    ("serve t.csv -t height -t mass", EXIT_USAGE, "serve takes one target"),
    ("serve nothing.csv", EXIT_USAGE, "There is no file"),
    ("serve small.csv --target sick", EXIT_USAGE, "no target 'sick'"),
    ("serve --port 70000", EXIT_USAGE, "port"),
    ("serve constant.csv --target mass", EXIT_DATA, "constant"),
]


@pytest.mark.parametrize(("line", "code", "message"), [*((f"select {line}", *rest) for line, *rest in SELECT), *OTHERS])
def test_mistakes_end_with_a_message_and_a_code(tamiz, tables, monkeypatch, line, code, message):
    monkeypatch.chdir(tables)
    before = sorted(tables.iterdir())
    result = tamiz(line, code=code)
    assert message in result.words
    assert result.stdout == ""
    assert sorted(tables.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,x\n2,x\n3,x\n", "is constant"),
        ("a,y\n1,1\n2,2\n3,high\n", "mixes numbers and text"),
        ("a,y\n1,x\n2,x\n3,z\n", "has one row only"),
        ("a,y\n,x\n,x\n,z\n,z\n", "no column left"),
        ("a,y\n1,\n2,\n", "no values at all"),
        ("a,y\n1,1.5\n2,2.5\n", "is constant|at least 4|one row only"),
        ("a,y\ninf,x\n2,x\n3,z\n4,z\n", "Column 'a' holds an infinity"),
    ],
)
def test_tables_that_cannot_be_used(tamiz, write_csv, tmp_path, text, message):
    write_csv(text)
    assert re.search(message, tamiz("select table.csv -t y -k 1", code=EXIT_DATA).words)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


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
    print(end.code, sorted({{"sklearn", "scipy", "numba", "torch", "matplotlib", "pandas"}} & set(sys.modules)))
"""


def run(line, blocked=()):
    code = RUN.format(blocked=list(blocked), arguments=line.split())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1], done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("select no-such-file.csv", "There is no file no-such-file.csv"),
        (f"compare {__file__} -k 5,0", "-k must be at least 1"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_loaded(line, message):
    last, said = run(line)
    assert last == f"{EXIT_USAGE} []"
    assert message in said
    assert "Traceback" not in said


def test_a_method_that_needs_torch_says_so_in_one_line(write_csv):
    table = write_csv({"a": range(20), "b": np.arange(20) % 3, "y": ["u", "v"] * 10})
    last, said = run(f"compare {table} -t y -m dfs -k 1", blocked=["torch"])
    assert last.startswith(f"{EXIT_USAGE} ")
    assert said.strip() == 'Error: The method dfs needs torch. Install it with: pip install "tamiz[torch]"'


def test_numbers_of_columns():
    assert [parse_k(text) for text in ("1", "20", "0.5", "auto")] == [1, 20, 0.5, "auto"]
    for text, words in (
        ("-3", "must be at least 1, got -3"),
        ("1.5", "=1.5 is a fraction"),
        ("some", "20, a fraction"),
    ):
        with pytest.raises(CommandError, match=f"-k.*{words}"):
            parse_k(text)
    with pytest.raises(CommandError, match="or auto; got 'some'"):
        parse_k("some")
