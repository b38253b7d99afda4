"""The registry of formats."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from tamiz.cli.main import app
from tamiz.tables import (
    DataTable,
    Format,
    TableArgumentError,
    choose_columns,
    list_formats,
    read_table,
    register_format,
    write_columns,
)
from tamiz.tables.formats import FORMATS, add_target, guess_format


def test_missing_file_folder_and_unknown_ending(tmp_path, write_csv, read):
    write_csv("a,b\n1,2\n", "there.csv")
    with pytest.raises(TableArgumentError, match=r"There is no file .* There are 'there.csv'"):
        read(tmp_path / "their.csv")
    with pytest.raises(TableArgumentError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(TableArgumentError, match=r"Say which with `format`: .* It looks like csv"):
        read(write_csv("a,b\n1,2\n", "table.dat"))
    assert read(tmp_path / "table.dat", format="csv").n_rows == 1


def test_each_format_knows_its_own_files_and_no_other(tmp_path):
    files = {
        "csv": b"\xef\xbb\xbfa,b\n1,2\n",
        "tsv": b"a\tb\n1\t2\n",
        "xlsx": b"PK\x03\x04\x14\0\0\0[Content_Types].xml",
        "parquet": b"PAR1\x15\x04\0\0",
        "arrow": b"ARROW1\0\0\xff\xff\xff\xff",
        "npz": b"PK\x03\x04\0\0",
        "arff": b"% a comment, with commas\n@RELATION x\n",
        "svmlight": b"-1 3:0.5 7:1.2 # note\n",
    }
    assert set(files) == set(FORMATS)
    for name, head in files.items():
        assert guess_format(head).name == name
    assert guess_format(b"hello") is None
    assert guess_format(b"\x89PNG\r\n\x1a\n,\0\0\0") is None


def test_suffixes_belong_to_one_format():
    suffixes = [suffix for format in list_formats() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)


def test_an_unknown_format_names_the_nearest(write_csv, read):
    with pytest.raises(TableArgumentError, match=r"Unknown format 'parqet'. Did you mean 'parquet'\?"):
        read(write_csv("a,b\n1,2\n"), format="parqet")


def read_fixed(path, options, budget, on_rows):
    """Two digits per number, one line per row, names on the first line: a format that nobody else knows."""
    names, *lines = path.read_text().splitlines()
    values = np.array([[float(line[i : i + 2]) for i in range(0, len(line), 2)] for line in lines], dtype=np.float32)
    choice = choose_columns(list(names), options)
    columns = np.flatnonzero(choice.wanted)
    table = DataTable(path, "fixed", list(names), len(lines), values[:, columns], columns)
    if choice.target is not None:
        table.target_column, table.target_name = values[:, choice.target].astype(float), names[choice.target]
    return table


def write_fixed(table, columns, path):
    chosen = add_target(table, columns)
    lines = table.path.read_text().splitlines()
    kept = ["".join(lines[0][i] for i in chosen)]
    kept += ["".join(line[2 * i : 2 * i + 2] for i in chosen) for line in lines[1:]]
    path.write_text("\n".join(kept) + "\n")


@pytest.fixture
def fixed_file(tmp_path, monkeypatch):
    """A file of the toy format, which is registered."""
    monkeypatch.setattr("tamiz.tables.formats.FORMATS", dict(FORMATS))
    register_format(Format("fixed", "fixed width", (".fix",), lambda head: False, read_fixed, write_fixed))
    generator = np.random.default_rng(0)
    X = generator.integers(10, 60, size=(40, 4))
    y = np.repeat([10, 20], 20)
    X[:, 2] = 2 * y + X[:, 2] % 10
    lines = ["abcdy"] + ["".join(map(str, [*row, label])) for row, label in zip(X, y)]
    path = tmp_path / "table.fix"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_toy_format_is_read_and_written_by_the_library(fixed_file, tmp_path):
    table = read_table(fixed_file, target="y")
    assert table.shape == (40, 4)
    assert table.task == "classification"
    write_columns(table, [2], tmp_path / "out.fix")
    again = read_table(tmp_path / "out.fix", target="y")
    np.testing.assert_array_equal(again.numbers, table.numbers[:, [2]])
    np.testing.assert_array_equal(again.y, table.y)


@pytest.mark.parametrize("options", [[], ["--format", "fixed"]])
def test_a_toy_format_is_read_and_written_by_the_command(fixed_file, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["select", str(fixed_file), "-t", "y", "-k", "1", "--folds", "2", *options])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "tamiz-table" / "reduced.fix").read_text().startswith("cy\n")
