"""Judge columns and chosen pairs exactly: the share of the residuals that their functions explain, and its p value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tamiz.pairs.basis import Basis
from tamiz.pairs.null import log_p_values
from tamiz.pairs.target import Residuals, main_functions

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
        self._cache: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._bytes = 0

    def functions(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the functions of a column and the finer ones that its own effect is taken out with, as float32."""
        found = self._cache.get(column)
        if found is None:
            own = self.basis.of_column(column).astype(np.float32)
            found = own, main_functions(self.basis, column, self.weights).astype(np.float32)
            if self._bytes > _CACHE_BYTES:
                self._cache.clear()
                self._bytes = 0
            self._cache[column] = found
            self._bytes += found[0].nbytes + found[1].nbytes
        return found

    def judge(self, pairs: np.ndarray, residuals: Residuals) -> PairEvidence:
        """Return the evidence of pairs, an int array of shape (n_pairs, 2)."""
        log_p = np.zeros(len(pairs))
        strength = np.zeros(len(pairs))
        component = np.zeros((len(pairs), 2), dtype=np.int64)
        for rows in self._batches(pairs):
            first = [self.functions(int(column)) for column in pairs[rows, 0]]
            second = [self.functions(int(column)) for column in pairs[rows, 1]]
            own = np.stack([one[0] for one in first]), np.stack([one[0] for one in second])
            main = np.concatenate([np.stack([one[1] for one in first]), np.stack([one[1] for one in second])], axis=1)
            log_p[rows], strength[rows], component[rows] = _judge_batch(own, main, residuals)
        return PairEvidence(log_p, strength, component)

    def _batches(self, pairs: np.ndarray, limit: int = 2**22) -> Iterator[np.ndarray]:
        """Yield the places of pairs whose arrays have equal shapes, few enough to fit into memory together."""
        shapes: dict[tuple[int, ...], list[int]] = {}
        for place, (i, j) in enumerate(pairs):
            shape = tuple(len(part) for column in (i, j) for part in self.functions(int(column)))
            if shape[0] and shape[2]:
                shapes.setdefault(shape, []).append(place)
        for shape, places in shapes.items():
            size = max(1, limit // (len(self.weights) * (shape[0] * shape[2] + shape[1] + shape[3] + 2)))
            for start in range(0, len(places), size):
                yield np.array(places[start : start + size])


def _judge_batch(
    own: tuple[np.ndarray, np.ndarray], main: np.ndarray, residuals: Residuals
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log p, strength and the strongest component of pairs of one shape."""
    n_pairs, _, n_rows = main.shape
    products = own[0][:, :, None, :] * own[1][:, None, :, :]
    n_first, n_second = products.shape[1:3]
    products = products.reshape(n_pairs, n_first * n_second, n_rows) * residuals.scale.astype(np.float32)
    constants = [np.ones(n_rows, dtype=np.float32)]
    if np.ptp(residuals.main_scale) > 1e-6:
        constants.append(residuals.main_scale.astype(np.float32))
    fixed = np.broadcast_to(np.stack(constants), (n_pairs, len(constants), n_rows))
    design = np.concatenate([fixed, main * residuals.main_scale.astype(np.float32)], axis=1)
    gram = (design @ design.transpose(0, 2, 1)).astype(np.float64)
    gram += 1e-5 * n_rows * np.eye(design.shape[1])
    coefficients = np.linalg.solve(gram, (design @ products.transpose(0, 2, 1)).astype(np.float64))
    total = np.einsum("mdn,mdn->m", products, products) / products.shape[1]
    products = products - coefficients.transpose(0, 2, 1).astype(np.float32) @ design
    statistic, rank, leverage, share = _explained(products, residuals.values, _SMALLEST_SHARE * total)
    n_targets = len(residuals.values)
    target = float((((residuals.values**2).sum(axis=0) / n_rows) ** 2).sum())
    log_p = log_p_values(statistic, rank, leverage, n_targets, target, n_rows)
    strongest = share.argmax(axis=1)
    component = np.stack([strongest // n_second, strongest % n_second], axis=1)
    return log_p, np.sqrt(np.clip(statistic / n_targets, 0.0, 1.0)), component


def _explained(
    features: np.ndarray, residuals: np.ndarray, smallest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return trace(H K), rank and sum of squared leverages of H, and the share that each feature explains alone.

    Parameters
    ----------
    features : ndarray of shape (n_tests, n_functions, n_samples)
        Centred features of each test.
    residuals : ndarray of shape (n_targets, n_samples)
        Standardised residuals.
    smallest : ndarray of shape (n_tests,)
        Smallest sum of squares of a direction that is tested.
    """
    n_rows = features.shape[2]
    gram = (features @ features.transpose(0, 2, 1)).astype(np.float64)
    inner = (features @ residuals.T.astype(np.float32)).astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    kept = values > smallest[:, None]
    inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    whiten = (vectors * inverse[:, None, :]).transpose(0, 2, 1)
    statistic = ((whiten @ inner) ** 2).sum(axis=(1, 2)) / n_rows
    white = whiten.astype(np.float32) @ features
    diagonal = np.einsum("mdn,mdn->mn", white, white)
    leverage = np.einsum("mn,mn->m", diagonal, diagonal)
    size = np.einsum("mdd->md", gram)
    share = (inner**2).sum(axis=2) / np.where(size > smallest[:, None], size, np.inf)
    return statistic, kept.sum(axis=1), leverage, share


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """Test each column on its own, for many residuals: functions, whitened once.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    basis: Basis
    weights: np.ndarray

    def log_p(self, residuals: Residuals, orders: np.ndarray | None = None) -> np.ndarray:
        """Return the logarithm of the p value of each column.

        Parameters
        ----------
        residuals : Residuals
            The residuals.
        orders : ndarray of int, shape (n_permutations, n_samples), or None, default=None
            Orders of the rows; if given, the smallest value of each is returned in place of that of each column.
        """
        values = residuals.values
        n_targets, n_rows = values.shape
        target = float((((values**2).sum(axis=0) / n_rows) ** 2).sum())
        stacked = values if orders is None else values[:, orders].transpose(1, 0, 2).reshape(-1, n_rows)
        n_orders = 1 if orders is None else len(orders)
        result = np.zeros((self.basis.n_columns, n_orders)) if orders is None else np.zeros((1, n_orders))
        for columns, features in self._batches(residuals):
            total = np.einsum("mdn,mdn->m", features, features) / features.shape[1]
            _, rank, leverage, _ = _explained(features, values, _SMALLEST_SHARE * total)
            gram = (features @ features.transpose(0, 2, 1)).astype(np.float64)
            inner = (features @ stacked.T.astype(np.float32)).astype(np.float64)
            inverse = np.linalg.pinv(gram, rcond=1e-3, hermitian=True)
            explained = (inner * (inverse @ inner)).sum(axis=1).reshape(len(columns), n_orders, n_targets).sum(axis=2)
            found = log_p_values(explained / n_rows, rank[:, None], leverage[:, None], n_targets, target, n_rows)
            if orders is None:
                result[columns] = found
            else:
                result[0] = np.minimum(result[0], found.min(axis=0))
        return result[:, 0] if orders is None else result[0]

    def _batches(self, residuals: Residuals) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield columns with equally many functions, and these, scaled and centred, as (n_columns, degree, n_samples)."""
        degrees = self.basis.degrees
        scale = residuals.scale.astype(np.float32)
        flat = np.ptp(scale) < 1e-6
        for degree in np.unique(degrees[degrees > 0]):
            columns = np.flatnonzero(degrees == degree)
            size = max(1, 2**20 // (int(degree) * len(scale)))
            for start in range(0, len(columns), size):
                part = columns[start : start + size]
                features = np.stack([self.basis.of_column(int(j)).astype(np.float32) for j in part]) * scale
                if not flat:
                    features -= features.mean(axis=2, keepdims=True)
                yield part, features
