"""Fit an additive model, one curve for each column, and its mask: the linear engine on columns that share a gate."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.core import writeable_view
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.basis import hat_basis
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule

#: Knots of a curve.
N_KNOTS = 8
#: Memory that the expanded table may take: a dense one holds N_KNOTS - 1 times the float32 table.
MAX_BYTES = 8 << 30


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """A sum of curves, one for each selected column: linear between their knots, constant beyond them.

    Parameters
    ----------
    knots : ndarray, shape (n_all_knots,)
        Knots of the selected columns, one column after the other.
    starts : ndarray of int, shape (n_features_to_select + 1,)
        Place of the first knot of each column, and the end.
    heights : ndarray, shape (n_outputs, n_all_knots)
        Value of the curve at each knot; the weighted mean of a curve over the training samples is 0.
    intercept : ndarray, shape (n_outputs,)
        Constant terms.

    Examples
    --------
    >>> tent = AdditiveModel(np.array([-1.0, 0.0, 1.0]), np.array([0, 3]), np.array([[0.0, 1.0, 0.0]]), np.array([5.0]))
    >>> tent.scores(np.array([[-2.0], [-0.5], [0.0]]))[:, 0].tolist()
    [5.0, 5.5, 6.0]
    """

    knots: np.ndarray
    starts: np.ndarray
    heights: np.ndarray
    intercept: np.ndarray

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row, shape (n_samples, n_outputs)."""
        if sp.issparse(X):
            X = X.toarray()
        if offset is not None:
            X = X + offset
        out = np.tile(self.intercept, (X.shape[0], 1))
        for column in range(self.starts.size - 1):
            out += self.effects(column, X[:, column])[1].T
        return out

    def effects(self, column: int, values: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the curve of a selected column: what it adds to each output.

        Parameters
        ----------
        column : int
            Position of the column among the selected ones.
        values : array-like, shape (n_values,), default=None
            Where to evaluate the curve, in the units that the model reads (after the normalisation of an estimator);
            None: at its knots, which between them determine it.

        Returns
        -------
        grid : ndarray, shape (n_values,)
        curve : ndarray, shape (n_outputs, n_values)

        Examples
        --------
        >>> line = AdditiveModel(np.array([0.0, 1.0]), np.array([0, 2]), np.array([[0.0, 4.0]]), np.zeros(1))
        >>> line.effects(0, [0.25, 0.5])[1].tolist()
        [[1.0, 2.0]]
        """
        n_columns = self.starts.size - 1
        if not -n_columns <= column < n_columns:
            raise IndexError(f"column must be one of the {n_columns} selected columns, got {column}")
        part = slice(*self.starts[column % n_columns :][:2])
        knots, heights = self.knots[part], self.heights[:, part]
        if values is None:
            return knots.copy(), heights.copy()
        grid = np.asarray(values, dtype=np.float64)
        return grid, np.stack([np.interp(grid, knots, curve) for curve in heights])

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the model as two layers with ReLU between: one unit per knot, whose weight is the change of slope there.

        Examples
        --------
        >>> tent = AdditiveModel(np.array([-1.0, 0.0, 1.0]), np.array([0, 3]), np.array([[0.0, 1.0, 0.0]]), np.array([5.0]))
        >>> tent.affine_layers()[1][0].tolist(), tent.affine_layers()[1][1].tolist()
        ([[1.0, -2.0, 1.0]], [5.0])
        """
        n_columns = self.starts.size - 1
        column = np.repeat(np.arange(n_columns), np.diff(self.starts))
        bends = np.zeros_like(self.heights, dtype=np.float64)
        constant = self.intercept.astype(np.float64)
        for first, end in zip(self.starts[:-1], self.starts[1:]):
            part = slice(first, end)
            slopes = np.diff(self.heights[:, part]) / np.diff(self.knots[part])
            bends[:, part] = np.diff(slopes, prepend=0.0, append=0.0)
            constant = constant + self.heights[:, first]
        return [((column[:, None] == np.arange(n_columns)).astype(np.float64), -self.knots), (bends, constant)]

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> AdditiveModel:
        """Return the model whose outputs are ``scores * scale + mean``."""
        return replace(self, heights=self.heights * scale[:, None], intercept=self.intercept * scale + mean)


@dataclass(frozen=True)
class AdditiveEngine:
    """Train a sum of curves, one for each column, and select the columns, compiled.

    Each column becomes itself and a few hats (:mod:`tamiz.engines.basis`) that share one entry of gamma, and the linear
    engine does the rest. So the problem is convex, has no bad starts, and takes as long as a linear fit on as many columns.
    Of a dense table the expanded one takes ``n_knots - 1`` times the memory in float32; a sparse one grows at most fivefold.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a constant term; l2 leaves it free.
    n_knots : int, default=8
        Knots of a curve; columns with fewer distinct values have a knot at each of them.
    max_bytes : int, default=8 GiB
        Memory that the expanded table may take; beyond it the fit raises a ``MemoryError``.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import Rule
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines import Problem, additive_schedule
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 30)).astype(np.float32)
    >>> y = np.where(np.abs(X[:, 3]) > 0.5, 1.0, -1.0)[:, None]
    >>> schedule = additive_schedule(200, 1, "classification")
    >>> rule = Rule(30, 1, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = AdditiveEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> grid, curve = fit.model.effects(0)
    >>> fit.selection.indices.tolist(), bool(curve[0, 0] > 0 > curve[0, 2])
    ([3], True)
    """

    fit_intercept: bool = True
    n_knots: int = N_KNOTS
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if self.n_knots < 2:
            raise ValueError(f"n_knots must be 2 or more, got {self.n_knots}")

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
        """Select exactly M columns and train a sum of curves on them; ``schedule.average`` must be 0.

        With groups, M groups are selected, and every column of them has its curve. Parameters are those of every
        :class:`~tamiz.engines.contract.Engine`.
        """
        started = time.perf_counter()
        X = _as_float32(problem.X)
        basis = hat_basis(X, problem.offset, problem.unit_weights(), self.n_knots)
        if basis.n_bytes(X) > self.max_bytes:
            raise MemoryError(
                f"the curves of {problem.n_columns} columns and {problem.n_samples} rows take "
                f"{basis.n_bytes(X) / 2**30:.1f} GiB, more than the {self.max_bytes / 2**30:.1f} GiB allowed: select fewer "
                "columns first, for example with network='linear', or fit on a part of the rows"
            )
        table, offset = basis.table(X, problem.offset)
        problem.check_groups(rule.n_features)
        columns = np.arange(problem.n_columns) if problem.groups is None else np.asarray(problem.groups)
        expanded = Problem(
            table, problem.targets, problem.sample_weight, offset, owned=True, groups=columns[basis.groups]
        )
        del X, table, offset  # the engine drops columns in place; nothing else shall hold the whole table
        fit = LinearEngine(self.fit_intercept).fit(expanded, rule, loss, schedule, seed=seed, progress=progress)
        kept = np.flatnonzero(problem.columns_of(fit.selection.support))
        knots, heights, constants = zip(*basis.heights(fit.model.coef, kept), strict=True)
        starts = np.concatenate([[0], np.cumsum([part.size for part in knots])])
        intercept = fit.model.intercept + np.sum(constants, axis=0)
        model = AdditiveModel(np.concatenate(knots), starts, np.concatenate(heights, axis=1), intercept)
        seconds = time.perf_counter() - started
        return Fit(replace(fit.selection, engine="additive", seconds=seconds), model)


def _as_float32(X: Any) -> Any:
    """Return the table as the compiled functions take it: float32, C-ordered or CSR, copied only where it is not so."""
    if not sp.issparse(X):
        return writeable_view(np.ascontiguousarray(X, dtype=np.float32))
    X = X.tocsr()
    if not X.has_canonical_format:  # a hat of a sum is not the sum of the hats
        X = X.copy()
        X.sum_duplicates()
    data, indices = np.asarray(X.data, np.float32), np.asarray(X.indices, np.int32)
    return sp.csr_matrix((writeable_view(data), writeable_view(indices), X.indptr), shape=X.shape)
