"""The file of a model: whole files come back the same, all others raise."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from tamiz.persistence.model import ModelFileError, pack_model_file, unpack_model_file

GOOD = pack_model_file(
    {"version": 1, "names": ["größe"]}, {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1], dtype=np.int64)}
)
ZEROS = "0" * 64


def signed(tensors: str = "", payload: bytes = b"", header: str = "{}", length: int | None = None) -> bytes:
    """A file with a correct checksum, whatever its content."""
    record = json.dumps(f'{{"sha256":"{ZEROS}","header":{header}}}')
    text = f'{{"__metadata__":{{"tamiz":{record}}}{tensors}}}'.encode()
    content = (len(text) if length is None else length).to_bytes(8, "little") + text + payload
    return content.replace(ZEROS.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def test_round_trip():
    header, arrays = unpack_model_file(GOOD)
    assert header == {"version": 1, "names": ["größe"]}
    assert arrays["a"].tolist() == safetensors.numpy.load(GOOD)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["b"].dtype == np.int64
    tensor = ',"x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}'
    assert unpack_model_file(signed(tensor, b"\0" * 16))[1]["x"].size == 2


@given(st.integers(0, len(GOOD) - 1))
def test_every_file_that_is_cut_off_raises(length):
    with pytest.raises(ModelFileError, match=r"no tamiz model|cut off or damaged"):
        unpack_model_file(GOOD[:length])


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(position, change):
    broken = bytearray(GOOD)
    broken[position] ^= change
    with pytest.raises(ModelFileError):
        unpack_model_file(bytes(broken))


START = b"\x20" + b"\0" * 7 + b'{"__metadata__":{"tamiz":'
MALFORMED = [  # with a correct checksum
    '{"dtype":"object","shape":[2],"data_offsets":[0,16]}',
    '{"dtype":"F16","shape":[8],"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,36893488147419103232]}',
    '{"dtype":"F64","shape":[200000000000],"data_offsets":[0,1600000000000]}',
    '{"dtype":"F64","shape":[-2],"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":[true,2],"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":[1,1,2],"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":2,"data_offsets":[0,16]}',
    '{"dtype":"F64","shape":[2],"data_offsets":[16,0]}',
    '{"dtype":"F64","shape":[2]}',
    '{"shape":[2],"data_offsets":[0,16]}',
    '"x"',
]
DAMAGED = [
    signed(length=2**63),
    signed(length=3),
    signed(header="not json"),
    signed(header="[" * 100_000),
    *(START + text for text in (b'"null"}}', b'"[1]"}} ', b'{"a":1}}}', b'"\xff\xfe"}}')),
]
OTHER = [b"", b"PK\x03\x04", b"\2\0\0\0\0\0\0\0{}", safetensors.numpy.save({"x": np.ones(2)})]
CASES = [
    *((signed(f',"x":{entry}', b"\0" * 16), "malformed") for entry in MALFORMED),
    *((signed(**parts), "malformed") for parts in ({"header": "[]"}, {"header": "null"}, {"payload": b"left over"})),
    *((content, "cut off or damaged") for content in DAMAGED),
    *((content, "no tamiz model") for content in OTHER),
]


@pytest.mark.parametrize(("content", "message"), CASES)
def test_hostile_damaged_and_other_files_raise(content, message):
    with pytest.raises(ModelFileError, match=message):
        unpack_model_file(content)
