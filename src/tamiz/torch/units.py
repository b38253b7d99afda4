"""Prune several masks at once: on inputs, on hidden units and on channels, of models with any arguments."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tamiz.torch._layers import NORMS, keep_inputs, keep_outputs, replace_part
from tamiz.torch._masks import find_masks
from tamiz.torch.mask import FeatureMask

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
