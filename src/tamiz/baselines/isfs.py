"""Iterative SFS: rank by saliency, drop the last, train anew, until the number wanted is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tamiz.baselines._base import ranking_from_scores
from tamiz.baselines.deep.selector import NetworkSelector, Setting


def next_size(n_alive: int, keep_ratio: float, n_wanted: int) -> int:
    """Return the size of the next round: the ratio of those alive, at least one fewer, never below the number wanted.

    Examples
    --------
    >>> next_size(100, 0.9, 10), next_size(5, 0.9, 2), next_size(11, 0.5, 10)
    (90, 4, 10)
    """
    return max(n_wanted, min(n_alive - 1, int(n_alive * keep_ratio)))


class ISFS(NetworkSelector):
    """Iterative Saliency-based Feature Selection (Cancela et al. 2020, there with gamma = 0.9).

    A network is trained and the features are ranked as by :class:`~tamiz.baselines.sfs.SFS`; the best ``keep_ratio`` of
    them stay, a new network is trained on these, and so on down to the number wanted. What was dropped earlier ranks
    lower; within a round the saliency decides.

    The network is trained about log(F / M) / log(1 / keep_ratio) times: 50 times from 2000 features to 10.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    keep_ratio : float, default=0.9
        Share of the features that stays in each round, in [0, 1); with 0 there is one round, which is SFS.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.baselines.sfs.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images. Dropped values are set to 0 there (the image
        keeps its shape); without a shape their columns are taken away.
    loss : str, default="auto"
        Loss by name.
    epochs : int or None, default=None
        Passes over the table.
    batch_size : int or None, default=None
        Rows per step.
    learning_rate : float or None, default=None
        Rate at the start.
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns, see :class:`~tamiz.baselines.SFS`.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is.
    device : str, default="cpu"
        Where torch trains.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and the initial weights of the network.
    verbose : bool, default=False
        Whether to report the progress of the training on stderr.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        The number of rounds the feature stayed alive, plus its share of the saliency in its last round. Constant
        columns have 0.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    n_rounds_ : int
        How many networks were trained.
    n_steps_ : int
        Training steps taken, over all rounds.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> selector = ISFS(n_features_to_select=2, epochs=20, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.n_rounds_
    ([1, 4], 4)
    """

    method_name = "isfs"
    title = "iSFS"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkSelector._parameter_constraints,
        "keep_ratio": [Interval(Real, 0, 1, closed="left")],
    }
    nested = "each"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        keep_ratio: float = 0.9,
        network: str | Callable[[Any, int], Any] = "linear",
        input_shape: Sequence[int] | None = None,
        loss: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_l2: float | None = None,
        class_weight: Any = "balanced",
        normalize: str | None = "erf",
        task: str = "auto",
        device: str = "cpu",
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
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.keep_ratio = keep_ratio

    def _score_rows(self, setting: Setting) -> np.ndarray:
        scores = np.zeros(setting.constant.size)
        alive = np.arange(scores.size)
        self.n_rounds_ = 0
        while True:
            share = self._share_of_saliency(setting, alive)
            scores[alive] = self.n_rounds_ + share
            self.n_rounds_ += 1
            size = next_size(alive.size, self.keep_ratio, self.n_features_to_select_)
            if size >= alive.size or size == self.n_features_to_select_:
                return scores
            alive = alive[ranking_from_scores(share) <= size]

    def _share_of_saliency(self, setting: Setting, alive: np.ndarray) -> np.ndarray:
        """Train on the columns that are alive; return the share of each in the saliency."""
        from tamiz.baselines.deep.saliency import input_saliency

        problem = setting.problem
        if self.input_shape is None:
            rows = np.ascontiguousarray(problem.X[:, alive])
        else:
            rows = np.zeros_like(problem.X)
            rows[:, alive] = problem.X[:, alive]
        model = self._train(setting, rows, seed_offset=self.n_rounds_).model
        share = input_saliency(model, rows, problem.targets, setting.loss, setting.classes)
        share = share if self.input_shape is None else share[alive]
        return np.where(setting.constant[alive], 0.0, share)
