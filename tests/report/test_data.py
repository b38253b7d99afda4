"""Records of the pages: parts that do not fit together are an error; plain data for JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tamiz.report.data import Confusion, Residuals
from tamiz.report.records import to_plain


def test_numpy_numbers_and_nan_become_plain():
    plain = to_plain({"a": np.float32(0.5), "b": np.array([1, 2]), 3: float("inf"), "c": np.str_("x"), "d": {1}})
    assert plain == {"a": 0.5, "b": [1, 2], "3": None, "c": "x", "d": "{1}"}
    json.dumps(plain, allow_nan=False)


def test_parts_that_do_not_fit_together_are_refused(select_data):
    with pytest.raises(ValueError, match="one record for each of the 12 kept features"):
        replace(select_data, kept=select_data.kept[1:])
    with pytest.raises(ValueError, match="square table over the 2 labels"):
        Confusion(("a", "b"), ((1, 2), (3,)))
    with pytest.raises(ValueError, match="2 actual values and 1 predicted"):
        Residuals((1.0, 2.0), (1.0,))


def test_agreement_of_other_methods_is_an_error(compare_data):
    with pytest.raises(ValueError, match="agreement must have 6 methods by 6"):
        replace(compare_data, agreement=np.ones((2, 2)))
