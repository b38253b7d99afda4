"""The regressor that selects its own inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from tamiz.estimators._base import BaseE2EFS
from tamiz.estimators._targets import Encoded, encode_numbers


class E2EFSRegressor(RegressorMixin, BaseE2EFS):
    """Select exactly M features and train a regression on them, in one run (E2E-FS).

    At once a regressor and a selector: ``predict`` and ``score`` use the model that was trained along with the selection,
    ``transform`` keeps the selected columns, for any other model. Several targets share one selection. Targets are
    standardised inside, so their scale does not matter.

    Parameters
    ----------
    n_features_to_select : int, float or None
        M; a float in (0, 1) is a fraction of the columns, None half of them.
    variant : {"soft", "hard", "ranking"}
        E2E-FS-Soft, E2E-FS, or the variant that orders all features in one fit.
    network : {"linear", "mlp"} or callable
        A linear model (compiled engine, no torch needed), the paper's three-layer network, or a function of the number of
        inputs and of outputs that builds an ``nn.Module``.
    loss : {"auto", "squared_error", "huber"}
        "auto" is the squared error; Huber's is safe from outliers of y.
    normalize : {"erf", "standard", None}
        What is done to the columns: the paper's :class:`ErfScaler`, mean 0 and standard deviation 1, or nothing.
    learning_rate : float or "auto"
        Of Adam, for the weights.
    l2 : float or "auto"
        Factor of the squared norm of the weights; "auto" is 100 / N (more below 57 rows) during the selection and 1 / N
        after it for the linear network, at most 0.01 and 8 / N for others, and a tenth of that after it.
    batch_size : int or "auto"
        Rows a step; "auto" is the paper's max(2, N / 50), and N / 4 within 16 and 64 for networks with hidden layers.
    warmup_steps, ramp_steps : int or "auto"
        Steps before gamma moves, and the paper's T: the steps until the penalty has its full weight.
    refinement_epochs : int or "auto"
        Passes over the data after the selection is decided.
    max_steps : int or "auto"
        Steps of selection after which the M largest are kept whatever happens; "auto" is four ramps.
    n_init : int or "auto"
        Starts of a network from different weights; the one with the lowest training loss is kept. "auto" is 3 for
        networks; the linear model has one.
    mu, rho : float
        The paper's, of the penalty and of the soft variant.
    fit_intercept : bool
        Whether the linear model has a constant term.
    device : str
        Where the torch engine runs.
    random_state : int, RandomState or None
        An integer makes the fit repeatable.
    verbose : int or bool
        Whether to show a progress bar.

    Attributes
    ----------
    selection_, ranking_, gamma_, n_features_to_select_, coef_, intercept_, module_, n_iter_
        As in :class:`E2EFSClassifier`; ``coef_`` gives y in its own units.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = 3 * X[:, 3] - 2 * X[:, 7]
    >>> reg = E2EFSRegressor(n_features_to_select=2, random_state=0).fit(X, y)
    >>> reg.get_support(indices=True).tolist(), reg.predict(X).shape
    ([3, 7], (200,))
    """

    _task = "regression"
    _automatic_loss = "squared_error"

    def _encode(self, y: Any, loss: str, sample_weight: np.ndarray) -> tuple[Encoded, np.ndarray]:
        return encode_numbers(y, robust=loss == "huber"), sample_weight

    def _target_attributes(self, target: Encoded) -> dict[str, Any]:
        return {"one_dimensional_": target.one_dimensional}

    def predict(self, X: Any) -> np.ndarray:
        """The numbers predicted for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table; only the selected columns matter.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores[:, 0] if self.one_dimensional_ else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
