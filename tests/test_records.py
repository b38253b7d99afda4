"""Records as JSON."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from tamiz._utils.records import to_plain
from tamiz.selection import Selection


@dataclasses.dataclass
class Inner:
    values: np.ndarray
    place: Path


def test_nested_records_become_plain():
    record = {1: Inner(np.array([[1.5, np.inf]]), Path("a")), "b": (np.int64(3), np.bool_(True), None, {2.5})}
    plain = to_plain(record)
    assert plain == {"1": {"values": [[1.5, None]], "place": "a"}, "b": [3, True, None, "{2.5}"]}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_a_selection_is_its_dictionary():
    selection = Selection(
        support=np.array([True, False]), ranking=np.array([1, 2]), n_steps=3, seconds=0.5, converged=True
    )
    plain = to_plain({"selection": selection})["selection"]
    assert plain == to_plain(selection.to_dict())
    json.dumps(plain, allow_nan=False)
