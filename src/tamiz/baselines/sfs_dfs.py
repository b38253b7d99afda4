"""SFS with the one-to-one layer of DFS in front of the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tamiz.baselines._network import Problem, Trained
from tamiz.baselines.dfs import check_penalty
from tamiz.baselines.sfs import SFS


class SFSDFS(SFS):
    """SFS+DFS (Cancela et al. 2020): the network carries the layer of DFS while SFS ranks.

    The network is trained as by :class:`~tamiz.baselines.dfs.DFS`, with one weight w in front of each input
    and the penalty ``l1 * |w|_1 + l2 * |w|_2^2``; the score is the saliency of
    :class:`~tamiz.baselines.sfs.SFS` with respect to the input in front of that layer, so that w is a factor
    of it. The cost is that of SFS.

    Parameters
    ----------
    n_features_to_select : int, float or None
        How many features to keep: a number, a fraction in (0, 1), or None for half.
    l1, l2 : float
        Factors of the penalty on the one-to-one layer; 0.001 each in the paper's runs.
    network, input_shape, loss, epochs, batch_size, learning_rate, weight_l2, class_weight, normalize, task
        As in :class:`~tamiz.baselines.sfs.SFS`.
    random_state : int, RandomState instance or None
        Decides the order of the rows and the network's first weights.
    verbose : bool
        Whether to write the progress of the training to the standard error.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Share of the saliency over the training loss; 0 for constant columns.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    training_loss_, loss_curve_, n_steps_
        As in :class:`~tamiz.baselines.sfs.SFS`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> SFSDFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "sfs+dfs"

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

    def _train_for_saliency(self, problem: Problem) -> Trained:
        return self._train(problem, problem.rows, with_one_to_one=True, penalty=(self.l1, self.l2))
