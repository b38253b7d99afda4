"""How much to fuzz: a bounded, seeded part in every run of the tests, all of it with ``make fuzz``."""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("TAMIZ_FUZZ") == "full"
#: Another seed tries other cases; a failure names the number of its case.
SEED = int(os.environ.get("TAMIZ_FUZZ_SEED", "0"))


@pytest.fixture
def cases():
    """Gives the numbers of the cases: ``cases(bounded, full)``."""

    def numbers(bounded: int, full: int) -> range:
        start = SEED * 1_000_000
        return range(start, start + (full if FULL else bounded))

    return numbers
