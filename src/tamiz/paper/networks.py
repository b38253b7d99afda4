"""Networks of the papers, by name, and their training with torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tamiz._utils.text import pick
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule
from tamiz.torch import train_weights
from tamiz.torch.batches import TensorBatches, full_sizes
from tamiz.torch.trainer import decay_groups

Shape = int | Sequence[int]
#: Pixels of the smallest image that the Wide ResNet reads.
SMALLEST_SIDE = 8


def n_inputs_of(shape: Shape) -> int:
    """Count the input values of a number or a shape.

    Examples
    --------
    >>> n_inputs_of(20), n_inputs_of((1, 28, 28))
    (20, 784)
    """
    sizes = tuple(int(size) for size in ([shape] if isinstance(shape, (int, np.integer)) else shape))
    if not sizes or any(size < 1 for size in sizes):
        raise ValueError(f"A network needs at least one input, got the shape {shape!r}.")
    return math.prod(sizes)


class NaiveSVM(nn.Sequential):
    """Network without hidden units; with the squared hinge loss and an l2 penalty it is a linear SVM.

    Its weights are zero at the start: the problem is convex, so the start does not decide where training ends, and permuted
    columns give permuted weights.

    Parameters
    ----------
    n_inputs : int or sequence of int
        The number of inputs; the inputs of a shape are flattened.
    n_outputs : int
        One for two classes or a single regression target, else one for each class.

    Examples
    --------
    >>> import torch
    >>> NaiveSVM(4, 1)(torch.ones(3, 4)).shape
    torch.Size([3, 1])
    """

    def __init__(self, n_inputs: Shape, n_outputs: int) -> None:
        linear = nn.Linear(n_inputs_of(n_inputs), n_outputs)
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
        super().__init__(nn.Flatten(1), linear)


class ThreeLayerNet(nn.Sequential):
    """Dense network of the paper: hidden layers of 50, 25 and 10 units, each with batch normalisation and ReLU.

    The hidden layers have no bias: the batch normalisation behind them would take it away again.

    Parameters
    ----------
    n_inputs : int or sequence of int
        The number of inputs; the inputs of a shape are flattened.
    n_outputs : int
        The number of outputs.
    hidden : sequence of int, default=(50, 25, 10)
        Units of the hidden layers.

    Examples
    --------
    >>> import torch
    >>> ThreeLayerNet(500, 1)(torch.zeros(8, 500)).shape
    torch.Size([8, 1])
    """

    def __init__(self, n_inputs: Shape, n_outputs: int, hidden: Sequence[int] = (50, 25, 10)) -> None:
        layers: list[nn.Module] = [nn.Flatten(1)]
        width = n_inputs_of(n_inputs)
        for units in hidden:
            layers += [nn.Linear(width, units, bias=False), nn.BatchNorm1d(units), nn.ReLU()]
            width = units
        super().__init__(*layers, nn.Linear(width, n_outputs))


def convolution(n_inputs: int, n_outputs: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    """Make a convolution that keeps the size of the image, without bias, initialised after He et al. (2015)."""
    layer = nn.Conv2d(n_inputs, n_outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each after batch normalisation and ReLU, added to the (1x1 convolved) input."""

    def __init__(self, n_inputs: int, n_outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(n_inputs)
        self.conv1 = convolution(n_inputs, n_outputs, stride=stride)
        self.norm2 = nn.BatchNorm2d(n_outputs)
        self.conv2 = convolution(n_outputs, n_outputs)
        same = n_inputs == n_outputs and stride == 1
        self.shortcut = None if same else convolution(n_inputs, n_outputs, size=1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output of the block."""
        active = functional.relu(self.norm1(x))
        # Where the sizes change, the shortcut starts behind the first activation, as in the published
        # network.
        shortcut = x if self.shortcut is None else self.shortcut(active)
        return shortcut + self.conv2(functional.relu(self.norm2(self.conv1(active))))


class WRN16x4(nn.Sequential):
    """Wide ResNet (Zagoruyko and Komodakis 2016) of depth 16 and widening factor 4, without dropout.

    It has 2.7 million parameters for CIFAR-10 (2,748,890, as the layers add up to).

    Parameters
    ----------
    shape : sequence of int
        (channels, height, width), such as (3, 32, 32) or (1, 28, 28).
    n_outputs : int
        The number of classes.
    depth : int, default=16
        Number of layers, 6n + 4.
    widen_factor : int, default=4
        How many times wider than a plain ResNet.

    Examples
    --------
    >>> sum(p.numel() for p in WRN16x4((3, 32, 32), 10).parameters())
    2748890
    """

    def __init__(self, shape: int | Sequence[int], n_outputs: int, depth: int = 16, widen_factor: int = 4) -> None:
        if isinstance(shape, (int, np.integer)) or len(shape) != 3:
            raise ValueError(f"This network reads images: give (channels, height, width), got {shape!r}.")
        if shape[0] < 1 or min(shape[1:]) < SMALLEST_SIDE:
            raise ValueError(
                f"Images need a channel and sides of at least {SMALLEST_SIDE}, got {tuple(shape)!r}; note that the channels "
                "come first."
            )
        n_blocks, rest = divmod(depth - 4, 6)
        if rest or n_blocks < 1:
            raise ValueError(f"The depth of a Wide ResNet is 6n + 4 (10, 16, 22, ...), got {depth}.")
        layers: list[nn.Module] = [convolution(shape[0], 16)]
        width = 16
        for group, base in enumerate((16, 32, 64)):
            for block in range(n_blocks):
                layers.append(WideBlock(width, base * widen_factor, 2 if group > 0 and block == 0 else 1))
                width = base * widen_factor
        output = nn.Linear(width, n_outputs)
        nn.init.zeros_(output.bias)
        ending = (nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1), output)
        super().__init__(*layers, *ending)


NETWORKS: dict[str, Callable[..., nn.Module]] = {"linear": NaiveSVM, "mlp": ThreeLayerNet, "wrn16x4": WRN16x4}


def make_network(name: str, shape: int | Sequence[int], n_outputs: int, **parameters: Any) -> nn.Module:
    """Build a network by its name.

    Parameters
    ----------
    name : str
        A key of ``NETWORKS``.
    shape : int or sequence of int
        The number of inputs, or for images (channels, height, width).
    n_outputs : int
        The number of outputs.
    **parameters
        Handed to the network, such as ``hidden`` of the three-layer network.

    Examples
    --------
    >>> make_network("mlp", 20, 1, hidden=(8, 4))[-1]
    Linear(in_features=4, out_features=1, bias=True)
    >>> make_network("mpl", 20, 1)
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'mpl'. Did you mean 'mlp'? There are: linear, mlp, wrn16x4.
    """
    return pick(name, NETWORKS, "network")(shape, n_outputs, **parameters)


def recipe_optimizer(recipe: Any, parameters: Iterable[nn.Parameter], n_samples: int) -> torch.optim.Optimizer:
    """Make the optimizer of a recipe over the parameters of a model, with the l2 for ``n_samples`` rows."""
    groups = decay_groups(parameters, recipe.l2_for(n_samples))
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=recipe.learning_rate, fused=True)
    momentum = recipe.momentum
    return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=momentum, nesterov=momentum > 0, fused=True)


class OneToOne(nn.Module):
    """Multiply each input by a weight of its own, 1 at the start (Li, Chen and Wasserman 2016).

    Examples
    --------
    >>> OneToOne(2)(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_features))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply each input by its weight."""
        return x * self.weight

    def penalty(self, l1: float, l2: float) -> Tensor:
        """Compute ``l1 * |w|_1 + l2 * |w|_2^2``."""
        return l1 * self.weight.abs().sum() + l2 * torch.dot(self.weight, self.weight)


def fit_network(
    model: nn.Module,
    problem: Problem,
    recipe: Any,
    loss: Loss,
    *,
    penalty: Callable[[], Tensor] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Train a network in place with :func:`tamiz.torch.train_weights`, as a recipe says.

    The loss of a batch is the sum of the weighted losses over the *number* of its rows, with weights of mean 1 over all
    rows: so the average step follows the weighted mean over the table, however the classes fall into small batches.

    Parameters
    ----------
    model : nn.Module
        The network; trained on the device it lies on, left in evaluation mode.
    problem : Problem
        Inputs, targets as the loss takes them, and sample weights.
    recipe : Recipe
        Optimizer, rates, regularisation and length.
    loss : Loss
        The loss.
    penalty : callable or None, default=None
        What it returns is added to the loss of every batch.
    seed : int, default=0
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool, default=False
        Whether to draw a bar on stderr.

    Examples
    --------
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> from dataclasses import replace
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.paper.deep import NAIVE
    >>> recipe, hinge = replace(NAIVE.with_epochs(50), learning_rate=0.1, l2=0.0), get_loss("squared_hinge")
    >>> network = make_network("linear", 1, 1)
    >>> before = evaluate_loss(network, problem, hinge)
    >>> fit_network(network, problem, recipe, hinge)
    >>> evaluate_loss(network, problem, hinge) < before / 10
    True
    """
    n_samples, batch_size = problem.n_samples, recipe.batch_size_for(problem.n_samples)
    if min(batch_size, n_samples) < 2 and any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        raise ValueError("A network with batch normalisation needs batches of at least 2 rows; raise batch_size.")
    batches = TensorBatches(_tensors(problem, model), batch_size, seed, full_sizes)

    def weighted(outputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        value = (loss.torch(outputs, targets) * weights).mean()
        return value if penalty is None else value + penalty()

    train_weights(
        model,
        batches,
        weighted,
        optimizer=partial(recipe_optimizer, recipe, n_samples=n_samples),
        n_steps=recipe.epochs * len(batches.sizes),
        rates=recipe.rates(),
        seed=seed,
        progress=progress,
    )


def fit_linear(network: Any, problem: Problem, recipe: Any, loss: Loss, seed: int = 0) -> None:
    """Train a linear network in place with the compiled engine, as a recipe with Adam says.

    Examples
    --------
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> from dataclasses import replace
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.paper.deep import NAIVE
    >>> network = nn.Linear(1, 1)
    >>> fit_linear(network, problem, replace(NAIVE, learning_rate=0.1, l2=0.0), get_loss("squared_hinge"))
    >>> network.weight.item() > 0.5
    True
    """
    n_samples, n_features = problem.X.shape
    batch_size, l2 = recipe.batch_size_for(n_samples), recipe.l2_for(n_samples)
    schedule = Schedule(
        learning_rate=recipe.learning_rate,
        l2=l2,
        batch_size=batch_size,
        warmup_steps=0,
        ramp_steps=1,
        refinement_steps=recipe.epochs * -(-n_samples // batch_size),
        refinement_l2=l2,
        refinement_rates=tuple(recipe.learning_rate_at(epoch) for epoch in range(recipe.epochs)),
        epsilon=1e-8,
    )
    model = LinearEngine().fit(problem, Rule(n_features, n_features, "hard"), loss, schedule, seed=seed).model
    with torch.no_grad():
        network.weight.copy_(torch.as_tensor(model.coef))
        network.bias.copy_(torch.as_tensor(model.intercept))


def _tensors(problem: Problem, model: nn.Module) -> list[Tensor]:
    """Put rows, targets and weights on the device of a model."""
    device = next(model.parameters()).device
    arrays = (problem.dense(), problem.targets, problem.unit_weights())
    return [torch.as_tensor(array, dtype=torch.float32, device=device) for array in arrays]


@torch.no_grad()
def evaluate_loss(model: nn.Module, problem: Problem, loss: Loss, batch_size: int = 1024) -> float:
    """Compute the weighted mean loss of a network over a table, in evaluation mode and without any penalty.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> problem = Problem(np.array([[1.0], [2.0]]), np.array([[1.0], [-1.0]]))
    >>> evaluate_loss(make_network("linear", 1, 1), problem, get_loss("squared_hinge"))
    1.0
    """
    rows, targets, weights = _tensors(problem, model)
    model.eval()
    pieces = torch.arange(problem.n_samples, device=rows.device).split(batch_size)
    total = sum(float((loss.torch(model(rows[piece]), targets[piece]) * weights[piece]).sum()) for piece in pieces)
    return total / problem.n_samples


def input_saliency(
    model: nn.Module, problem: Problem, loss: Loss, classes: np.ndarray | None = None, batch_size: int = 512
) -> np.ndarray:
    """Compute the share of each input in the saliency of a trained network.

    For each sample the absolute gradient of the gain with respect to the input; summed over the samples of a class and
    divided by the total of the class, so that each class counts alike however many samples it has; summed over the
    classes and divided by the total.

    Parameters
    ----------
    model : nn.Module
        The trained network; used in evaluation mode, parameters untouched.
    problem : Problem
        Inputs, and targets as the loss takes them.
    loss : Loss
        The loss the network was trained with.
    classes : ndarray of int or None, default=None
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
    >>> problem = Problem(np.zeros((4, 2)), np.ones((4, 1)))
    >>> input_saliency(net, problem, get_loss("squared_hinge")).round(4).tolist()
    [0.75, 0.25]
    """
    rows = _tensors(problem, model)[0]
    targets = torch.as_tensor(problem.targets, device=rows.device)
    group = torch.zeros(len(rows), dtype=torch.int64) if classes is None else torch.as_tensor(classes)
    totals = torch.zeros(int(group.max()) + 1, rows.shape[1], dtype=torch.float64)
    model.eval()
    for index in torch.arange(len(rows), device=rows.device).split(batch_size):
        batch = rows[index].requires_grad_()
        (gradient,) = torch.autograd.grad(loss.gain(model(batch), targets[index]).sum(), batch)
        totals.index_add_(0, group[index.cpu()], gradient.abs().to("cpu", torch.float64))
    sums, tiny = totals.numpy(), np.finfo(float).tiny
    share = (sums / np.maximum(sums.sum(axis=1, keepdims=True), tiny)).sum(axis=0)
    return share / max(share.sum(), tiny)
