"""Disk faults in words that say what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tamiz.errors import describe_disk_fault, is_disk_full


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(number):
    fault = OSError(number, "it is full")
    assert is_disk_full(fault)
    message = describe_disk_fault(fault, "colon.mat", Path("data"))
    assert message.startswith(
        "The disk is full: colon.mat does not fit into data (it is full). Make room there, or set"
    )
    assert "TAMIZ_DATA_HOME" in message


def test_any_other_fault():
    fault = PermissionError(errno.EACCES, "Permission denied")
    assert not is_disk_full(fault)
    assert describe_disk_fault(fault, "colon.mat", Path("data")).startswith(
        "Cannot write colon.mat into data (Permission"
    )
    assert "(no errno)" in describe_disk_fault(OSError("no errno"), "colon.mat", Path("data"))
