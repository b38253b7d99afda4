"""Altered tables of every format: read, or refused with a message."""

from __future__ import annotations

import gzip
import io
import pickle
from functools import cache

import numpy as np
import pandas
import polars
import pytest

from tamiz.tables import TableError, read_table, write_columns
from tamiz.tables.formats import FORMATS, output_suffix

pytestmark = pytest.mark.timeout(3600)
SNIPPETS = [
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"'", b",", b"\t", b";", b"{", b"%", b"\x1f\x8b"),
    *(b"nan", b"inf", b"1e999", b"-", b"\xc3", b"2147483647:1 ", b"0:1", b"=1+1", b"\xf0\x9f\x92\xa5", b"NA", b"\\"),
    *(b"@data\n", b"@attribute x date\n", b"<!ENTITY a 'b'>", pickle.dumps(print), b"9" * 400, b"\n" * 50, b" " * 300),
]


@cache
def original(name):
    """A small file of a format."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(30, 4)).round(3), columns=["a", "b", "c", "d"])
    frame["colour"] = np.array(["red", "green, dark", "blue"])[rng.integers(0, 3, 30)]
    frame.loc[3, "b"] = None
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    file = io.BytesIO()
    if name in ("csv", "tsv"):
        return frame.to_csv(index=False, sep="," if name == "csv" else "\t").encode()
    if name == "arff":
        lines = [*(f"@attribute {c} numeric" for c in "abcd"), "@attribute colour string", "@attribute y {yes,no}"]
        rows = frame.to_csv(index=False, header=False, quotechar="'", na_rep="?")
        return ("@relation r\n" + "\n".join(lines) + "\n@data\n" + rows).encode()
    if name == "svmlight":
        return "".join(f"{int(y == 'yes')} 1:{a} 3:{d} # note\n" for a, d, y in zip(frame.a, frame.d, frame.y)).encode()
    if name == "npz":
        np.savez_compressed(
            file, X=frame[["a", "c", "d"]].to_numpy(), y=frame["y"].to_numpy(dtype=str), names=list("acd")
        )
    elif name == "parquet":
        frame.to_parquet(file)
    elif name == "arrow":
        frame.to_feather(file)
    elif name == "xlsx":
        polars.from_pandas(frame).write_excel(file)
    elif name == "ndjson":
        polars.from_pandas(frame).write_ndjson(file)
    return file.getvalue()


def alter(rng, content):
    content = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        kind = rng.integers(6)
        # The beginning and the end hold what describes the rest.
        place = int(rng.choice([rng.integers(len(content) + 1), rng.integers(min(100, len(content) + 1))]))
        place = len(content) - place if rng.random() < 0.3 else place
        if kind == 0:
            del content[place:]
        elif kind == 1:
            del content[place : place + int(rng.integers(1, 30))]
        elif kind in (2, 3):
            snippet = SNIPPETS[rng.integers(len(SNIPPETS))]
            content[place : place + (len(snippet) if kind == 3 else 0)] = snippet
        elif kind == 4:
            part = content[place : place + int(rng.integers(1, 200))]
            content[place:place] = part
        elif content:
            content[min(place, len(content) - 1)] = int(rng.integers(256))
    return bytes(content)


def check_case(name, number, folder):
    """Reads an altered file and writes two of its columns."""
    rng = np.random.default_rng(number)
    content = alter(rng, original(name))
    path = folder / f"table{FORMATS[name].suffixes[0]}"
    path.write_bytes(gzip.compress(content) if rng.random() < 0.1 else content)
    options = {"target": "y"} if name not in ("npz", "svmlight") else {}
    if rng.random() < 0.3:
        options["header"] = bool(rng.integers(2))
    if not FORMATS[name].binary and rng.random() < 0.1:
        options["encoding"] = ["latin1", "utf-16", "cp1252"][rng.integers(3)]
    try:
        table = read_table(path, **options)
        write_columns(
            table, [int(column) for column in table.number_columns[:2]], folder / f"out{output_suffix(table)}"
        )
    except TableError as error:
        if "\n" in str(error).strip():
            raise AssertionError("the message has more than one line") from error


@pytest.mark.parametrize("name", list(FORMATS))
def test_altered_tables_are_read_or_refused(name, cases, check_all, tmp_path):
    check_all(lambda number: check_case(name, number, tmp_path), cases(25, 500))
