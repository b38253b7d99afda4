"""tamiz: end-to-end feature selection. Train a model and sieve its inputs down to exactly M, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamiz._version import __version__

if TYPE_CHECKING:
    from tamiz.estimators import (
        Auto,
        Dense,
        E2EFSClassifier,
        E2EFSPath,
        E2EFSRegressor,
        KnockoffSelection,
        Pairs,
        StabilitySelection,
        Training,
    )
    from tamiz.pairs import find_pairs
    from tamiz.rows.scaling import ErfScaler
    from tamiz.selection import Selection

__all__ = [
    "Auto",
    "Dense",
    "E2EFSClassifier",
    "E2EFSPath",
    "E2EFSRegressor",
    "ErfScaler",
    "KnockoffSelection",
    "Pairs",
    "Selection",
    "StabilitySelection",
    "Training",
    "__version__",
    "find_pairs",
]

_HOMES = {
    "Auto": "tamiz.estimators",
    "Dense": "tamiz.estimators",
    "E2EFSClassifier": "tamiz.estimators",
    "E2EFSRegressor": "tamiz.estimators",
    "E2EFSPath": "tamiz.estimators",
    "ErfScaler": "tamiz.rows.scaling",
    "KnockoffSelection": "tamiz.estimators",
    "Selection": "tamiz.selection",
    "Pairs": "tamiz.estimators",
    "StabilitySelection": "tamiz.estimators",
    "Training": "tamiz.estimators",
    "find_pairs": "tamiz.pairs",
}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are first used, so that `import tamiz` costs next to nothing.
    if name not in _HOMES:
        raise AttributeError(f"module 'tamiz' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
