"""Records of the evidence: whole by themselves, and as JSON."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tamiz.report.evidence import ActsWith, Correlations, FoldGrid, HeatMap, KeptSet, PairsFound, Projection, Stability
from tamiz.report.records import to_plain

RECORDS = [
    HeatMap(("a",), np.array([3, 1]), np.array([[0.5, np.nan]]), np.array([0, 1]), ("x", "y")),
    Correlations(("a", "b"), np.eye(2)),
    PairsFound((ActsWith("a", "b", True, "product", 0.01),), 2),
    FoldGrid(("a",), (True,), np.array([[True, False]])),
    Stability(0.5),
    Projection("kept", np.zeros((2, 2)), np.array([0, 1]), np.array([True, False]), (0.6, 0.2), ("x", "y")),
    KeptSet(1, (4,), (None,)),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_become_json_and_cannot_be_changed(record):
    json.dumps(to_plain(record), allow_nan=False)
    name = next(iter(vars(record)))
    with pytest.raises(FrozenInstanceError):
        setattr(record, name, None)


def test_a_missing_value_is_null():
    assert to_plain(RECORDS[0])["z"] == [[0.5, None]]
