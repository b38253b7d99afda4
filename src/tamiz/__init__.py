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
    from tamiz.evaluation.comparison import compare
    from tamiz.evaluation.cross_validation import evaluate
    from tamiz.pairs import find_pairs
    from tamiz.rows.scaling import ErfScaler
    from tamiz.selection import Selection
    from tamiz.study import Study, select

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
    "Study",
    "Training",
    "__version__",
    "compare",
    "evaluate",
    "find_pairs",
    "select",
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
    "Study": "tamiz.study",
    "compare": "tamiz.evaluation.comparison",
    "evaluate": "tamiz.evaluation.cross_validation",
    "find_pairs": "tamiz.pairs",
    "select": "tamiz.study",
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
