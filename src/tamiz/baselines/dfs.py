"""Deep Feature Selection: a one-to-one layer with an elastic-net penalty in front of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamiz.baselines._network import NetworkSelector, Problem, check_number


class DFS(NetworkSelector):
    """Deep Feature Selection (Li, Chen and Wasserman 2016).

    A layer with one weight w for each input, 1 at the start, stands in front of the network; the penalty
    ``l1 * |w|_1 + l2 * |w|_2^2`` is added to the loss, and all is trained together. The score of a feature is |w|.

    The cost is that of training the network once.

    Parameters
    ----------
    n_features_to_select : int, float or None
        How many features to keep: a number, a fraction in (0, 1), or None for half.
    l1, l2 : float
        Factors of the penalty on the one-to-one layer; 0.001 each in the paper's runs.
    network : {"naive", "three_layer", "wrn16x4", "cnn3"} or callable
        The network, or a callable that is given the number of inputs (or ``input_shape``) and of outputs and returns a
        torch module.
    input_shape : sequence of int or None
        For networks that read images: (channels, height, width), the columns of X being their values in that order.
    loss : str
        "squared_hinge", "softmax" or "logistic" for classes, "squared_error" or "huber" for regression;
        "auto" takes the paper's for the network (the squared hinge for "naive" and "three_layer") and the
        squared error.
    epochs, batch_size, learning_rate, weight_l2 : optional
        None takes the paper's for the network: for "naive" 150 epochs, batches of max(2, N / 50), Adam at 1e-3 divided
        by 5 after each third of the epochs, and 100 / N times the squared norm of the network's weights.
    class_weight : "balanced", dict or None
        Weights of the classes in the loss.
    normalize : {"erf", "standard", None}
        "erf" is ``erf((X - mean) / (sqrt(2) * sd))`` column by column, as in the paper's runs; "standard" the same
        without erf; None takes the data as they are. A sparse X is normalised into a dense float32 table.
    task : {"auto", "classification", "regression"}
        "auto" reads it from the target: numbers with a fractional part mean regression.
    random_state : int, RandomState instance or None
        Decides the order of the rows and the network's first weights.
    verbose : bool
        Whether to write the progress of the training to the standard error.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        |w|; 0 for constant columns.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    loss_curve_ : ndarray of shape (epochs,)
        The mean training loss of each epoch, with the penalty.
    n_steps_ : int
        Training steps taken.

    References
    ----------
    Y. Li, C.-Y. Chen, W. W. Wasserman: Deep Feature Selection: Theory and Application to Identify Enhancers and
    Promoters. Journal of Computational Biology 23 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> DFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "dfs"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        l1: float = 0.001,
        l2: float = 0.001,
        network: str | Callable[[Any, int], Any] = "naive",
        input_shape: Sequence[int] | None = None,
        loss: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_l2: float | None = None,
        class_weight: Any = "balanced",
        normalize: str | None = "erf",
        task: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_features_to_select,
            network=network,
            input_shape=input_shape,
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_l2=weight_l2,
            class_weight=class_weight,
            normalize=normalize,
            task=task,
            random_state=random_state,
            verbose=verbose,
        )
        self.l1 = l1
        self.l2 = l2

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_penalty(self.l1, self.l2)

    def _score_rows(self, problem: Problem) -> np.ndarray:
        trained = self._train(problem, problem.rows, with_one_to_one=True, penalty=(self.l1, self.l2))
        self.loss_curve_ = trained.loss_curve
        return np.abs(trained.one_to_one.weight.detach().cpu().numpy().astype(np.float64))


def check_penalty(l1: Any, l2: Any) -> None:
    """Refuse factors of the elastic net that are not numbers from 0."""
    for name, value in (("l1", l1), ("l2", l2)):
        if value is None:
            raise ValueError(f"{name} must be a finite number from 0, got None.")
        check_number(name, value)
