"""The saliency of inputs after Cancela et al. (2020): how strongly each one would move a gain of output and label.

A gain is large where a loss is small, so its gradient lives on where the network is already right. Outputs are clipped
into the range in which the gain is defined, but the gradient passes the clip as if it were not there: otherwise the
samples that the network is surest of would not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tamiz.networks.losses import get_loss

#: How far probabilities stay away from 0 and 1.
EPSILON = 1e-7


def clip_straight_through(values: Tensor, low: float, high: float) -> Tensor:
    """Values clipped to [low, high] whose gradient is 1 everywhere.

    Examples
    --------
    >>> x = torch.tensor([0.5, 3.0], requires_grad=True)
    >>> clipped = clip_straight_through(x, -1.0, 1.0)
    >>> clipped.sum().backward()
    >>> clipped.tolist(), x.grad.tolist()
    ([0.5, 1.0], [1.0, 1.0])
    """
    return values + (values.clamp(low, high) - values).detach()


def gain(outputs: Tensor, targets: Tensor, loss: str) -> Tensor:
    """The gain of each sample that goes with a loss.

    ``(1 + y * s)_+^2`` with s clipped to [-1, 1] for "squared_hinge"; ``-log(1 - p)``, p the probability of the true
    class, for "softmax" and "logistic"; ``1 / ((y - s)^2 + 1)`` for "squared_error" and "huber"; each the mean over the
    outputs.

    Parameters
    ----------
    outputs, targets : Tensor
        As for the loss.
    loss : str
        The loss the network was trained with.

    Examples
    --------
    >>> gain(torch.tensor([[0.5], [7.0]]), torch.ones(2, 1), "squared_hinge").tolist()  # 1.5^2, 2^2
    [2.25, 4.0]
    >>> gain(torch.tensor([[1.0]]), torch.tensor([[3.0]]), "squared_error").item()
    0.20000000298023224
    """
    get_loss(loss)
    if loss == "squared_hinge":
        return torch.relu(1.0 + targets * clip_straight_through(outputs, -1.0, 1.0)).square().mean(1)
    if loss == "softmax":
        true_class = outputs.softmax(1).gather(1, targets[:, None])
        return -torch.log1p(-clip_straight_through(true_class, EPSILON, 1.0 - EPSILON)).squeeze(1)
    if loss == "logistic":
        probability = torch.sigmoid(targets * outputs)
        return -torch.log1p(-clip_straight_through(probability, EPSILON, 1.0 - EPSILON)).mean(1)
    return (1.0 / ((targets - outputs).square() + 1.0)).mean(1)


def input_saliency(
    model: nn.Module,
    X: Any,
    targets: Any,
    loss: str,
    groups: np.ndarray | None = None,
    batch_size: int = 512,
) -> np.ndarray:
    """The share of each input in the saliency of a trained network.

    For each sample the absolute gradient of the gain with respect to the input; summed over the samples of a class and
    divided by the class's total, so that each class counts alike however many samples it has; summed over the classes
    and divided by the total.

    Parameters
    ----------
    model : nn.Module
        The trained network; used in evaluation mode, parameters untouched.
    X : array or tensor, shape (n_samples, n_features)
        The inputs.
    targets : tensor
        The targets in the form of the loss.
    loss : str
        The loss the network was trained with.
    groups : ndarray of int or None
        Each sample's class, 0 .. C-1; None where all samples are one group (regression).
    batch_size : int
        How many samples go through the network at once; does not change the result.

    Returns
    -------
    ndarray of shape (n_features,)
        Non-negative, with a sum of 1 (all zero if the network does not depend on its input).

    Examples
    --------
    >>> net = nn.Linear(2, 1)
    >>> net.weight.data = torch.tensor([[3.0, -1.0]])
    >>> input_saliency(net, torch.zeros(4, 2), torch.ones(4, 1), "squared_hinge").round(4).tolist()
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
        (gradient,) = torch.autograd.grad(gain(model(batch), targets[index], loss).sum(), batch)
        totals.index_add_(0, classes[index.cpu()], gradient.abs().to("cpu", torch.float64))
    model.train(was_training)
    sums = totals.numpy()
    share = (sums / np.maximum(sums.sum(axis=1, keepdims=True), np.finfo(float).tiny)).sum(axis=0)
    return share / max(share.sum(), np.finfo(float).tiny)
