"""Judge columns and chosen pairs exactly: the share of the residuals that their functions explain, and its p value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tamiz.pairs.basis import FINER_DEGREE, Basis, extend_polynomials
from tamiz.pairs.kernels import column_grams, column_leverages, fill_pair_features, weighted_leverages
from tamiz.pairs.target import PairResiduals, log_p_values

# Directions that keep less than this share of their variance once both columns are taken out are not tested.
_SMALLEST_SHARE = 0.02
_CACHE_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """Hold what is known of some pairs.

    Parameters
    ----------
    log_p : ndarray of shape (n_pairs,)
        Natural logarithm of the p value of each pair on its own.
    strength : ndarray of shape (n_pairs,)
        Multiple correlation of the residuals with the products, from 0 to 1.
    component : ndarray of int, shape (n_pairs, 2)
        Functions of the two columns whose product explains most, from 0.
    """

    log_p: np.ndarray
    strength: np.ndarray
    component: np.ndarray


class PairJudge:
    """Compute the evidence of pairs beyond their two columns.

    The products of the functions of two columns are projected off the functions of each column alone (of degree 4), and the
    residuals are regressed on what is left.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    def __init__(self, basis: Basis, weights: np.ndarray) -> None:
        self.basis = basis
        self.weights = weights
        degrees = basis.degrees
        self._n_finer = np.where(basis.is_polynomial, -1, degrees)  # -1: not known yet
        largest = int(degrees[~basis.is_polynomial].max(initial=FINER_DEGREE))
        shape = (basis.n_columns, largest, len(weights))
        # Finer functions of all columns are kept if there is room for them, and made again each time if not.
        self._kept = np.empty(shape, dtype=np.float32) if 4 * np.prod(shape, dtype=float) <= _CACHE_BYTES else None
        self._filled = np.zeros(basis.n_columns, dtype=bool)

    def judge(self, pairs: np.ndarray, residuals: PairResiduals) -> PairEvidence:
        """Return the evidence of pairs.

        Parameters
        ----------
        pairs : ndarray of int, shape (n_pairs, 2)
            The pairs.
        residuals : PairResiduals
            What they are to explain.
        """
        log_p = np.zeros(len(pairs))
        strength = np.zeros(len(pairs))
        component = np.zeros((len(pairs), 2), dtype=np.int64)
        degrees = self.basis.degrees
        widest = int(degrees.max(initial=1)) ** 2 + 2 * FINER_DEGREE + 2
        size = max(1, 2**21 // (len(self.weights) * widest))
        for start in range(0, len(pairs), size):
            part = pairs[start : start + size]
            columns, place = np.unique(part, return_inverse=True)
            place = place.reshape(part.shape)
            own, finer = self._gather(columns)
            shapes = np.stack([degrees[part], self._n_finer[part]], axis=2).reshape(len(part), 4)
            for shape in np.unique(shapes, axis=0):
                if shape[0] == 0 or shape[2] == 0:
                    continue
                rows = np.flatnonzero((shapes == shape).all(axis=1))
                found = _judge_batch(own, finer, place[rows], shape, residuals)
                log_p[start + rows], strength[start + rows], component[start + rows] = found
        return PairEvidence(log_p, strength, component)

    def _gather(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the functions and the finer functions of some columns, filled up to the largest number of them."""
        degrees, n_rows = self.basis.degrees[columns], len(self.weights)
        own = np.zeros((len(columns), int(degrees.max(initial=1)), n_rows), dtype=np.float32)
        for place, column in enumerate(columns):
            own[place, : degrees[place]] = self.basis.of_column(int(column))
        store = self._kept
        if store is None:
            largest = int(self.basis.degrees[~self.basis.is_polynomial].max(initial=FINER_DEGREE))
            store = np.empty((len(columns), largest, n_rows), dtype=np.float32)
        for place, column in enumerate(columns):
            row = place if self._kept is None else column
            if self._kept is not None and self._filled[column]:
                continue
            degree = degrees[place]
            if self.basis.is_polynomial[column]:
                count = extend_polynomials(own[place, :degree], self.weights, store[row, :FINER_DEGREE])
                self._n_finer[column] = count
            else:
                store[row, :degree] = own[place, :degree]
            self._filled[column] = True
        return own, store if self._kept is None else store[columns]


def _judge_batch(
    own: np.ndarray, finer: np.ndarray, pairs: np.ndarray, shape: np.ndarray, residuals: PairResiduals
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log p, strength and the strongest component of pairs of one shape.

    Parameters
    ----------
    own, finer : ndarray of float32, shape (n_columns, n_functions, n_samples)
        Functions of some columns, and those that take their own effects out.
    pairs : ndarray of int, shape (n_pairs, 2)
        Places of the two columns in these arrays.
    shape : ndarray of int, shape (4,)
        Number of functions and of finer functions of the first, then of the second columns.
    residuals : PairResiduals
        What the pairs are to explain.
    """
    n_targets, n_rows = residuals.values.shape
    n_products = int(shape[0] * shape[2])
    n_features = n_products + 1 + int(shape[1] + shape[3])
    features = np.empty((len(pairs), n_features, n_rows), dtype=np.float32)
    scales = residuals.scale.astype(np.float32), residuals.main_scale.astype(np.float32)
    fill_pair_features(own, finer, pairs, shape, *scales, features)
    gram = (features @ features.transpose(0, 2, 1)).astype(np.float64)
    inner = (features @ residuals.values.T.astype(np.float32)).astype(np.float64)
    # Projection off the constant and the functions of both columns, in the scale in which an error of the additive model shows.
    design, cross = gram[:, n_products:, n_products:], gram[:, n_products:, :n_products]
    coefficients = np.linalg.solve(design + 1e-5 * n_rows * np.eye(design.shape[1]), cross)
    crossed = coefficients.transpose(0, 2, 1) @ cross
    total = gram[:, :n_products, :n_products]
    left = total - crossed - crossed.transpose(0, 2, 1) + coefficients.transpose(0, 2, 1) @ design @ coefficients
    inner = inner[:, :n_products] - coefficients.transpose(0, 2, 1) @ inner[:, n_products:]
    smallest = _SMALLEST_SHARE * np.einsum("mdd->m", total)[:, None] / n_products
    values, vectors = np.linalg.eigh(left)
    kept = values > smallest
    inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    whiten = (vectors * inverse[:, None, :]).transpose(0, 2, 1)
    statistic = ((whiten @ inner) ** 2).sum(axis=(1, 2)) / n_rows
    off = np.concatenate([whiten, -whiten @ coefficients.transpose(0, 2, 1)], axis=2).astype(np.float32)
    leverage = np.empty(len(pairs))
    weighted_leverages(off @ features, residuals.leverage_weights, leverage)
    rank = kept.sum(axis=1)
    log_p = log_p_values(statistic, rank, residuals.null_variance(rank, leverage), n_targets, n_rows)
    size = np.einsum("mdd->md", left)
    strongest = ((inner**2).sum(axis=2) / np.where(size > smallest, size, np.inf)).argmax(axis=1)
    component = np.stack([strongest // shape[2], strongest % shape[2]], axis=1)
    return log_p, np.sqrt(np.clip(statistic / n_targets, 0.0, 1.0)), component


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """Test each column on its own, for one or many residuals.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    basis: Basis
    weights: np.ndarray

    def log_p(self, residuals: PairResiduals, orders: np.ndarray | None = None) -> np.ndarray:
        """Return the logarithm of the p value of each column.

        Parameters
        ----------
        residuals : PairResiduals
            The residuals.
        orders : ndarray of int, shape (n_permutations, n_samples), or None, default=None
            Orders of the rows; if given, the smallest value of each is returned in place of that of each column.
        """
        values = residuals.values
        n_targets, n_rows = values.shape
        stacked = values if orders is None else values[:, orders].transpose(1, 0, 2).reshape(-1, n_rows)
        n_orders = 1 if orders is None else len(orders)
        result = np.zeros((self.basis.n_columns, n_orders)) if orders is None else np.zeros((1, n_orders))
        constant = residuals.main_scale / np.sqrt(residuals.main_scale @ residuals.main_scale)
        weighted = (stacked * residuals.scale).T.astype(np.float32)
        level = stacked @ constant
        for columns, functions, offsets in self._parts():
            means, whiten, rank, leverage = _whitening(functions, offsets, residuals, constant)
            inner = np.zeros((len(columns), means.shape[1], len(stacked)))
            inner[np.arange(means.shape[1]) < np.diff(offsets)[:, None]] = functions @ weighted
            inner -= means[:, :, None] * level
            explained = ((whiten @ inner) ** 2).sum(axis=1).reshape(len(columns), n_orders, n_targets).sum(axis=2)
            variance = residuals.null_variance(rank, leverage)
            found = log_p_values(explained / n_rows, rank[:, None], variance[:, None], n_targets, n_rows)
            if orders is None:
                result[columns] = found
            else:
                result[0] = np.minimum(result[0], found.min(axis=0))
        return result[:, 0] if orders is None else result[0]

    def _parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield some columns at a time, their functions and where those of each begin."""
        basis = self.basis
        size = max(1, 2**21 // len(self.weights))
        for start in range(0, basis.n_columns, size):
            columns = np.arange(start, min(start + size, basis.n_columns))
            offsets = basis.offsets[start : columns[-1] + 2]
            rows = slice(offsets[0], offsets[-1])
            functions = basis.functions[rows]
            if basis.shift is not None:
                functions = functions.toarray() + basis.shift[rows, None]
            if len(functions):
                yield columns, functions, offsets - offsets[0]


def _whitening(
    functions: np.ndarray, offsets: np.ndarray, residuals: PairResiduals, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what makes the functions of each column orthonormal: means, matrices, ranks and sums of squared leverages."""
    degrees = np.diff(offsets)
    largest = int(degrees.max())
    means = np.zeros((len(degrees), largest))
    grams = np.zeros((len(degrees), largest, largest))
    column_grams(functions, offsets, residuals.scale, constant, means, grams)
    values, vectors = np.linalg.eigh(grams)
    total = np.trace(grams, axis1=1, axis2=2) / np.maximum(degrees, 1)
    kept = values > np.maximum(_SMALLEST_SHARE * total, 1e-9)[:, None]
    inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    whiten = (vectors * inverse[:, None, :]).transpose(0, 2, 1)
    leverage = np.zeros(len(degrees))
    # Directions beyond the degree of a column have eigenvalue 0 and stand first; its own come last.
    own = np.zeros_like(whiten)
    for degree in np.unique(degrees[degrees > 0]):
        rows = degrees == degree
        own[rows, :degree] = whiten[rows, largest - degree :]
    column_leverages(functions, offsets, residuals.scale, constant, means, own, residuals.leverage_weights, leverage)
    return means, own, kept.sum(axis=1), leverage
