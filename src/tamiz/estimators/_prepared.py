"""From a table and a target to what an engine trains on: checked, encoded, weighed and normalised."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from tamiz._validation import check_table, check_target_length, resolve_n_features_to_select
from tamiz.core.losses import Loss
from tamiz.estimators._gating import OPTIONS, read_gating, selectable
from tamiz.estimators.automatic import is_auto
from tamiz.estimators.networks import find_network, find_schedule
from tamiz.preprocessing.missing import MissingValues, learn_missing
from tamiz.preprocessing.scaling import ScaledTable, prepare_table
from tamiz.preprocessing.targets import EncodedTarget, as_target, encode_target

if TYPE_CHECKING:
    from tamiz.estimators._base import BaseE2EFS

SPARSE_FORMATS = ("csr", "csc")


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Everything of a fit that does not depend on M: shared by the fits of a path."""

    n_features: int
    feature_names: np.ndarray | None
    table: ScaledTable
    target: EncodedTarget
    sample_weight: np.ndarray
    loss: Loss
    source: Any
    """The table without missing values, of which the selected columns are looked at again after the fit."""
    missing: MissingValues | None = None

    @property
    def n_outputs(self) -> int:
        """Return the number of outputs of the model; two competing ones are one."""
        return self.loss.decision(self.target.values[:1]).shape[1]


def prepare_data(estimator: BaseE2EFS, X: Any, y: Any, sample_weight: Any, *, check_size: bool = True) -> PreparedData:
    """Check everything, encode the target, normalise the table.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are checked and read; it learns the number and names of the columns.
    X, y, sample_weight
        As in ``fit``.
    check_size : bool, default=True
        False leaves M for later.
    """
    estimator._validate_params()
    find_network(estimator.network).engine(estimator)
    find_schedule(estimator)
    _check_strength(estimator)
    loss = estimator._find_loss()
    X = check_table(
        estimator, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=estimator._takes_nan()
    )
    names = getattr(estimator, "feature_names_in_", None)
    if is_auto(estimator.n_features_to_select):
        selectable(estimator, X.shape[1], names)
    elif check_size and read_gating(estimator, X.shape[1], names) is None:
        resolve_n_features_to_select(estimator.n_features_to_select, X.shape[1])
    y = as_target(y)
    check_target_length(X, y)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is 0 for every row: there is nothing to train on.")
    weights = weights / weights.max()  # weights count relative to each other only; sums must not overflow
    if not weights.all():
        rows = np.flatnonzero(weights)
        X, y, weights = X[rows], y[rows], weights[rows]
    target = encode_target(y, loss)
    weights = estimator._weigh(target, weights)
    missing = None
    n_features = X.shape[1]
    if estimator._takes_nan():
        missing = learn_missing(X, weights)
        X = missing.apply(X)
    table = prepare_table(X, estimator.normalize, weights)
    return PreparedData(n_features, names, table, target, weights, loss, X, missing)


def _check_strength(estimator: BaseE2EFS) -> None:
    """Raise for parameters that do not go with a strength, which decides M by the loss alone."""
    if estimator.strength is None:
        return
    if estimator.n_features_to_select is not None:
        raise ValueError(
            f"strength={estimator.strength!r} leaves the number of features to the loss: leave n_features_to_select at None, "
            f"got {estimator.n_features_to_select!r}."
        )
    others = [name for name in OPTIONS if getattr(estimator, name) is not None]
    if others or estimator.missing != "error":
        raise ValueError(
            f"strength={estimator.strength!r} prices single columns: it cannot be combined with "
            f"{', '.join(others) or 'missing'}."
        )


def seed_of(random_state: Any) -> int:
    """Return an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))
