"""What goes into an engine and what comes out, the same for all engines.

A :class:`Problem` (the data), a ``Rule`` (how gamma moves), a ``Loss`` and a ``Schedule`` (how the weights move) go in; a
:class:`Fit` (the record of the selection and the trained model) comes out. The common tests in ``tests/engines`` run over
every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.schedule import Schedule
from tamiz.selection import Selection

#: Called now and then with (step, features alive, steps of refinement done).
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Hold the data of a fit, ready for training.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_columns)
        The table, normalised.
    targets : ndarray of float32, shape (n_samples, n_outputs)
        As the loss takes them: -1 and +1, or numbers.
    sample_weight : ndarray, shape (n_samples,), or None, default=None
        Weights of the samples; engines scale them to a mean of one.
    offset : ndarray, shape (n_columns,), or None, default=None
        Implicit value of each column of a sparse table (``X + 1 offset^T`` is meant).
    owned : bool, default=False
        Whether an engine may overwrite X and offset.
    groups : ndarray of int, shape (n_columns,), or None, default=None
        Number of the group of each column, from 0 on without gaps. The columns of a group share one entry of gamma: the
        features of the ``Rule`` and of the ``Selection`` are then the groups, and the model reads all columns of the kept
        ones. None: every column is a feature.
    """

    X: Any
    targets: np.ndarray
    sample_weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    owned: bool = False
    groups: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Return the number of rows."""
        return self.X.shape[0]

    @property
    def n_outputs(self) -> int:
        """Return the number of outputs of the model."""
        return self.targets.shape[1]

    @property
    def n_columns(self) -> int:
        """Return the number of columns of the table."""
        return self.X.shape[1]

    @property
    def n_features(self) -> int:
        """Return the number of features that can be selected: groups or, without groups, columns.

        Examples
        --------
        >>> Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, 1, 1])).n_features
        2
        """
        return self.n_columns if self.groups is None else int(np.max(self.groups, initial=-1)) + 1

    def unit_weights(self) -> np.ndarray:
        """Return the sample weights, scaled to a mean of one, as float32.

        Examples
        --------
        >>> Problem(np.zeros((2, 1)), np.zeros((2, 1)), np.array([1.0, 3.0])).unit_weights().tolist()
        [0.5, 1.5]
        """
        if self.sample_weight is None:
            return np.ones(self.n_samples, dtype=np.float32)
        weights = np.asarray(self.sample_weight, dtype=np.float64)
        return (weights / weights.mean()).astype(np.float32)

    def dense(self) -> np.ndarray:
        """Return the table as a dense float32 array."""
        if isinstance(self.X, np.ndarray):
            return np.asarray(self.X, dtype=np.float32)
        dense = self.X.toarray().astype(np.float32, copy=False)
        return dense if self.offset is None else dense + self.offset.astype(np.float32)


class Model(Protocol):
    """A trained model that reads the M selected columns."""

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row after ``Loss.decision``, float64, shape (n_samples, n_outputs)."""

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> Model:
        """Return the model whose outputs are ``scores * scale + mean``."""


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit gives back.

    Parameters
    ----------
    selection : Selection
        The record of the run; exactly M features are kept.
    model : Model
        The trained model, which reads the M selected columns in the order of the table.
    """

    selection: Selection
    model: Any


class Engine(Protocol):
    """Train a model and select its inputs in one run."""

    def fit(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fit:
        """Select exactly ``rule.n_features_to_select`` columns and train the model on them."""
