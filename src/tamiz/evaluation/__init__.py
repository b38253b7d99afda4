"""Evaluation of selections: folds, metrics, intervals, tests, nulls, and comparisons of methods on the same folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.evaluation.cross_validation import evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    # Loaded when it is first used: the command line imports parts of this room without scikit-learn.
    if name != "evaluate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = import_module(f"{__name__}.cross_validation").evaluate
    return value
