"""Test columns and chosen pairs exactly: the share of the residuals that their functions explain, and its p value."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tamiz.pairs.basis import FINER_DEGREE, Basis, finer_functions
from tamiz.pairs.target import PairResiduals, log_p_values

# Directions that keep less than this share of their variance once both columns are taken out are not tested.
_SMALLEST_SHARE = 0.02
_PRODUCT_SHARE = 0.75
_CACHE_BYTES = 64 * 2**20


class Judge:
    """Test columns on their own, and pairs beyond their two columns.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    def __init__(self, basis: Basis, weights: np.ndarray) -> None:
        self.basis, self.weights = basis, weights
        # Finer functions are needed again for every permutation: those of so many columns are kept.
        n_kept = _CACHE_BYTES // (4 * FINER_DEGREE * len(weights))
        self._finer = lru_cache(maxsize=n_kept)(lambda column: finer_functions(basis, column, weights))

    def pairs(self, pairs: np.ndarray, residuals: PairResiduals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Test pairs: project the products of the functions of both columns off those of each alone (of degree 4).

        Parameters
        ----------
        pairs : ndarray of int, shape (n_pairs, 2)
            The pairs.
        residuals : PairResiduals
            Regressed on what is left of the products.

        Returns
        -------
        log_p : ndarray of shape (n_pairs,)
            Natural logarithm of the p value of each pair on its own.
        strength : ndarray of shape (n_pairs,)
            Multiple correlation of the residuals with the products, from 0 to 1.
        component : ndarray of int, shape (n_pairs, 2)
            Functions of the two columns whose product explains most, from 0.
        """
        log_p, strength = np.zeros((2, len(pairs)))
        component = np.zeros((len(pairs), 2), dtype=np.int64)
        degrees = self.basis.degrees
        widest = int(degrees.max(initial=1)) ** 2 + 2 * FINER_DEGREE + 2
        size = max(1, 2**21 // (len(self.weights) * widest))
        for start in range(0, len(pairs), size):
            part = pairs[start : start + size]
            columns, place = np.unique(part, return_inverse=True)
            place = place.reshape(part.shape)
            own = _stack([self.basis.of_column(column).astype(np.float32) for column in columns])
            listed = [self._finer(int(column)) for column in columns]
            finer, n_finer = _stack(listed), np.array([len(functions) for functions in listed])
            shapes = np.stack([degrees[part], n_finer[place]], axis=2).reshape(len(part), 4)
            shapes = np.column_stack([shapes, self.basis.is_polynomial[part].all(axis=1)])
            for shape in np.unique(shapes, axis=0):
                if shape[0] and shape[2]:
                    rows = np.flatnonzero((shapes == shape).all(axis=1))
                    found = _judge_batch(own, finer, place[rows], shape, residuals)
                    log_p[start + rows], strength[start + rows], component[start + rows] = found
        return log_p, strength, component

    def columns(self, residuals: PairResiduals, orders: np.ndarray | None = None) -> np.ndarray:
        """Compute the logarithm of the p value of each column on its own.

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
        result = np.zeros((self.basis.n_columns, n_orders))
        constant = (residuals.main_scale / np.sqrt(residuals.main_scale @ residuals.main_scale)).astype(np.float32)
        scale = residuals.scale.astype(np.float32)
        size = max(1, 2**21 // len(self.weights))
        for start in range(0, self.basis.n_columns, size):
            columns = np.arange(start, min(start + size, self.basis.n_columns))
            part = self.basis.take(columns)
            degrees, functions = part.degrees, part.functions
            if not degrees.any():
                continue
            if part.shift is not None:
                functions = functions.toarray() + part.shift[:, None]
            off = np.zeros((len(columns), int(degrees.max()), n_rows), dtype=np.float32)
            off[np.arange(off.shape[1]) < degrees[:, None]] = functions * scale
            off -= (off @ constant)[:, :, None] * constant
            grams = (off @ off.transpose(0, 2, 1)).astype(np.float64)
            values, vectors = np.linalg.eigh(grams)
            total = np.trace(grams, axis1=1, axis2=2) / np.maximum(degrees, 1)
            kept = values > np.maximum(_SMALLEST_SHARE * total, 1e-9)[:, None]
            inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
            white = (vectors * inverse[:, None, :]).transpose(0, 2, 1).astype(np.float32) @ off
            inner = (white @ stacked.T.astype(np.float32)).astype(np.float64)
            explained = (inner**2).sum(axis=1).reshape(len(columns), n_orders, n_targets).sum(axis=2)
            rank = kept.sum(axis=1)
            variance = residuals.null_variance(rank, _leverages(white, residuals.leverage_weights))
            result[columns] = log_p_values(explained / n_rows, rank[:, None], variance[:, None], n_targets, n_rows)
        return result[:, 0] if orders is None else result.min(axis=0)


def _stack(functions: list[np.ndarray]) -> np.ndarray:
    """Stack the functions of some columns, filled up with zeros to the largest number of them."""
    stacked = np.zeros((len(functions), max(map(len, functions)), functions[0].shape[1]), dtype=np.float32)
    for place, one in enumerate(functions):
        stacked[place, : len(one)] = one
    return stacked


def _judge_batch(
    own: np.ndarray, finer: np.ndarray, pairs: np.ndarray, shape: np.ndarray, residuals: PairResiduals
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute log p, strength and the strongest component of pairs of one shape.

    Parameters
    ----------
    own, finer : ndarray of float32, shape (n_columns, n_functions, n_samples)
        Functions of some columns, and those that take their own effects out.
    pairs : ndarray of int, shape (n_pairs, 2)
        Places of the two columns in these arrays.
    shape : ndarray of int, shape (5,)
        Number of functions and of finer functions of the first, then of the second columns, and whether both have an order,
        so that their product is tested on its own too.
    residuals : PairResiduals
        What the pairs are to explain.
    """
    n_targets, n_rows = residuals.values.shape
    n_products = int(shape[0] * shape[2])
    i, j = pairs.T
    products = own[i, : shape[0], None] * own[j, None, : shape[2]]
    products = products.reshape(len(pairs), n_products, n_rows) * residuals.scale.astype(np.float32)
    ones = np.ones((len(pairs), 1, n_rows), dtype=np.float32)
    mains = np.concatenate([ones, finer[i, : shape[1]], finer[j, : shape[3]]], axis=1)
    features = np.concatenate([products, mains * residuals.main_scale.astype(np.float32)], axis=1)
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
    leverage = _leverages(off @ features, residuals.leverage_weights)
    rank = kept.sum(axis=1)
    log_p = log_p_values(statistic, rank, residuals.null_variance(rank, leverage), n_targets, n_rows)
    size = np.einsum("mdd->md", left)
    if shape[4] and n_products > 1:
        # The product of both columns alone, with one degree of freedom: the better of both tests, of which the product, the
        # commonest joint effect, gets three quarters of the error.
        first = np.where(size[:, :1] > smallest, 1 / np.sqrt(np.maximum(size[:, :1], 1e-12)), 0.0)
        product = (
            features[:, :1] - coefficients[:, :, :1].transpose(0, 2, 1).astype(np.float32) @ features[:, n_products:]
        )
        one = (first[:, 0] > 0).astype(int)
        variance = residuals.null_variance(one, _leverages(first[:, :, None] * product, residuals.leverage_weights))
        alone = log_p_values((first**2 * inner[:, 0] ** 2).sum(axis=1) / n_rows, one, variance, n_targets, n_rows)
        log_p = np.minimum(np.minimum(log_p - np.log(1 - _PRODUCT_SHARE), alone - np.log(_PRODUCT_SHARE)), 0.0)
    strongest = ((inner**2).sum(axis=2) / np.where(size > smallest, size, np.inf)).argmax(axis=1)
    component = np.stack([strongest // shape[2], strongest % shape[2]], axis=1)
    return log_p, np.sqrt(np.clip(statistic / max(n_targets, 1), 0.0, 1.0)), component


def _leverages(white: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sum of squared leverages of each test; features are orthonormal, (tests, features, rows)."""
    return np.einsum("tkn,tkn->tn", white, white) ** 2 @ weights.astype(np.float32)
