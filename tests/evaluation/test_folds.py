"""Folds: every class in each, and an error that says how many there can be."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.evaluation.folds import make_folds


def test_folds():
    y = np.array(["a"] * 7 + ["b"] * 3)
    folds = make_folds(y, "classification", 3, n_repeats=2)
    assert len(folds) == 6
    assert all(set(y[test]) == {"a", "b"} for _, test in folds)
    with pytest.raises(ValueError, match=r"Class 'b' has 3 row\(s\), fewer than the 4 folds"):
        make_folds(y, "classification", 4)
    with pytest.raises(ValueError, match="At least 2"):
        make_folds(y, "classification", 1)
    with pytest.raises(ValueError, match="fewer than the 5 folds"):
        make_folds(np.arange(4.0), "regression", 5)
    assert len(make_folds(np.arange(4.0), "regression", 4)) == 4
