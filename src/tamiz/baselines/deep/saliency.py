"""Saliency of inputs after Cancela et al. (2020): how strongly each one would move a gain of output and label.

The gain of a loss (``Loss.gain``) is large where the loss is small, so its gradient does not vanish where the network is
already right. Outputs are clipped into the range in which the gain is defined, but the gradient passes the clip:
otherwise the samples that the network is surest of would not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz.core.losses import Loss


def input_saliency(
    model: nn.Module,
    X: Any,
    targets: Any,
    loss: Loss,
    groups: np.ndarray | None = None,
    batch_size: int = 512,
) -> np.ndarray:
    """Return the share of each input in the saliency of a trained network.

    For each sample the absolute gradient of the gain with respect to the input; summed over the samples of a class and
    divided by the total of the class, so that each class counts alike however many samples it has; summed over the
    classes and divided by the total.

    Parameters
    ----------
    model : nn.Module
        The trained network; used in evaluation mode, parameters untouched.
    X : array or tensor, shape (n_samples, n_features)
        The inputs.
    targets : array or tensor, shape (n_samples, n_outputs)
        The targets as the loss takes them.
    loss : Loss
        The loss the network was trained with.
    groups : ndarray of int or None, default=None
        The class of each sample, 0 .. C-1; None where all samples are one group (regression).
    batch_size : int, default=512
        Samples that go through the network at once; does not change the result.

    Returns
    -------
    ndarray of shape (n_features,)
        Non-negative, with a sum of 1 (all zero if the network does not depend on its input).

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> net = nn.Linear(2, 1)
    >>> net.weight.data = torch.tensor([[3.0, -1.0]])
    >>> input_saliency(net, torch.zeros(4, 2), torch.ones(4, 1), get_loss("squared_hinge")).round(4).tolist()
    [0.75, 0.25]
    """
    device = next(model.parameters()).device
    rows = torch.as_tensor(X, dtype=torch.float32, device=device)
    targets = torch.as_tensor(targets, device=device)
    classes = torch.zeros(rows.shape[0], dtype=torch.int64) if groups is None else torch.as_tensor(groups)
    totals = torch.zeros(int(classes.max()) + 1, rows.shape[1], dtype=torch.float64)
    was_training = model.training
    model.eval()
    for index in torch.arange(rows.shape[0], device=device).split(batch_size):
        batch = rows[index].requires_grad_()
        (gradient,) = torch.autograd.grad(loss.gain(model(batch), targets[index]).sum(), batch)
        totals.index_add_(0, classes[index.cpu()], gradient.abs().to("cpu", torch.float64))
    model.train(was_training)
    sums = totals.numpy()
    share = (sums / np.maximum(sums.sum(axis=1, keepdims=True), np.finfo(float).tiny)).sum(axis=0)
    return share / max(share.sum(), np.finfo(float).tiny)
