"""Predict with a second-order model: curves of the selected columns, and joint effects of pairs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from tamiz.engines.additive import AdditiveModel
from tamiz.engines.pair_basis import curve_values


@dataclass(frozen=True, eq=False)
class PairModel:
    """A sum of curves, one for each selected column, and of joint effects, one for each pair of selected features.

    A joint effect is a weighted sum of products of functions, one of each feature. Functions have mean 0 and variance 1 over
    the training samples, and are sums of curves that are linear between the knots of their columns.

    Parameters
    ----------
    curves : AdditiveModel
        Curves and constant terms.
    functions : ndarray, shape (n_functions, n_all_knots)
        Values of each function at the knots of ``curves``; 0 at those of other features.
    function_features : ndarray of int, shape (n_functions,)
        Which of the selected features a function belongs to, ascending; columns that are always read are numbered behind
        the selected features.
    weights : ndarray, shape (n_outputs, n_functions, n_functions)
        Weights of the products of two functions; 0 unless the feature of the first comes before that of the second.

    Examples
    --------
    >>> flat = AdditiveModel(np.array([-1.0, 1, -1, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
    >>> model = PairModel(flat, np.array([[-1.0, 1, 0, 0], [0, 0, -1, 1]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
    >>> model.scores(np.array([[1.0, 1.0], [1.0, -0.5]]))[:, 0].tolist()
    [3.5, -1.0]
    >>> model.pair_strengths()
    [(0, 1, 3.0)]
    """

    curves: AdditiveModel
    functions: np.ndarray
    function_features: np.ndarray
    weights: np.ndarray

    #: What follows each layer of :meth:`affine_layers` but the last.
    activations: ClassVar[tuple[str, ...]] = ("relu", "square")

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row, shape (n_samples, n_outputs).

        Parameters
        ----------
        X : ndarray or sparse matrix, shape (n_samples, n_selected_columns)
            The selected columns, in the order of the table.
        offset : ndarray, shape (n_selected_columns,), or None, default=None
            Implicit value of each column of a sparse table.
        """
        if sp.issparse(X):
            X = X.toarray()
        if offset is not None:
            X = X + offset
        functions = self._function_values(X)
        products = [np.einsum("na,na->n", functions @ own, functions) for own in self.weights]
        return self.curves.scores(X) + np.stack(products, axis=1)

    def _function_values(self, X: np.ndarray) -> np.ndarray:
        knots = np.split(self.curves.knots, self.curves.starts[1:-1])
        return curve_values(np.asarray(X, dtype=np.float64), knots, self.functions)

    def effects(self, column: int, values: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the curve of a selected column, see :meth:`AdditiveModel.effects`."""
        return self.curves.effects(column, values)

    def pair_effects(self, first: int, second: int, X: Any) -> np.ndarray:
        """Return what two selected features add to each output together, beyond their curves.

        Parameters
        ----------
        first, second : int
            Positions of the features among the selected ones.
        X : array-like, shape (n_samples, n_selected_columns)
            Where to evaluate it, in the units that the model reads; only the columns of the two features matter.

        Returns
        -------
        ndarray, shape (n_samples, n_outputs)
        """
        first, second = sorted((first, second))
        functions = self._function_values(np.asarray(X, dtype=np.float64))
        of_first, of_second = (np.flatnonzero(self.function_features == feature) for feature in (first, second))
        weights = self.weights[:, of_first][:, :, of_second]
        return np.einsum("na,cab,nb->nc", functions[:, of_first], weights, functions[:, of_second])

    def columns_of_pairs(self, feature: int) -> np.ndarray:
        """Return which of the columns that the model reads the joint effects of a feature depend on.

        Parameters
        ----------
        feature : int
            Its number in ``function_features``.

        Examples
        --------
        >>> flat = AdditiveModel(np.array([0.0, 1, 0, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
        >>> model = PairModel(flat, np.array([[0.0, 0, 0, 1], [0, 1, 0, 0]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
        >>> model.columns_of_pairs(0).tolist()
        [1]
        """
        knots = np.flatnonzero(self.functions[self.function_features == feature].any(axis=0))
        return np.unique(np.searchsorted(self.curves.starts, knots, side="right") - 1)

    def pair_strengths(self) -> list[tuple[int, int, float]]:
        """Return the pairs of features with a joint effect and its strength, strongest first.

        The strength is the root of the sum of squared weights over all products and outputs: the standard deviation of the
        joint effect if the two features are independent of each other.
        """
        found = []
        features = np.unique(self.function_features)
        squares = np.square(self.weights).sum(axis=0)
        for place, first in enumerate(features):
            rows = squares[self.function_features == first]
            for second in features[place + 1 :]:
                strength = float(np.sqrt(rows[:, self.function_features == second].sum()))
                if strength > 0:
                    found.append((int(first), int(second), strength))
        return sorted(found, key=lambda pair: (-pair[2], pair[:2]))

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> PairModel:
        """Return the model whose outputs are ``scores * scale + mean``."""
        return replace(self, curves=self.curves.rescaled(mean, scale), weights=self.weights * scale[:, None, None])

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the model as three layers, with ReLU after the first and squares after the second.

        The first has a unit for each knot. A sum of products is a sum of squares, by the eigenvectors of its symmetric matrix
        of weights, and a curve c is ``((c + 1)^2 - (c - 1)^2) / 4``.

        Examples
        --------
        >>> flat = AdditiveModel(np.array([0.0, 1, 0, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
        >>> model = PairModel(flat, np.array([[0.0, 1, 0, 0], [0, 0, 0, 1]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
        >>> (bends, places), (mix, shift), (out, constant) = model.affine_layers()
        >>> units = np.maximum(np.array([0.5, 1.0]) @ bends.T + places, 0) @ mix.T + shift
        >>> float((units**2 @ out.T + constant).round(6)[0])  # 0.5 + 3 * 0.5 * 1
        2.0
        """
        knots, curves = self.curves.affine_layers()
        functions = replace(self.curves, heights=self.functions, intercept=np.zeros(self.functions.shape[0]))
        function_weights, function_constants = functions.affine_layers()[1]
        mixes, constants, outputs = [], [], []
        for number, own in enumerate(self.weights):
            values, vectors = np.linalg.eigh((own + own.T) / 2)
            kept = np.abs(values) > 1e-9 * np.abs(values).max(initial=0.0)
            curve, constant = curves[0][number : number + 1], curves[1][number]
            mixes.append(np.concatenate([vectors[:, kept].T @ function_weights, curve, curve]))
            constants.append(np.concatenate([vectors[:, kept].T @ function_constants, [constant + 1, constant - 1]]))
            out = np.zeros((self.weights.shape[0], int(kept.sum()) + 2))
            out[number] = [*values[kept], 0.25, -0.25]
            outputs.append(out)
        output = (np.concatenate(outputs, axis=1), np.zeros(self.weights.shape[0]))
        return [knots, (np.concatenate(mixes), np.concatenate(constants)), output]
