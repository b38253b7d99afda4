"""Multiply a few rows of a table, dense or sparse, by the first layer of a network with the mask folded in.

The two products are handed to the compiled loop as functions of one fixed type, as in ``tamiz.engines.design``. Weights lie
as (n_columns, units): the columns of a table that has lost some are then still side by side, and an entry of a sparse table
costs one row of weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tamiz.core.compiled import FAST, compile_argument
from tamiz.engines.design import Design
from tamiz.engines.products import PANEL, multiply, multiply_transposed


def _dense_forward(values, data, indices, indptr, offset, rows, gamma, weights, batch, out):
    """Compute ``out = (X[rows] * gamma) @ weights``; the first factor stays in ``batch``, panel by panel, for the gradient."""
    n, width = rows.shape[0], gamma.shape[0]
    for begin in range(0, width, PANEL):
        end = min(begin + PANEL, width)
        panel, gate = batch[n * begin : n * end].reshape((n, end - begin)), gamma[begin:end]
        for i in range(n):
            source, target = values[rows[i]][begin:end], panel[i]
            for j in range(gate.shape[0]):
                target[j] = gate[j] * source[j]
        multiply(panel, weights[begin:end], out, begin > 0)


def _dense_gradient(values, data, indices, indptr, offset, rows, gamma, delta, batch, gradient):
    """Compute ``gradient = (X[rows] * gamma).T @ delta`` from what the forward product left in ``batch``."""
    n, width = rows.shape[0], gamma.shape[0]
    for begin in range(0, width, PANEL):
        end = min(begin + PANEL, width)
        multiply_transposed(batch[n * begin : n * end].reshape((n, end - begin)), delta, gradient[begin:end])


def _sparse_forward(values, data, indices, indptr, offset, rows, gamma, weights, batch, out):
    """Compute ``out = (X[rows] * gamma) @ weights``; ``batch`` is scratch for one row."""
    units = weights.shape[1]
    base = batch[:units]
    for u in range(units):
        base[u] = np.float32(0.0)
    for j in range(gamma.shape[0]):
        value = offset[j] * gamma[j]
        if value != 0:
            w = weights[j]
            for u in range(units):
                base[u] += value * w[u]
    for i in range(rows.shape[0]):
        row = out[i]
        for u in range(units):
            row[u] = base[u]
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value, w = data[p] * gamma[indices[p]], weights[indices[p]]
            for u in range(units):
                row[u] += value * w[u]


def _sparse_gradient(values, data, indices, indptr, offset, rows, gamma, delta, batch, gradient):
    """Compute ``gradient = (X[rows] * gamma).T @ delta``; ``batch`` is scratch for one row."""
    units = delta.shape[1]
    total = batch[:units]
    for u in range(units):
        total[u] = np.float32(0.0)
    for i in range(rows.shape[0]):
        d = delta[i]
        for u in range(units):
            total[u] += d[u]
    for j in range(gamma.shape[0]):
        value, g = offset[j] * gamma[j], gradient[j]
        for u in range(units):
            g[u] = value * total[u]
    for i in range(rows.shape[0]):
        d = delta[i]
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value, g = data[p] * gamma[indices[p]], gradient[indices[p]]
            for u in range(units):
                g[u] += value * d[u]


@cache
def _compiled(product: Callable[..., None]) -> Any:
    table, vector = types.Array(types.float32, 2, "C"), types.Array(types.float32, 1, "C")
    rows = types.Array(types.int64, 1, "C")
    matrix = (table, vector, types.Array(types.int32, 1, "C"), rows, vector)
    signature = types.void(*matrix, rows, vector, table, vector, table)
    return compile_argument(product, signature, fastmath=FAST)


def first_layer_products(design: Design) -> tuple[Any, Any]:
    """Return the compiled products of a table, forward and for the gradient of the weights.

    Examples
    --------
    >>> forward, gradient = first_layer_products(Design(np.eye(2), None, owned=False))
    """
    if design.sparse:
        return _compiled(_sparse_forward), _compiled(_sparse_gradient)
    return _compiled(_dense_forward), _compiled(_dense_gradient)


def batch_memory(design: Design, n_rows: int, units: int) -> np.ndarray:
    """Return the memory ``batch`` that the products need for at most ``n_rows`` rows at a time.

    Examples
    --------
    >>> batch_memory(Design(np.eye(3), None, owned=False), 2, 8).shape
    (6,)
    """
    return np.zeros(units if design.sparse else n_rows * design.matrix.values.shape[1], dtype=np.float32)
