"""Colours of methods: the same for a method on every page, whatever else is compared."""

from __future__ import annotations

from collections.abc import Sequence

from tamiz.baselines import registry
from tamiz.errors import UnknownNameError


def method_positions(methods: Sequence[str]) -> list[int]:
    """Return the place of each method in the palette: that of the registry; other names take the places after it.

    Examples
    --------
    >>> method_positions(["fisher", "e2efs"]) == method_positions(["all", "fisher", "mine", "e2efs"])[1::2]
    True
    """
    known = {name: place for place, name in enumerate(registry.available())}
    free = len(known)
    positions = []
    for method in methods:
        try:
            place = known[registry.canonical_name(method)]
        except UnknownNameError:
            place = None
        if place is None or place in positions:
            place, free = free, free + 1
        positions.append(place)
    return positions
