"""Cells: keys and seeds depend on everything that decides a result."""

from __future__ import annotations

import pytest

from tamiz.paper.store import canonical_json, seed_from


def test_seeds_differ_between_cells():
    seeds = {seed_from("colon", split, method, m) for split in range(60) for method in "abc" for m in (10, 50)}
    assert len(seeds) == 360
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_numbers_that_json_does_not_know_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})
