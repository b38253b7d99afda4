"""Turn a model with a closed mask into a smaller one that reads the selected values only."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch import nn

from tamiz.torch.mask import FeatureMask, find_mask, find_masks
from tamiz.torch.shrink import find_folded_layer

#: Layers with a number for each unit, which goes when the unit goes.
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def replace_part(model: nn.Module, name: str, new: nn.Module) -> nn.Module:
    """Return ``model`` with one of its parts replaced, wherever it is used.

    Examples
    --------
    >>> replace_part(nn.Sequential(nn.ReLU(), nn.Flatten()), "0", nn.Tanh())
    Sequential(
      (0): Tanh()
      (1): Flatten(start_dim=1, end_dim=-1)
    )
    """
    old = model.get_submodule(name)
    new.training = old.training
    if old is model:
        return new
    for module in list(model.modules()):
        for child_name, child in list(module._modules.items()):
            if child is old:
                module._modules[child_name] = new
    return model


def keep_outputs(layer: nn.Module, kept: torch.Tensor) -> nn.Module:
    """Return a linear layer, convolution or normalisation with the ``kept`` of its units.

    Examples
    --------
    >>> keep_outputs(nn.Linear(3, 4), torch.tensor([0, 2]))
    Linear(in_features=3, out_features=2, bias=True)
    """
    size_name = "out_features" if isinstance(layer, nn.Linear) else "out_channels"
    size_name = "num_features" if isinstance(layer, NORMS) else size_name
    names = ("weight", "bias", "running_mean", "running_var")
    found = {name: getattr(layer, name, None) for name in names}
    parts = {name: tensor.index_select(0, kept) for name, tensor in found.items() if tensor is not None}
    return _narrowed(layer, {size_name: kept.numel()}, parts)


def keep_inputs(layer: nn.Module, kept: torch.Tensor) -> nn.Module:
    """Return a linear layer or convolution that reads the ``kept`` of its inputs.

    Examples
    --------
    >>> keep_inputs(nn.Linear(3, 4), torch.tensor([0, 2]))
    Linear(in_features=2, out_features=4, bias=True)
    """
    size_name = "in_features" if isinstance(layer, nn.Linear) else "in_channels"
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    return _narrowed(layer, {size_name: kept.numel()}, {"weight": weight.index_select(1, kept)})


def _narrowed(layer: nn.Module, sizes: dict[str, int], tensors: dict[str, torch.Tensor]) -> nn.Module:
    """Return a copy of a layer with other sizes and some of its weights."""
    small = copy.deepcopy(layer)
    for name, size in sizes.items():
        setattr(small, name, size)
    for name, tensor in tensors.items():
        if isinstance(getattr(layer, name), nn.Parameter):
            trained = getattr(layer, name).requires_grad
            setattr(small, name, nn.Parameter(tensor.detach().clone(), requires_grad=trained))
        else:
            setattr(small, name, tensor.detach().clone())
    return small


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
        channels: see :func:`~tamiz.torch.pruning.prune_units`.
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


#: Layers that treat every unit by itself and give 0 for 0: behind a mask, units that it closes stay away.
_ZERO_STAYS = (
    nn.Identity, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh,
    nn.Hardtanh, nn.Hardswish, nn.Softsign, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
)  # fmt: skip
#: Layers before a mask through which its units can be followed.
_UNIT_BY_UNIT = (*_ZERO_STAYS, *NORMS, nn.Sigmoid, nn.Softplus, nn.Hardsigmoid, nn.LogSigmoid)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass
class _Call:
    """One use of a layer in a forward."""

    name: str
    module: nn.Module
    input: torch.Tensor
    output: torch.Tensor


@dataclass
class _Plan:
    """What is done about one mask."""

    name: str
    kept: torch.Tensor
    """Numbers of the entries that are kept."""
    argument: int | str | None = None
    """Which argument of the model it gates; None for what lies inside."""
    scatter: tuple[int, ...] | None = None
    """Shape of the whole sample, where the values are put back into zeros."""
    outputs: list[str] = field(default_factory=list)
    """Layers whose units are cut: the layer before the mask, and normalisations between."""
    inputs: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    """Layers behind the mask, and which of their inputs stay."""


class PrunedNetwork(nn.Module):
    """Network without what its masks closed; :func:`prune_units` returns it.

    Parameters
    ----------
    network : nn.Module
        The network, cut.
    selected : mapping of int or str to tensor of int
        Places in a flattened sample of the values that are read, for each argument (by position or name) that a mask gates.

    Attributes
    ----------
    n_cut : int
        Masks whose units were cut out; the others multiply by ones and zeros.
    """

    def __init__(self, network: nn.Module, selected: Mapping[int | str, torch.Tensor], n_cut: int) -> None:
        super().__init__()
        self.network, self.n_cut = network, n_cut
        self._arguments = list(selected)
        for number, positions in enumerate(selected.values()):
            self.register_buffer(f"positions_{number}", positions)

    @property
    def selected(self) -> dict[int | str, torch.Tensor]:
        """Return the places of the values that are read, for each argument that a mask gates."""
        return {name: getattr(self, f"positions_{number}") for number, name in enumerate(self._arguments)}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the predictions of the whole model, from the selected values of each gated argument."""
        return self.network(*args, **kwargs)

    def select(self, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return whole arguments cut to what this network reads."""
        args, kwargs = list(args), dict(kwargs)  # type: ignore[assignment]
        for name, positions in self.selected.items():
            holder: Any = args if isinstance(name, int) else kwargs
            holder[name] = holder[name].flatten(1).index_select(1, positions)
        return tuple(args), kwargs


class _PutBack(nn.Module):
    """Put selected values into a sample that is zero everywhere else."""

    positions: torch.Tensor

    def __init__(self, positions: torch.Tensor, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.register_buffer("positions", positions)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        whole = values.new_zeros(values.shape[0], torch.Size(self.shape).numel())
        return whole.index_copy(1, self.positions, values).unflatten(1, self.shape)


class _Multiply(nn.Module):
    """Multiply by a fixed mask."""

    support: torch.Tensor

    def __init__(self, support: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("support", support)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.support


def prune_units(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> PrunedNetwork:
    """Return a network without what the masks of a model closed, which predicts the same.

    Units behind an ``nn.Linear`` or a convolution are cut out of that layer, of batch normalisations up to the mask and of the
    layers that read them. An argument that a mask gates becomes the selected values. What cannot be cut, because something
    else reads it, stays and is multiplied by ones and zeros. Each cut is checked on the example.

    Parameters
    ----------
    model : nn.Module
        Holds one or more :class:`FeatureMask`, all closed.
    args : sequence
        Arguments of an example call; tensors have the batch in front.
    kwargs : mapping of str to object, default=None
        Keyword arguments of that call.

    Returns
    -------
    PrunedNetwork

    Examples
    --------
    >>> inner = FeatureMask(6, 6)  # closed from the start
    >>> model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), inner, nn.Linear(6, 1)).eval()
    >>> x = torch.randn(3, 4)
    >>> torch.allclose(prune_units(model, (x,))(x), model(x))
    True
    """
    kwargs = dict(kwargs or {})
    args = tuple(args)
    masks = find_masks(model)
    for name, mask in masks.items():
        if not mask.closed:
            raise ValueError(
                f"the mask {name!r} is not closed yet; train on until mask.closed, or call mask.finalize()"
            )
    with _evaluating(model), torch.no_grad():
        expected, calls = _record_calls(model, args, kwargs)
        accepted: list[_Plan] = [_Plan(name, _kept(mask)) for name, mask in masks.items()]
        best = _assemble(model, accepted, set())
        cut: set[str] = set()
        for number, (name, mask) in enumerate(masks.items()):
            for plan in _plans(name, mask, calls, args, kwargs):
                trial = [*accepted[:number], plan, *accepted[number + 1 :]]
                try:
                    found = _assemble(model, trial, {*cut, name})
                    small_args, small_kwargs = found.select(*args, **kwargs)
                    agrees = _same(expected, found.eval()(*small_args, **small_kwargs))
                except (RuntimeError, ValueError, IndexError, AssertionError):
                    continue
                if agrees:
                    best, accepted, cut = found, trial, {*cut, name}
                    break
        small_args, small_kwargs = best.select(*args, **kwargs)
        if not _same(expected, best.eval()(*small_args, **small_kwargs)):
            raise ValueError(
                "the model gives other outputs for the same input in evaluation mode, so the pruned network cannot be "
                "compared with it; switch off what is random"
            )
    return best.train(model.training)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _kept(mask: FeatureMask) -> torch.Tensor:
    return mask.support().reshape(-1).nonzero().flatten()


def _record_calls(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[_Call]]:
    """Run the model once; return what it gives and which layer took which tensor."""
    calls: list[_Call] = []
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, FeatureMask) or not list(module.children()):

            def note(module: nn.Module, inputs: Any, output: Any, name: str = name) -> None:
                # A layer that hands its input on, as dropout does in evaluation mode, is as if it were not there.
                plain = len(inputs) == 1 and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor)
                if plain and output is not inputs[0]:
                    calls.append(_Call(name, module, inputs[0], output))

            handles.append(module.register_forward_hook(note))
    try:
        return model(*args, **kwargs), calls
    finally:
        for handle in handles:
            handle.remove()


def _plans(
    name: str, mask: FeatureMask, calls: list[_Call], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[_Plan]:
    """Yield what can be tried for a mask, the best first."""
    uses = [call for call in calls if call.name == name]
    if len(uses) != 1:
        return
    (use,) = uses
    kept = _kept(mask)
    named: dict[int | str, Any] = {}
    named.update(enumerate(args))
    named.update(kwargs)
    argument = next((key for key, value in named.items() if value is use.input), None)
    behind = _behind(mask, use, calls)
    if argument is not None:
        if behind is not None and len(mask.shape) == 1 and use.input.dim() == 2:
            yield _Plan(name, kept, argument, inputs=behind)
        yield _Plan(name, kept, argument, scatter=tuple(use.input.shape[1:]))
        return
    before = _before(use, calls)
    if before is not None and behind is not None:
        yield _Plan(name, kept, outputs=before, inputs=behind)


def _before(use: _Call, calls: list[_Call]) -> list[str] | None:
    """Return the layers whose units the mask gates, from the mask back to a linear layer or a convolution."""
    found: list[str] = []
    wanted = use.input
    while True:
        makers = [call for call in calls if call.output is wanted]
        readers = [call for call in calls if call.input is wanted]
        if len(makers) != 1 or len(readers) != 1:
            return None
        (maker,) = makers
        if isinstance(maker.module, (nn.Linear, *_CONVOLUTIONS)):
            return [*found, maker.name] if getattr(maker.module, "groups", 1) == 1 else None
        if not isinstance(maker.module, _UNIT_BY_UNIT):
            return None
        if isinstance(maker.module, NORMS):
            found.append(maker.name)
        wanted = maker.input


def _behind(mask: FeatureMask, use: _Call, calls: list[_Call]) -> list[tuple[str, torch.Tensor]] | None:
    """Return the layers that read the masked units, and which of their inputs stay; None if one cannot be cut."""
    found: list[tuple[str, torch.Tensor]] = []
    support = mask.support()
    waiting = [(use.output, support.expand(use.output.shape[1:]) if support.dim() < use.output.dim() else support)]
    while waiting:
        tensor, alive = waiting.pop()
        readers = [call for call in calls if call.input is tensor]
        if not readers:
            return None
        for reader in readers:
            if isinstance(reader.module, nn.Linear) and tensor.dim() == 2:
                found.append((reader.name, alive.reshape(-1).nonzero().flatten()))
            elif isinstance(reader.module, _CONVOLUTIONS) and reader.module.groups == 1 and tensor.dim() > 2:
                channels = alive.flatten(1).any(1)
                if not torch.equal(alive, channels.reshape(-1, *[1] * (alive.dim() - 1)).expand(alive.shape)):
                    return None
                found.append((reader.name, channels.nonzero().flatten()))
            elif isinstance(reader.module, nn.Flatten):
                waiting.append((reader.output, alive.reshape(-1)))
            elif isinstance(reader.module, _ZERO_STAYS):
                shape = reader.output.shape[1:]
                channels = alive if alive.dim() == 1 else alive.flatten(1).any(1)
                waiting.append((reader.output, channels.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)))
            else:
                return None
    return found


def _assemble(model: nn.Module, plans: list[_Plan], cut: set[str]) -> PrunedNetwork:
    """Cut a copy of the model as planned."""
    network = copy.deepcopy(model)
    selected: dict[int | str, torch.Tensor] = {}
    for plan in plans:
        mask = network.get_submodule(plan.name)
        assert isinstance(mask, FeatureMask)
        stand_in: nn.Module = nn.Identity()
        if plan.name not in cut:
            stand_in = _Multiply(mask.support().to(mask.gamma.dtype))
        elif plan.argument is not None:
            shape = mask.shape if plan.scatter is None else plan.scatter
            positions = mask.support().expand(shape).reshape(-1).nonzero().flatten()
            if plan.argument in selected:
                raise ValueError("an argument is gated by two masks")
            selected[plan.argument] = positions
            if plan.scatter is not None:
                stand_in = _PutBack(positions, shape)
        network = replace_part(network, plan.name, stand_in)
        for name in plan.outputs if plan.name in cut else ():
            network = replace_part(network, name, keep_outputs(network.get_submodule(name), plan.kept))
        for name, kept in plan.inputs if plan.name in cut else ():
            network = replace_part(network, name, keep_inputs(network.get_submodule(name), kept))
    return PrunedNetwork(network, selected, len(cut))


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, Mapping):
        return set(expected) == set(found) and all(_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, (tuple, list)):
        return len(expected) == len(found) and all(_same(a, b) for a, b in zip(expected, found))
    if not isinstance(expected, torch.Tensor):
        return True
    if not isinstance(found, torch.Tensor) or expected.shape != found.shape:
        return False
    scale = float(expected.abs().max()) if expected.numel() else 0.0
    return torch.allclose(expected, found, rtol=1e-4, atol=1e-5 * max(1.0, scale), equal_nan=True)
