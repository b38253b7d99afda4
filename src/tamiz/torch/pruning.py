"""Turn a model with a closed mask into a smaller one that reads the selected values only."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch import nn

from tamiz.torch._layers import replace_part
from tamiz.torch._masks import find_mask
from tamiz.torch.mask import FeatureMask
from tamiz.torch.shrink import find_folded_layer
from tamiz.torch.units import PrunedNetwork, prune_units


@dataclass(frozen=True)
class PruneSpec:
    """Description of how a model was pruned; kept beside the weights when a pruned model is saved."""

    indices: tuple[int, ...]
    """The selected features, places in the flattened mask, upwards."""
    mask_shape: tuple[int, ...]
    sample_shape: tuple[int, ...]
    """Shape of one input of the model that was pruned."""
    layer: str | None
    """The ``nn.Linear`` whose columns are cut; None: the values are scattered into an input of the old shape."""
    keeps_mask: bool
    """Whether zeros have to be multiplied in once more, because something stands between the input and the mask."""


class Scatter(nn.Module):
    """Put values at given positions of an input that is zero everywhere else.

    Parameters
    ----------
    positions : tensor of int
        Places in the flattened sample.
    shape : sequence of int
        Shape of a sample.

    Examples
    --------
    >>> import torch
    >>> Scatter(torch.tensor([1, 2]), (2, 2))(torch.tensor([[7.0, 8.0]])).tolist()
    [[[0.0, 7.0], [8.0, 0.0]]]
    """

    def __init__(self, positions: torch.Tensor, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = [int(size) for size in shape]  # a list: torch.jit.script takes no tuple as a shape
        # Where each place of the sample takes its value from; one past the values there is a zero. A gather, not a
        # scatter: it exists in every format that networks are exported to.
        source = torch.full((math.prod(self.shape),), positions.numel(), dtype=torch.int64, device=positions.device)
        source[positions] = torch.arange(positions.numel(), device=positions.device)
        self.register_buffer("source", source)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the whole samples."""
        padded = torch.cat([values, torch.zeros_like(values[..., :1])], dim=-1)
        return padded.index_select(-1, self.source).unflatten(-1, self.shape)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        """Return the shape of a sample."""
        return f"shape={tuple(self.shape)}"


