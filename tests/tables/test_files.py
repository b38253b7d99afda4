"""Pipes, packed files and other encodings."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import sys
import threading

import pyarrow as pa
import pytest

from tamiz.tables import TableArgumentError, TableError, TableMemoryError, files, read_table, write_columns

TEXT = "größe,b,ill\n1,2,yes\n3,5,no\n4,6,yes\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark_are_found(write_csv, encoding):
    table = read_table(write_csv(TEXT.encode(encoding)), target="ill")
    assert table.names == ["größe", "b", "ill"]
    assert table.numbers.tolist() == [[1, 2], [3, 5], [4, 6]]


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "utf-16-le"])
def test_encodings_without_a_mark_are_named(write_csv, encoding, tmp_path):
    path = write_csv(TEXT.encode(encoding))
    with pytest.raises(TableError, match="`encoding`"):
        read_table(path, target="ill")
    table = read_table(path, target="ill", encoding=encoding)
    assert table.names[0] == "größe"
    write_columns(table, [0], tmp_path / "reduced.csv")
    assert (tmp_path / "reduced.csv").read_text(encoding="utf-8").startswith("größe,ill\n1,yes\n")


def test_encodings_that_do_not_fit(write_csv):
    for encoding in ("no-such", "hex", "\0"):
        with pytest.raises(TableArgumentError, match="`encoding`"):
            read_table(write_csv(TEXT), encoding=encoding)
    with pytest.raises(TableError, match="cannot be read as ascii"):
        read_table(write_csv(TEXT), encoding="ascii")
    with pytest.raises(TableArgumentError, match="formats of text only"):
        read_table(write_csv(b"PAR1", "t.parquet"), encoding="latin1")


def test_line_ends_of_old_macs(write_csv):
    assert read_table(write_csv(TEXT.replace("\n", "\r")), target="ill").n_rows == 3


@pytest.mark.parametrize(("name", "text"), [("t.csv.gz", TEXT), ("t.TSV.GZ", TEXT.replace(",", "\t")), ("t.csv", TEXT)])
def test_packed_text(write_csv, name, text, tmp_path):
    table = read_table(write_csv(gzip.compress(text.encode()), name), target="ill")
    assert table.n_rows == 3
    assert table.path.name == name
    write_columns(table, [1], tmp_path / "reduced.csv")
    assert (tmp_path / "reduced.csv").read_text().splitlines()[1] in ("2,yes", "2\tyes")


def test_damaged_packed_files(write_csv):
    packed = gzip.compress(TEXT.encode() * 50)
    for content in (packed[:40], packed[:30] + bytes(10) + packed[40:]):
        with pytest.raises(TableError, match="cannot be unpacked"):
            read_table(write_csv(content, "t.csv.gz"))


def test_temporary_files_go_with_their_table(write_csv):
    table = read_table(write_csv(gzip.compress(TEXT.encode()), "t.csv.gz"), target="ill")
    path = table.path
    copy = pickle.loads(pickle.dumps(table))
    assert path.exists()
    del copy
    gc.collect()
    assert path.exists()
    del table
    gc.collect()
    assert not path.parent.exists()


@pytest.mark.parametrize(("name", "pack"), [("t.csv.gz", gzip.compress), ("t.csv.zst", pa.Codec("zstd").compress)])
def test_packed_files_have_a_limit_on_what_they_unpack_to(write_csv, monkeypatch, name, pack):
    assert read_table(write_csv(bytes(pack(TEXT.encode())), name), target="ill").n_rows == 3
    path = write_csv(bytes(pack(b"a,b\n" + b"1,2\n" * 500_000)), name)
    assert read_table(path, columns=["a"]).n_rows == 500_000  # small tables may be as dense as they like
    monkeypatch.setattr(files, "_LARGE", 100_000)
    with pytest.raises(TableMemoryError, match="unpacks to more than 200 times its size"):
        read_table(path)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    with pytest.raises(TableMemoryError, match="longer than 500 bytes"):
        read_table(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TableArgumentError, match="name it with `format`"):
        read_table(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(TEXT), daemon=True)
    writer.start()
    table = read_table(pipe, target="ill", format="csv")
    writer.join()
    assert table.n_rows == 3
    write_columns(table, [0], tmp_path / "reduced.csv")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert read_table("-", target="ill", format="csv").n_rows == 3
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TableError, match="standard input is empty"):
        read_table("-", format="csv")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_no_tables(device):
    with pytest.raises(TableArgumentError, match="is a device"):
        read_table(device, format="csv")
