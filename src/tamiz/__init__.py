"""tamiz: end-to-end feature selection. Train a model and sieve its inputs down to exactly M, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamiz._version import __version__

if TYPE_CHECKING:
    from tamiz.estimators.e2efs import E2EFSClassifier, E2EFSRegressor
    from tamiz.estimators.knockoffs import KnockoffSelection
    from tamiz.estimators.networks import Dense, Pairs, TorchNetwork
    from tamiz.estimators.path import E2EFSPath
    from tamiz.estimators.stability import StabilitySelection
    from tamiz.estimators.training import Auto, Training
    from tamiz.evaluation.comparison import compare
    from tamiz.evaluation.cross_validation import evaluate
    from tamiz.pairs import find_pairs
    from tamiz.rows.scaling import ErfScaler
    from tamiz.selection import Selection
    from tamiz.study import Study, select
    from tamiz.tables.encode import TableEncoder

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
    "TableEncoder",
    "TorchNetwork",
    "Training",
    "__version__",
    "compare",
    "evaluate",
    "find_pairs",
    "select",
]

_HOMES = {
    "Auto": "tamiz.estimators.training",
    "Dense": "tamiz.estimators.networks",
    "E2EFSClassifier": "tamiz.estimators.e2efs",
    "E2EFSRegressor": "tamiz.estimators.e2efs",
    "E2EFSPath": "tamiz.estimators.path",
    "ErfScaler": "tamiz.rows.scaling",
    "KnockoffSelection": "tamiz.estimators.knockoffs",
    "Selection": "tamiz.selection",
    "Pairs": "tamiz.estimators.networks",
    "StabilitySelection": "tamiz.estimators.stability",
    "TorchNetwork": "tamiz.estimators.networks",
    "Training": "tamiz.estimators.training",
    "Study": "tamiz.study",
    "TableEncoder": "tamiz.tables.encode",
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
