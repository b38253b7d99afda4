"""Entries of a mask that share an entry of gamma, or have none: from features to entries and back."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from tamiz.core.gate_options import read_gates
from tamiz.core.gates import KEPT, Gates
from tamiz.torch._compiled import spread_by_place, sum_by_place


def mask_gates(n_entries: int, n_features_to_select: Any, options: dict[str, Any]) -> tuple[Gates | None, Any]:
    """Return the gates that the options of a mask ask for, with the names of groups; None if every entry is a feature.

    Examples
    --------
    >>> none = {"groups": None, "keep": None, "drop": None, "costs": None, "budget": None}
    >>> mask_gates(4, 2, none), mask_gates(4, 2, {**none, "keep": [1]})[0].feature.tolist()
    ((None, None), [0, -1, 1, 2])
    """
    if all(value is None for value in options.values()):
        return None, None
    plain: dict[str, Any] = {
        name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in options.items()
    }
    return read_gates(n_entries, n_features_to_select, **plain)


def entry_places(gates: Gates) -> torch.Tensor:
    """Return where each entry finds its value behind all features: a one for what is kept, a zero for what is dropped."""
    feature = gates.column_feature
    n = gates.n_features
    return torch.from_numpy(np.where(feature >= 0, feature, np.where(feature == KEPT, n, n + 1)))


def spread_gamma(feature_gamma: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Return gamma of each entry.

    Examples
    --------
    >>> spread_gamma(torch.tensor([0.5]), torch.tensor([0, 1, 0, 2])).tolist()
    [0.5, 1.0, 0.5, 0.0]
    """
    if _is_plain(feature_gamma):
        gamma = torch.empty(place.numel())
        spread_by_place(feature_gamma.numpy(), place.numpy(), gamma.numpy())
        return gamma
    ends = feature_gamma.new_tensor([1.0, 0.0])
    return torch.cat([feature_gamma, ends]).index_select(0, place)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Check whether compiled loops can work on the memory of a tensor."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()


def gather_gradient(gradient: torch.Tensor, place: torch.Tensor, n_features: int) -> torch.Tensor:
    """Return the gradient of each feature: the sum over its entries.

    Examples
    --------
    >>> gather_gradient(torch.tensor([1.0, 9.0, 2.0, 9.0]), torch.tensor([0, 1, 0, 2]), 1).tolist()
    [3.0]
    """
    if _is_plain(gradient):
        total = torch.empty(n_features)
        sum_by_place(gradient.numpy(), place.numpy(), total.numpy())
        return total
    return gradient.new_zeros(n_features + 2).index_add_(0, place, gradient)[:n_features].contiguous()


def gates_digest(gates: Gates | None) -> str | None:
    """Return a short text that differs for masks with other groups, kept or dropped entries, costs or budget."""
    if gates is None:
        return None
    parts = [gates.group.astype(np.int64), gates.feature.astype(np.int64), np.array(gates.budget or 0.0)]
    parts += [] if gates.costs is None else [gates.costs]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
