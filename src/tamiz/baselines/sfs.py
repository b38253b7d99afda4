"""Saliency-based Feature Selection: gradient of a gain with respect to the input of a trained network."""

from __future__ import annotations

import numpy as np

from tamiz.baselines.deep.selector import NetworkSelector, Setting, Trained


class SFS(NetworkSelector):
    """Saliency-based Feature Selection (Cancela, Bolon-Canedo, Alonso-Betanzos and Gama 2020).

    The network is trained once. For each training sample the absolute gradient, with respect to the input, of a *gain*
    of output and label is taken; it is summed over the samples of a class and divided by the class's total, so that
    each class counts alike, then summed over the classes and divided by the total. The score is this share over the
    training loss. The gain is ``(1 + y * s)_+^2``, s clipped to [-1, 1], for the squared hinge; ``-log(1 - p)``, p the
    probability of the true class, for the cross-entropies; ``1 / ((y - s)^2 + 1)`` for regression. The clip counts in
    the gain, not in its gradient.

    The paper balances the classes by drawing samples anew; dividing by each class's total does the same without chance.
    The cost is that of training the network once and one more epoch.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network, or a callable that is given the number of inputs (or ``input_shape``) and of outputs and returns a
        torch module.
    input_shape : sequence of int or None, default=None
        For networks that read images: (channels, height, width), the columns of X being their values in that order.
    loss : str, default="auto"
        "squared_hinge", "softmax" or "logistic" for classes, "squared_error" or "huber" for regression; "auto" takes the
        paper's for the network (the squared hinge for "linear" and "mlp") and the squared error.
    epochs : int or None, default=None
        Passes over the table; None for the paper's (150 for "linear" and "mlp"). The rates are stretched to it.
    batch_size : int or None, default=None
        Rows per step; None for the paper's (max(2, N / 50) for "linear" and "mlp").
    learning_rate : float or None, default=None
        Rate at the start, divided by 5 after each third of the epochs; None for the paper's (1e-3, with Adam, for
        "linear" and "mlp").
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights; None for the paper's (100 / N for "linear" and "mlp").
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        "erf" is ``erf((X - mean) / (sqrt(2) * sd))`` column by column, as in the code that the paper's authors released;
        "erf2" has the ``2 * sd`` that the paper prints; "standard" is the same without erf; None takes the data
        as they are. A sparse X is normalised into a dense float32 table.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" reads it from the target: numbers with a fractional part mean regression.
    device : str, default="cpu"
        Where torch trains: "cpu", "cuda", "cuda:1".
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
    training_loss_ : float
        The weighted mean loss of the trained network, without penalties.
    loss_curve_ : ndarray of shape (epochs,)
        The mean training loss of each epoch.
    n_steps_ : int
        Training steps taken.

    References
    ----------
    B. Cancela, V. Bolon-Canedo, A. Alonso-Betanzos, J. Gama: A scalable saliency-based feature selection method with
    instance-level information. Knowledge-Based Systems 192 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> SFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "sfs"
    title = "SFS"

    def _train_for_saliency(self, setting: Setting) -> Trained:
        return self._train(setting, setting.problem.X)

    def _score_rows(self, setting: Setting) -> np.ndarray:
        from tamiz.baselines.deep.saliency import input_saliency

        trained = self._train_for_saliency(setting)
        self.loss_curve_, self.training_loss_ = trained.loss_curve, trained.loss
        problem = setting.problem
        share = input_saliency(trained.model, problem.X, problem.targets, setting.loss, setting.classes)
        # A loss of zero is possible (every margin met); the order of the features does not depend on it.
        return share / max(trained.loss, np.finfo(np.float32).tiny)
