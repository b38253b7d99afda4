"""The header of ARFF files."""

from __future__ import annotations

import pytest

from tamiz.errors import TableError
from tamiz.tables.text import ArffError, read_arff_header


def test_names_kinds_and_where_the_rows_begin(tmp_path):
    path = tmp_path / "t.arff"
    text = "\ufeff% a comment\n@Relation r\n\n@attribute 'it\\'s' real\n@attribute b {x, y}\n@ATTRIBUTE c date\n@DATA\n"
    path.write_bytes((text + "1,x,?\n").encode())
    names, kinds, offset = read_arff_header(path)
    assert names == ["it's", "b", "c"]
    assert kinds == ["numeric", "text", "date"]
    assert path.read_bytes()[offset:] == b"1,x,?\n"


def test_a_header_without_rows_and_another_encoding(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation a\n@attribute x real\n")
    with pytest.raises(ArffError, match=r"t.arff has no @data line"):
        read_arff_header(path)
    path.write_bytes("@relation größe\n".encode("latin1"))
    with pytest.raises(TableError, match="not UTF-8"):
        read_arff_header(path)
