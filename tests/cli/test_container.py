"""The model container: whole files come back the same, all others are refused."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz.cli.container import MAGIC, pack, read_bytes, unpack
from tamiz.cli.errors import UserError

GOOD = pack({"version": 1, "names": ["größe"]}, {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1], dtype=np.int64)})


def signed(text: bytes, payload: bytes = b"", length: int | None = None) -> bytes:
    """A file with a correct checksum, whatever its content."""
    content = MAGIC + struct.pack("<Q", len(text) if length is None else length) + text + payload
    return content + hashlib.sha256(content).digest()


def test_round_trip():
    header, arrays = unpack(GOOD)
    assert header == {"version": 1, "names": ["größe"]}
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["b"].dtype == np.int64


@given(st.integers(0, len(GOOD) - 1))
def test_every_cut_off_file_is_refused(length):
    with pytest.raises(UserError, match=r"no tamiz model|cut off or damaged"):
        unpack(GOOD[:length])


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(position, change):
    broken = bytearray(GOOD)
    broken[position] ^= change
    with pytest.raises(UserError):
        unpack(bytes(broken))


@pytest.mark.parametrize(
    "content",
    [
        signed(b"{}"),
        signed(b"not json"),
        signed(b"\xff\xfe"),
        signed(b"[" * 100_000),
        signed(b"{}", length=2**63),
        signed(b"null"),
        signed(json.dumps({"header": [], "arrays": []}).encode()),
        signed(json.dumps({"header": {}, "arrays": {}}).encode()),
        signed(json.dumps({"header": {}, "arrays": []}).encode(), b"left over"),
        *(
            signed(json.dumps({"header": {}, "arrays": [entry]}).encode(), b"\0" * 16)
            for entry in [
                {"name": "x", "type": "object", "shape": [2]},
                {"name": "x", "type": "float64", "shape": [2**62, 2**62]},
                {"name": "x", "type": "float64", "shape": [-2]},
                {"name": "x", "type": "float64", "shape": [True, 2]},
                {"name": "x", "type": "float64", "shape": [1, 1, 2]},
                {"name": "x", "type": "float64", "shape": 2},
                {"name": ["x"], "type": "float64", "shape": [2]},
                {"type": "float64", "shape": [2]},
                "x",
            ]
        ),
    ],
)
def test_hostile_files_with_a_correct_checksum_are_refused(content):
    with pytest.raises(UserError, match="malformed"):
        unpack(content)


def test_other_files_and_types(tmp_path):
    with pytest.raises(UserError, match="no tamiz model"):
        unpack(b"PK\x03\x04")
    with pytest.raises(TypeError, match="not stored"):
        pack({}, {"x": np.array(["a"])})
    with pytest.raises(UserError, match="no file"):
        read_bytes(tmp_path / "none.tamiz")
    with pytest.raises(UserError, match="is a folder"):
        read_bytes(tmp_path)
