"""SFS with the one-to-one layer of DFS in front of the network."""

from __future__ import annotations

from tamiz.baselines.deep.penalized import OneToOneSelector
from tamiz.baselines.deep.selector import Setting, Trained
from tamiz.baselines.sfs import SFS


class SFSDFS(OneToOneSelector, SFS):
    """SFS+DFS (Cancela et al. 2020): the network carries the layer of DFS while SFS ranks.

    The network is trained as by :class:`~tamiz.baselines.dfs.DFS`, with one weight w in front of each input
    and the penalty ``l1 * |w|_1 + l2 * |w|_2^2``; the score is the saliency of
    :class:`~tamiz.baselines.sfs.SFS` with respect to the input in front of that layer, so that w is a factor
    of it. The cost is that of SFS.

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
    title = "SFS+DFS"

    def _train_for_saliency(self, setting: Setting) -> Trained:
        return self._train_with_penalty(setting)
