"""The paper's networks and how it trains them.

Names, recipes and the registry load without torch; networks, losses and the training loop load it when first
used.
"""

from __future__ import annotations

import importlib
from typing import Any

from tamiz.networks._torch import require_torch
from tamiz.networks.recipes import Recipe
from tamiz.networks.registry import available, build, recipe

_LAZY = {
    "NaiveSVM": "dense",
    "ThreeLayerNet": "dense",
    "WRN16x4": "convolutional",
    "CNN3": "convolutional",
    "count_parameters": "convolutional",
    "fit_network": "training",
    "evaluate_loss": "training",
    "available_losses": "losses",
    "get_loss": "losses",
}

__all__ = [
    "CNN3",
    "NaiveSVM",
    "Recipe",
    "ThreeLayerNet",
    "WRN16x4",
    "available",
    "available_losses",
    "build",
    "count_parameters",
    "evaluate_loss",
    "fit_network",
    "get_loss",
    "recipe",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch(f"tamiz.networks.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