class _FixedMask(nn.Module):
    """``x * support``."""

    def __init__(self, support: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("support", support)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.support  # type: ignore[operator]


def _check_width(values: torch.Tensor, n_values: int) -> None:
    if not torch.jit.is_tracing() and values.shape[-1] != n_values:  # a trace cannot hold a decision
        raise ValueError(f"this model reads {n_values} values per sample, got {values.shape[-1]}")


torch.fx.wrap("_check_width")  # torch.fx cannot trace a decision, and calls the function as it is


class PrunedModel(nn.Module):
    """Model that reads the selected values only; :func:`prune` returns it.

    Parameters
    ----------
    front : nn.Module
        What stands before the network: nothing, or a :class:`Scatter`.
    network : nn.Module
        The network without its mask.
    spec : PruneSpec
        What was cut.

    Attributes
    ----------
    indices : tensor of int
        The selected features, in the order of the inputs.
    n_values : int
        How many values one sample has now.
    """

    # No annotations of buffers: torch.jit.script cannot read those of a module that postpones them.

    def __init__(self, front: nn.Module, network: nn.Module, spec: PruneSpec) -> None:
        super().__init__()
        self.front, self.network, self.spec = front, network, spec
        self.n_values = _positions(spec).numel()
        self.register_buffer("indices", torch.tensor(spec.indices, dtype=torch.int64))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the predictions of the whole model, from the selected values alone."""
        _check_width(values, self.n_values)
        return self.network(self.front(values))

    def select(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values that this model reads, out of whole inputs."""
        positions = _positions(self.spec).to(x.device)
        if len(self.spec.sample_shape) == 1:
            return x.index_select(-1, positions)
        return x.flatten(1).index_select(-1, positions)

    def extra_repr(self) -> str:
        """Return how many values are read."""
        return f"n_values={self.n_values}"


def prune(
    model: nn.Module,
    example: torch.Tensor | None = None,
    *,
    example_args: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> PrunedModel | PrunedNetwork:
    """Return a module that takes only the selected values and predicts what the masked model predicts in evaluation mode.

    Where the masked input goes straight into an ``nn.Linear``, that layer is cut to the selected columns; in front of
    anything else the values are put back into an input that is zero everywhere else. The result shares no memory with
    ``model`` and is compared with it on the example before it is handed out.

    Parameters
    ----------
    model : nn.Module
        A model that holds one :class:`FeatureMask`, closed; several, or one on hidden units or channels, with
        ``example_args``.
    example : tensor or None, default=None
        A batch of inputs as the model takes them. Needed where one input is not of the shape of the mask: for a mask of
        shape ``(1, 28, 28)`` before colour images, or ``(n_channels, 1)`` before series.
    example_args : sequence or None, default=None
        All arguments of an example call, for models with several inputs, several masks, or masks on hidden units and
        channels: see :func:`~tamiz.torch.units.prune_units`.
    example_kwargs : mapping of str to object, default=None
        Keyword arguments of that call.

    Returns
    -------
    PrunedModel, or PrunedNetwork with ``example_args`` or ``example_kwargs``
        Takes ``(batch, n_values)``: for a plain mask the M columns in their order. For a mask that broadcasts, every value
        that it lets through: with ``(1, 28, 28)`` before three channels the selected pixels of the first channel, then
        those of the second and of the third; :meth:`PrunedModel.select` takes them out of whole inputs.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask, prune
    >>> mask = FeatureMask(4, 4)  # all selected: closed from the start
    >>> model = nn.Sequential(mask, nn.Linear(4, 1)).eval()
    >>> x = torch.randn(3, 4)
    >>> torch.allclose(prune(model)(x), model(x))
    True
    """
    if example_args is not None or example_kwargs is not None:
        if example is not None:
            raise ValueError("give example, or example_args and example_kwargs, not both")
        return prune_units(model, () if example_args is None else example_args, example_kwargs)
    mask = _closed_mask(model)
    if example is None:
        example = _random_example(mask)
    indices = tuple(mask.support().reshape(-1).nonzero().flatten().tolist())
    with torch.random.fork_rng(devices=[example.device] if example.device.type == "cuda" else []):
        expected = _predict(model, example, "the model does not run on it")
        if not _all_close(expected, _predict(model, example, "")):
            raise ValueError(
                "the model gives other outputs for the same input and torch seed in evaluation mode, so the pruned model "
                "cannot be compared with it; switch off what is random, or prune the part that is not"
            )
        for layer, keeps_mask in _ways(model, mask, example):
            shape = (mask.n_features,) if layer or _is_plain(mask, example) else tuple(example.shape[1:])
            spec = PruneSpec(indices, mask.shape, shape, layer, keeps_mask)
            try:
                pruned = assemble(model, spec)
            except RuntimeError:  # the mask does not broadcast against the input: it gates something else
                continue
            if _agrees(pruned, example, expected):
                return pruned.train(model.training)
    raise ValueError(
        "the model without the other inputs does not predict the same: it reads its input past the mask, mixes it "
        "before the mask, or the mask gates something else than the input; build the small network by hand"
    )


def _closed_mask(model: nn.Module) -> FeatureMask:
    mask = find_mask(model)
    if not mask.closed:
        raise ValueError(
            f"the mask is not closed yet: {mask.n_alive} features are alive, {mask.n_features_to_select} are to be "
            "selected; train on until mask.closed, or call mask.finalize()"
        )
    return mask


def _random_example(mask: FeatureMask) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, *mask.shape, generator=generator).to(mask.gamma.device, mask.gamma.dtype)


def _is_plain(mask: FeatureMask, example: torch.Tensor) -> bool:
    """Check for a vector of features in the last dimension; the dimensions before it are batches."""
    return len(mask.shape) == 1 and example.shape[-1] == mask.n_features


def _predict(model: nn.Module, x: torch.Tensor, complaint: str) -> Any:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            torch.manual_seed(0)  # a model that draws random numbers gets the same each time
            return model(x)
    except Exception as error:
        raise ValueError(
            f"prune tries the model on an input of shape {tuple(x.shape)}, and {complaint} ({error}); "
            "give a batch of your inputs as example"
        ) from error
    finally:
        for module, mode in modes:
            module.training = mode


def _ways(model: nn.Module, mask: FeatureMask, example: torch.Tensor) -> list[tuple[str | None, bool]]:
    """Return what can be tried, the best first: the layer to cut, and whether zeros are multiplied in once more."""
    layer = find_folded_layer(model, mask, example)
    names = [name for name, module in model.named_modules() if module is layer]
    return [(name, False) for name in names] + [(None, False), (None, True)]


def _agrees(pruned: PrunedModel, example: torch.Tensor, expected: Any) -> bool:
    try:
        found = _predict(pruned, pruned.select(example), "")
    except (ValueError, RuntimeError, IndexError):
        return False
    return _all_close(expected, found)


def _all_close(expected: Any, found: Any) -> bool:
    if not isinstance(expected, (tuple, list)):
        expected, found = (expected,), (found,)
    return all(_close(a, b) for a, b in zip(expected, found) if isinstance(a, torch.Tensor))


def _close(a: torch.Tensor, b: Any) -> bool:
    if not isinstance(b, torch.Tensor) or a.shape != b.shape:
        return False
    scale = float(a.abs().max()) if a.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * max(1.0, scale), equal_nan=True)


def assemble(model: nn.Module, spec: PruneSpec) -> PrunedModel:
    """Cut a copy of ``model`` as ``spec`` says."""
    network = copy.deepcopy(model)
    device = next(network.parameters()).device
    mask_name = next(name for name, module in network.named_modules() if isinstance(module, FeatureMask))
    support = torch.zeros(math.prod(spec.mask_shape), device=device)
    support[list(spec.indices)] = 1.0
    stand_in = _FixedMask(support.reshape(spec.mask_shape)) if spec.keeps_mask else nn.Identity()
    network = replace_part(network, mask_name, stand_in)
    if spec.layer is None:
        front: nn.Module = Scatter(_positions(spec).to(device), spec.sample_shape)
    else:
        front = nn.Identity()
        layer = network.get_submodule(spec.layer)
        assert isinstance(layer, nn.Linear)
        network = replace_part(network, spec.layer, _cut(layer, spec.indices))
    return PrunedModel(front, network, spec).to(device)


def _cut(layer: nn.Linear, indices: Sequence[int]) -> nn.Linear:
    weight = layer.weight
    has_bias = layer.bias is not None
    small = nn.Linear(len(indices), layer.out_features, bias=has_bias, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        small.weight.copy_(weight[:, list(indices)])
        if has_bias:
            small.bias.copy_(layer.bias)
    return small


def _positions(spec: PruneSpec) -> torch.Tensor:
    """Return the places in a flattened sample of all values that the mask lets through."""
    support = torch.zeros(math.prod(spec.mask_shape), dtype=torch.bool)
    support[list(spec.indices)] = True
    shape = spec.sample_shape
    if math.prod(shape) == support.numel():
        return support.nonzero().flatten()
    return support.reshape(spec.mask_shape).expand(shape).reshape(-1).nonzero().flatten()
