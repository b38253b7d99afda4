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
    return lambda bounded, full: range(SEED * 1_000_000, SEED * 1_000_000 + (full if FULL else bounded))


@pytest.fixture
def check_all():
    """Checks all cases before it fails: ``check_all(check, cases)``."""

    def run(check, numbers):
        failures = []
        for number in numbers:
            try:
                check(number)
            except BaseException as error:  # a panic of a reader is no Exception
                failures.append(f"case {number}: {type(error).__name__}: {str(error)[:200]}")
        assert not failures, "\n".join([f"{len(failures)} failures", *failures[:20]])

    return run
