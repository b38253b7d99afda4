"""scikit-learn in, scikit-learn out: estimators that choose an engine and hold no maths.

Classes are loaded when they are first used: the command line lists networks without loading scikit-learn or numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.estimators.classifier import E2EFSClassifier
    from tamiz.estimators.knockoffs import KnockoffSelection
    from tamiz.estimators.networks import Dense, Pairs, TorchNetwork
    from tamiz.estimators.path import E2EFSPath
    from tamiz.estimators.regressor import E2EFSRegressor
    from tamiz.estimators.stability import StabilitySelection
    from tamiz.estimators.training import Auto, Training

_HOMES = {
    "Auto": "training",
    "Dense": "networks",
    "E2EFSClassifier": "classifier",
    "E2EFSPath": "path",
    "KnockoffSelection": "knockoffs",
    "E2EFSRegressor": "regressor",
    "Pairs": "networks",
    "StabilitySelection": "stability",
    "TorchNetwork": "networks",
    "Training": "training",
}

__all__ = [
    "Auto",
    "Dense",
    "E2EFSClassifier",
    "E2EFSPath",
    "E2EFSRegressor",
    "KnockoffSelection",
    "Pairs",
    "StabilitySelection",
    "TorchNetwork",
    "Training",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
