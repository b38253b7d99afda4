"""Cells on disk: whole or not at all, found again only if nothing has changed, moved aside if damaged."""

from __future__ import annotations

import json
import re

import pytest

from tamiz.paper.store import Cell, CellStore, StoreError

CELL = Cell("microarray", "toy, split 1", {"dataset": "toy", "split": 0, "parameters": {"alpha": 0.5}})


def test_result_comes_back_bit_for_bit(tmp_path):
    result = {"scores": {"svm": [0.1 + 0.2, 1 / 3, 1e-17]}, "support": [[1, 2]], "none": None}
    CellStore(tmp_path).write(CELL, result, {"numpy": "2"})
    assert CellStore(tmp_path).read(CELL) == result
    record = json.loads(CellStore(tmp_path).path_of(CELL).read_text())
    assert record["settings"] == CELL.settings
    assert record["versions"] == {"numpy": "2"}
    assert record["tamiz"] == CELL.version


@pytest.mark.parametrize(
    "other",
    [
        Cell("microarray", CELL.name, {**CELL.settings, "split": 1}),
        Cell("microarray", CELL.name, {**CELL.settings, "parameters": {"alpha": 0.25}}),
        Cell("three-layer", CELL.name, CELL.settings),
        Cell("microarray", CELL.name, CELL.settings, version="999"),
    ],
    ids=["split", "parameter", "protocol", "version"],
)
def test_anything_changed_is_another_cell(tmp_path, other):
    store = CellStore(tmp_path)
    store.write(CELL, {"a": 1})
    assert store.read(other) is None


def test_name_and_order_of_settings_do_not_matter(tmp_path):
    store = CellStore(tmp_path)
    store.write(CELL, {"a": 1})
    assert store.read(Cell("microarray", "renamed", dict(reversed(CELL.settings.items())))) == {"a": 1}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"score":0.5', '"score":0.6'),
        lambda text: "[1, 2]",
        lambda text: '{"checksum": 1}',
        lambda text: "\x00" * len(text),
        lambda text: "[" * 100_000,
    ],
    ids=["half", "empty", "altered", "list", "other record", "zeros", "brackets"],
)
def test_damaged_file_is_named_moved_aside_and_not_believed(tmp_path, damage):
    said = []
    store = CellStore(tmp_path, said.append)
    store.write(CELL, {"score": 0.5})
    path = store.path_of(CELL)
    for round_ in (1, 2):
        path.write_text(damage(path.read_text()))
        assert store.read(CELL) is None
        assert len(said) == round_
        assert str(path) in said[-1]
        assert CELL.name in said[-1]
        store.write(CELL, {"score": 0.5})
        assert store.read(CELL) == {"score": 0.5}
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".damaged", ".damaged2", ".json"]


def test_bytes_that_are_no_text(tmp_path):
    store = CellStore(tmp_path)
    store.write(CELL, {"a": 1})
    store.path_of(CELL).write_bytes(b"\xff\xfe\x00")
    assert store.read(CELL) is None


def test_full_disk_keeps_what_is_there(tiny_disk):
    store = CellStore(tiny_disk / "cells")
    store.write(CELL, {"a": 1})
    big = Cell("microarray", "big", {"split": 7})
    with pytest.raises(StoreError, match=r"disk of .*cells is full. Make room and start again"):
        store.write(big, {"a": "x" * 100_000})
    assert store.read(CELL) == {"a": 1}
    assert store.read(big) is None
    assert [file for file in (tiny_disk / "cells").rglob("*") if file.name.endswith(".part")] == []


def test_read_only_folder(read_only_disk):
    with pytest.raises(StoreError, match=r"cannot be used .*Read-only.*--out"):
        CellStore(read_only_disk / "cells")


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "cells").write_text("not a folder")
    with pytest.raises(StoreError, match=re.escape(str(tmp_path / "cells"))):
        CellStore(tmp_path / "cells")
