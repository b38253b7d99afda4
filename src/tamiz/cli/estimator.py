"""The package's estimators, as the commands use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamiz.cli.errors import EXIT_USAGE, UserError
from tamiz.evaluation.pools import one_torch_thread

#: What the user may type, without loading the estimators.
VARIANTS = ("soft", "hard", "ranking")
NETWORKS = ("linear", "mlp")


@dataclass(frozen=True)
class ModelOptions:
    """Which estimator."""

    variant: str = "soft"
    network: str = "linear"


def make_estimator(options: ModelOptions, task: str, n_features_to_select: int, seed: int) -> Any:
    """An estimator that is not fitted yet."""
    from tamiz import E2EFSClassifier, E2EFSRegressor

    shared: dict[str, Any] = {
        "n_features_to_select": n_features_to_select,
        "variant": options.variant,
        "network": options.network,
        "random_state": seed,
    }
    if task == "classification":
        return E2EFSClassifier(class_weight="balanced", **shared)
    return E2EFSRegressor(**shared)


def model_maker(options: ModelOptions, task: str) -> Callable[[int, int], Any]:
    """``make(n_features_to_select, seed)`` for the evaluation."""
    if options.network != "linear":
        require_torch(options.network)
    return partial(make_estimator, options, task)  # not a lambda: it goes to other processes


def fit_model(
    options: ModelOptions, task: str, n_features_to_select: int, seed: int, matrix: Any, y: np.ndarray
) -> Any:
    """The estimator of all rows."""
    estimator = model_maker(options, task)(n_features_to_select, seed)
    if options.network == "linear":
        return estimator.fit(matrix, y)
    with one_torch_thread():
        return estimator.fit(matrix, y)


def require_torch(network: str) -> None:
    """Refuse, before anything slow, a network that needs what is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UserError(
            f"--network {network} needs torch, which is not installed: pip install 'tamiz[torch]'. "
            "The linear network needs nothing more.",
            EXIT_USAGE,
        )
