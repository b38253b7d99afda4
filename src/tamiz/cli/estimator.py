"""Make and fit the estimators that the commands use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tamiz.estimators.networks import find_network
from tamiz.estimators.training import Training
from tamiz.evaluation.pools import one_torch_thread


@dataclass(frozen=True)
class ModelOptions:
    """Say which estimator to make.

    Parameters
    ----------
    variant : str, default="soft"
        Rule of the paper.
    network : str, default="linear"
        Network that is trained.
    loss : str, default="auto"
        Loss of the model.
    class_weight : {"balanced", "none"}, default="balanced"
        Weights of the classes.
    parameters : dict, default={}
        Further parameters of the estimator.
    """

    variant: str = "soft"
    network: str = "linear"
    loss: str = "auto"
    class_weight: str = "balanced"
    parameters: dict[str, Any] = field(default_factory=dict)


def make_estimator(options: ModelOptions, task: str, n_features_to_select: int | str, seed: int) -> Any:
    """Return an estimator that is not fitted yet."""
    from tamiz import E2EFSClassifier, E2EFSRegressor

    shared: dict[str, Any] = {
        "n_features_to_select": n_features_to_select,
        "variant": options.variant,
        "network": options.network,
        "random_state": seed,
        "loss": options.loss,
        **options.parameters,
    }
    if shared.get("budget") is not None:
        shared["n_features_to_select"] = None
    if task == "classification":
        return E2EFSClassifier(class_weight=None if options.class_weight == "none" else "balanced", **shared)
    return E2EFSRegressor(**shared)


def model_maker(options: ModelOptions, task: str) -> Callable[[Any, int], Any]:
    """Return ``make(n_features_to_select, seed)`` for the evaluation."""
    find_network(options.network).engine(Training())  # a missing package is told before all else
    return partial(make_estimator, options, task)  # not a lambda: it goes to other processes


def fit_model(
    options: ModelOptions,
    task: str,
    n_features_to_select: int | str,
    seed: int,
    matrix: Any,
    y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> Any:
    """Fit the estimator of all rows; what is "auto" is chosen on inner folds that respect groups and time."""
    estimator = model_maker(options, task)(n_features_to_select, seed)
    given = {"sample_weight": sample_weight, "groups": groups, "time": time}
    if find_network(options.network).compiled:
        return estimator.fit(matrix, y, **given)
    with one_torch_thread():
        return estimator.fit(matrix, y, **given)
