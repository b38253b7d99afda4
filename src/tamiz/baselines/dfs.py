"""Deep Feature Selection: a one-to-one layer with an elastic-net penalty in front of a network."""

from __future__ import annotations

import numpy as np

from tamiz.baselines.deep.penalized import OneToOneSelector
from tamiz.baselines.deep.selector import Setting


class DFS(OneToOneSelector):
    """Deep Feature Selection (Li, Chen and Wasserman 2016).

    A layer with one weight w for each input, 1 at the start, stands in front of the network; the penalty
    ``l1 * |w|_1 + l2 * |w|_2^2`` is added to the loss, and all is trained together. The score of a feature is |w|.

    The cost is that of training the network once.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    l1 : float, default=0.001
        Factor of the absolute norm of the one-to-one layer, as in the paper's runs.
    l2 : float, default=0.001
        Factor of the squared norm of the one-to-one layer.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.baselines.sfs.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images.
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
    title = "DFS"

    def _score_rows(self, setting: Setting) -> np.ndarray:
        trained = self._train_with_penalty(setting)
        self.loss_curve_ = trained.loss_curve
        return np.abs(trained.one_to_one.weight.detach().cpu().numpy().astype(np.float64))
