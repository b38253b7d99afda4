"""tamiz: end-to-end feature selection. Train a model and sieve its inputs down to exactly M, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamiz._utils.extras import load_names
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
    "Auto", "Dense", "E2EFSClassifier", "E2EFSPath", "E2EFSRegressor", "ErfScaler", "KnockoffSelection", "Pairs",
    "Selection", "StabilitySelection", "Study", "TableEncoder", "TorchNetwork", "Training", "__version__", "compare",
    "evaluate", "find_pairs", "select",
]  # fmt: skip

# So that `import tamiz` costs next to nothing.
_HOMES = {
    "estimators.e2efs": ("E2EFSClassifier", "E2EFSRegressor"),
    "estimators.knockoffs": ("KnockoffSelection",),
    "estimators.networks": ("Dense", "Pairs", "TorchNetwork"),
    "estimators.path": ("E2EFSPath",),
    "estimators.stability": ("StabilitySelection",),
    "estimators.training": ("Auto", "Training"),
    "evaluation.comparison": ("compare",),
    "evaluation.cross_validation": ("evaluate",),
    "pairs": ("find_pairs",),
    "rows.scaling": ("ErfScaler",),
    "selection": ("Selection",),
    "study": ("Study", "select"),
    "tables.encode": ("TableEncoder",),
}
__getattr__, __dir__ = load_names(__name__, _HOMES)
