"""The exceptions of tamiz: one base, and the built-in class that users catch."""

from __future__ import annotations

import pickle

import pytest

from tamiz.errors import (
    DatasetError,
    DownloadError,
    MissingExtraError,
    TamizError,
    UnknownDatasetError,
    UnknownNameError,
)


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (UnknownNameError, ValueError),
        (MissingExtraError, ImportError),
        (DatasetError, TamizError),
        (DownloadError, DatasetError),
        (UnknownDatasetError, DatasetError),
        (UnknownDatasetError, UnknownNameError),
        (UnknownDatasetError, ValueError),
    ],
)
def test_bases(error, also):
    assert issubclass(error, TamizError)
    assert issubclass(error, also)
    with pytest.raises(also, match="what to do"):
        raise error("what to do")


@pytest.mark.parametrize("error", [TamizError, UnknownNameError, MissingExtraError, UnknownDatasetError])
def test_errors_come_back_from_other_processes(error):
    back = pickle.loads(pickle.dumps(error("what to do")))
    assert type(back) is error
    assert str(back) == "what to do"
