"""The record that a user gets."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.paper import Dataset


@pytest.mark.parametrize(
    ("target", "more", "shown"),
    [
        ([0, 1, 2, 1], {}, "Dataset('TOY', 4 x 3, 3 classes)"),
        ([0, 1, 0, 1], {"label": "REBUILT"}, "Dataset('TOY (REBUILT)', 4 x 3, 2 classes)"),
        ([0.5, 1.5, 2.0, 7.0], {"task": "regression"}, "Dataset('TOY', 4 x 3, regression)"),
    ],
)
def test_a_dataset_shows_what_it_is(target, more, shown):
    assert repr(Dataset("toy", "TOY", np.zeros((4, 3), np.float32), np.array(target), **more)) == shown


def test_classes_are_counted_for_classification_only():
    data = np.zeros((3, 2), np.float32)
    assert Dataset("toy", "TOY", data, np.array([0, 1, 1])).n_classes == 2
    assert Dataset("toy", "TOY", data, np.array([0.0, 1.0, 1.0]), task="regression").n_classes is None
