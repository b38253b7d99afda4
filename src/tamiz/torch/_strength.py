"""A mask whose number of features is left to the loss and one strength."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tamiz.core import Rule, Slot, binary_penalty
from tamiz.core.price import check_strength, decide_by_price
from tamiz.torch._stepping import MaskTensors, mask_state


def check_alone(strength: Any, n_features_to_select: Any, others: Mapping[str, Any]) -> None:
    """Raise ValueError if a strength is none, or if a count, groups, costs, keep or drop are given beside it.

    Examples
    --------
    >>> check_alone(0.1, None, {"groups": None})
    >>> check_alone(0.1, 5, {"groups": None})
    Traceback (most recent call last):
    ValueError: strength=0.1 leaves the number of features to the loss: leave n_features_to_select at None, got 5
    """
    check_strength(strength)
    if n_features_to_select is not None:
        raise ValueError(
            f"strength={strength!r} leaves the number of features to the loss: leave n_features_to_select at None, "
            f"got {n_features_to_select!r}"
        )
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(f"strength={strength!r} prices single entries: it cannot be combined with {', '.join(given)}")


def is_undecided(tensors: MaskTensors, rule: Rule) -> bool:
    """Check whether the number of features of a mask with a strength is still open."""
    return rule.strength is not None and int(tensors.counters[Slot.OPEN]) > 0


def ranking_by_strength(tensors: MaskTensors, rule: Rule) -> tuple[torch.Tensor, int]:
    """Return the ranks as of now, and how many of the first would be kept: those whose gamma is above one half."""
    decided = decide_by_price(mask_state(tensors), rule)
    return decided.rank, int(decided.kept)


def open_penalty(tensors: MaskTensors) -> torch.Tensor:
    """Return the penalty while the number of features is open: it is that of gamma's not being binary."""
    penalty: torch.Tensor = binary_penalty(tensors.gamma.detach().reshape(-1))
    return penalty
