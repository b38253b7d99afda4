"""The list of protocols."""

from __future__ import annotations

import pytest

from tamiz.errors import UnknownNameError
from tamiz.paper.protocol import load_protocol


def test_unknown_protocols_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'microarray'"):
        load_protocol("microaray")
