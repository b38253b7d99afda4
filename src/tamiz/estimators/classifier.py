"""The classifier that selects its own inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from tamiz.estimators._base import BaseE2EFS
from tamiz.estimators._targets import Encoded, class_factors, encode_classes
from tamiz.linear.losses import LOSSES


def _gives_probabilities(estimator: Any) -> bool:
    name = estimator._loss_name()
    if name in LOSSES and LOSSES[name].probabilistic:
        return True
    raise AttributeError(f"loss={estimator.loss!r} gives no probabilities; take loss='logistic' or 'softmax'.")


class E2EFSClassifier(ClassifierMixin, BaseE2EFS):
    """Select exactly M features and train a classifier on them, in one run (E2E-FS).

    At once a classifier and a selector: ``predict`` and ``score`` use the model that was trained along with the selection,
    ``transform`` keeps the selected columns, for any other model. Two classes have one output; more have one output a
    class ("squared_hinge" and "logistic": one against the rest); an indicator table of labels one output a label.

    Parameters
    ----------
    n_features_to_select : int, float or None
        M; a float in (0, 1) is a fraction of the columns, None half of them.
    variant : {"soft", "hard", "ranking"}
        E2E-FS-Soft, E2E-FS, or the variant that orders all features in one fit.
    network : {"linear", "mlp"} or callable
        The paper's network without hidden units (compiled engine, no torch needed), its three-layer network, or a function
        of the number of inputs and of outputs that builds an ``nn.Module``.
    loss : {"auto", "squared_hinge", "logistic", "softmax"}
        "auto" is the paper's squared hinge. The other two give probabilities.
    normalize : {"erf", "standard", None}
        What is done to the columns: the paper's :class:`ErfScaler`, mean 0 and standard deviation 1, or nothing.
    class_weight : {"balanced", None} or dict
        "balanced": each class counts the same, as in the paper. Not used for indicator tables.
    learning_rate : float or "auto"
        Of Adam, for the weights.
    l2 : float or "auto"
        Factor of the squared norm of the weights; "auto" is the paper's 100 / N for the linear network (more
        below 57 rows), at most 0.01 and 8 / N for others; less of it once the features are chosen.
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
    classes_ : ndarray
        The classes; for an indicator table the numbers of its columns.
    selection_ : Selection
        The record of the run.
    ranking_ : ndarray of int, shape (n_features_in_,)
        A permutation of 1 .. F; 1 is the best.
    gamma_ : ndarray of float, shape (n_features_in_,)
        The mask as it ended: ones and zeros.
    n_features_to_select_ : int
        M.
    coef_ : ndarray, shape (n_outputs, n_features_to_select_)
        Weights of the selected columns, in the order of the columns, *after they were normalised* (linear network only).
    intercept_ : ndarray, shape (n_outputs,)
        Constant terms (linear network only).
    module_ : torch.nn.Module
        The trained network, which reads the M selected columns (other networks only).
    n_iter_ : int
        Training steps.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 200))
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "ill", "well")
    >>> clf = E2EFSClassifier(n_features_to_select=2, random_state=0).fit(X, y)
    >>> clf.get_support(indices=True).tolist(), clf.score(X, y) > 0.9, clf.transform(X).shape
    ([3, 7], True, (60, 2))
    """

    _task = "classification"
    _automatic_loss = "squared_hinge"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        variant: str = "soft",
        network: str | Callable[..., Any] = "linear",
        loss: str = "auto",
        normalize: str | None = "erf",
        class_weight: Any = "balanced",
        learning_rate: float | str = "auto",
        l2: float | str = "auto",
        batch_size: int | str = "auto",
        warmup_steps: int | str = "auto",
        ramp_steps: int | str = "auto",
        refinement_epochs: int | str = "auto",
        max_steps: int | str = "auto",
        n_init: int | str = "auto",
        mu: float = 1.0,
        rho: float = 0.75,
        fit_intercept: bool = True,
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            n_features_to_select,
            variant=variant,
            network=network,
            loss=loss,
            normalize=normalize,
            learning_rate=learning_rate,
            l2=l2,
            batch_size=batch_size,
            warmup_steps=warmup_steps,
            ramp_steps=ramp_steps,
            refinement_epochs=refinement_epochs,
            max_steps=max_steps,
            n_init=n_init,
            mu=mu,
            rho=rho,
            fit_intercept=fit_intercept,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def _encode(self, y: Any, loss: str, sample_weight: np.ndarray) -> tuple[Encoded, np.ndarray]:
        target = encode_classes(y, loss)
        if target.codes is None or target.classes is None:
            return target, sample_weight
        factors = class_factors(self.class_weight, target.classes, target.codes, sample_weight)
        weights = sample_weight * factors[target.codes]
        if not weights.any():
            raise ValueError("class_weight leaves no row with a weight above 0.")
        return target, weights

    def _target_attributes(self, target: Encoded) -> dict[str, Any]:
        return {"classes_": target.classes, "multilabel_": target.codes is None}

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: above 0 for the second of two classes, the largest for the class predicted, above 0 for a label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table; only the selected columns matter.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores if self.multilabel_ or self.classes_.size > 2 else scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, or an indicator table of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_labels)
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes (of each label, for an indicator table); for "logistic" and "softmax" only.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return expit(scores)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self.loss_ == "softmax":
            return softmax(scores, axis=1)
        each = np.maximum(expit(scores), np.finfo(np.float64).tiny)
        return each / each.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._loss_name() != "softmax"
        # The checks of scikit-learn want a good score on two columns, of which the default keeps one (as RFE says too).
        tags.classifier_tags.poor_score = True
        return tags
