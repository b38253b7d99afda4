"""The header of ARFF files."""

from __future__ import annotations

import pytest

from tamiz.tables.text import ArffError, parse_attribute, read_arff_header


def test_names_kinds_and_where_the_rows_begin(tmp_path):
    path = tmp_path / "t.arff"
    text = "\ufeff% a comment\n@Relation r\n\n@attribute 'it\\'s' real\n@attribute b {x, y}\n@ATTRIBUTE c date\n@DATA\n"
    path.write_bytes((text + "1,x,?\n").encode())
    header = read_arff_header(path)
    assert header.names == ["it's", "b", "c"]
    assert header.kinds == ["numeric", "text", "date"]
    assert path.read_bytes()[header.data_offset :] == b"1,x,?\n"


@pytest.mark.parametrize("line", ["@attribute", "@attribute x"])
def test_attributes_that_cannot_be_understood(line):
    with pytest.raises(ArffError, match="cannot be understood"):
        parse_attribute(line)


def test_a_header_without_rows_and_another_encoding(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation a\n@attribute x real\n")
    with pytest.raises(ArffError, match=r"t.arff has no @data line"):
        read_arff_header(path)
    path.write_bytes("@relation größe\n".encode("latin1"))
    with pytest.raises(UnicodeDecodeError):
        read_arff_header(path)
