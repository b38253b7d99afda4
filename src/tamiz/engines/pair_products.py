"""Products of pairs for the compiled loop: formed on the fly from a few functions of each feature, never stored.

The coefficients of an output are one vector: those of the curve columns, then those of the products, row by row (function a
of one feature times each function b of every later feature). The gate is gamma of the feature for a curve column and
``gamma_i * gamma_j`` for a product; by the product rule the gradient of ``gamma_i`` is the sum of ``w * g`` over its curve
columns and of ``gamma_j * w * g`` over its products.

Features that are always read stand behind those that gamma decides over. Their gamma is 1; all else is the same for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from tamiz.core.compiled import FAST_INLINED, INLINED
from tamiz.engines.design import Design, compile_products, gamma_of, size_factor


@register_jitable(**FAST_INLINED)
def _dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@register_jitable(**FAST_INLINED)
def _add_multiple(out, factor, row):
    for j in range(out.shape[0]):
        out[j] += factor * row[j]


def pair_scores(matrix, rows, folded, width, intercept, scores):
    """Compute the scores of some rows: curve columns and products, times their folded coefficients."""
    starts, n_functions = matrix.functions, matrix.functions[-1]
    n_curves = matrix.values.shape[1] - n_functions
    for i in range(rows.shape[0]):
        row = matrix.values[rows[i]]
        curves, functions = row[:n_curves], row[n_curves:]
        for c in range(folded.shape[0]):
            v = folded[c]
            total = intercept[c] + _dot(v[:n_curves], curves)
            place = n_curves
            for feature in range(starts.shape[0] - 1):
                later = starts[feature + 1]
                for a in range(starts[feature], later):
                    end = place + n_functions - later
                    total += functions[a] * _dot(v[place:end], functions[later:])
                    place = end
            scores[i, c] = total


def pair_gradient(matrix, rows, score_gradient, gradient, width):
    """Compute the gradient with respect to the folded coefficients."""
    starts, n_functions = matrix.functions, matrix.functions[-1]
    n_curves = matrix.values.shape[1] - n_functions
    for c in range(gradient.shape[0]):
        g = gradient[c][:width]
        for j in range(width):
            g[j] = np.float32(0.0)
        for i in range(rows.shape[0]):
            d = score_gradient[i, c]
            if d == 0:
                continue
            row = matrix.values[rows[i]]
            functions = row[n_curves:]
            _add_multiple(g[:n_curves], d, row[:n_curves])
            place = n_curves
            for feature in range(starts.shape[0] - 1):
                later = starts[feature + 1]
                for a in range(starts[feature], later):
                    end = place + n_functions - later
                    _add_multiple(g[place:end], d * functions[a], functions[later:])
                    place = end


@register_jitable(**INLINED)
def _add_to_feature(matrix, feature, a, b, held_out, out):
    """Add ``a * b`` to the gradient of a feature's gamma; ``held_out``: divided by ``size_factor``."""
    if feature >= out.shape[0]:
        return
    starts, functions = matrix.starts, matrix.functions
    factor = np.float32(1.0)
    if held_out:
        own = functions[feature + 1] - functions[feature]
        curves = starts[feature + 1] - starts[feature]
        factor = np.float32(1.0) / size_factor(curves + own * (functions[-1] - own))
    out[feature] += factor * a * b


def pair_gamma_gradient(matrix, weights, gradient, scratch, gamma, held_out, add, out):
    """Compute the gradient with respect to gamma by the product rule, or add it to ``out``."""
    starts, functions = matrix.starts, matrix.functions
    n = functions.shape[0] - 1
    if not add:
        for i in range(out.shape[0]):
            out[i] = np.float32(0.0)
    for c in range(weights.shape[0]):
        w, g = weights[c], gradient[c]
        for i in range(n):
            for j in range(starts[i], starts[i + 1]):
                _add_to_feature(matrix, i, w[j], g[j], held_out, out)
        place = starts[n]
        for i in range(n):
            for _a in range(functions[i], functions[i + 1]):
                for other in range(i + 1, n):
                    both = np.float32(0.0)
                    for _b in range(functions[other], functions[other + 1]):
                        both += w[place] * g[place]
                        place += 1
                    _add_to_feature(matrix, i, gamma_of(gamma, other), both, held_out, out)
                    _add_to_feature(matrix, other, gamma_of(gamma, i), both, held_out, out)


class PairDesign(Design):
    """Curve columns and functions of a few features, and the products of pairs of them.

    Parameters
    ----------
    table : ndarray of float32, shape (n_samples, n_curve_columns + n_functions)
        The curve columns of each feature, then its functions.
    starts, functions : ndarray of int, shape (n_all_features + 1,)
        First curve column and first function of each feature, and the ends; features that are always read come last.

    Examples
    --------
    >>> design = PairDesign(np.zeros((5, 18)), np.array([0, 7, 14]), np.array([0, 2, 4]))
    >>> design.n_coefficients  # two features: seven each, and four products
    18
    """

    def __init__(self, table: np.ndarray, starts: np.ndarray, functions: np.ndarray) -> None:
        super().__init__(table, None, True, starts)
        self._lay_out(starts, functions)

    def _lay_out(self, starts: np.ndarray, functions: np.ndarray) -> None:
        starts, functions = starts.astype(np.int64), functions.astype(np.int64)
        self.matrix = self.matrix._replace(starts=starts, functions=functions)
        self.n_coefficients = int(starts[-1] + np.sum(np.diff(functions) * (functions[-1] - functions[1:])))

    @property
    def products(self) -> tuple[Any, ...]:
        """Compiled functions of the linear loop."""
        return compile_products(pair_scores, pair_gradient, pair_gamma_gradient, fastmath=frozenset())

    def find_living(self, rank: np.ndarray, m: int, order: np.ndarray) -> int:
        """Write the positions of the coefficients that stay to ``order`` and count them; keep their columns of the table."""
        starts, functions = self.matrix.starts, self.matrix.functions
        stays = np.concatenate([rank <= m, np.ones(starts.size - 1 - rank.size, dtype=bool)])
        curves, of_functions = np.repeat(stays, np.diff(starts)), np.repeat(stays, np.diff(functions))
        later = np.repeat(functions[1:], np.diff(functions))
        products = [own & of_functions[first:] for own, first in zip(of_functions, later)]
        coefficients = np.flatnonzero(np.concatenate([curves, *products]))
        order[: coefficients.size] = coefficients
        values = self.matrix.values[:, np.concatenate([curves, of_functions])]
        self.matrix = self.matrix._replace(values=np.ascontiguousarray(values))
        self._lay_out(*(np.concatenate([[0], np.cumsum(np.diff(ends)[stays])]) for ends in (starts, functions)))
        return coefficients.size

    def keep(self, order: np.ndarray, width: int) -> None:
        """Nothing to do: :meth:`find_living` has dropped the columns."""
