"""The exceptions of tamiz: one base, the built-in class that users catch, and back from other processes."""

from __future__ import annotations

import pickle

import pytest

from tamiz import errors


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("UnknownNameError", [ValueError]),
        ("MissingExtraError", [ImportError]),
        ("DownloadError", [errors.DatasetError]),
        ("UnknownDatasetError", [errors.DatasetError, errors.UnknownNameError, ValueError]),
    ],
)
def test_bases(name, bases):
    error = getattr(errors, name)
    assert all(issubclass(error, base) for base in [errors.TamizError, *bases])
    back = pickle.loads(pickle.dumps(error("what to do")))
    assert (type(back), str(back)) == (error, "what to do")
