"""Cut a network with closed masks down to what the masks let through.

Which channels are dead is measured, not read off the layers: the model runs once with what a mask holds back replaced by NaN,
and once with everything else replaced by NaN. A channel of a layer's input that is NaN in the first run, not in the second, and
the same number for all samples of the example depends on what is held back alone. So it does not matter whether a network is
written in modules or functions, or which way a tensor takes to a layer. Each cut is compared with the model before it is kept.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.fx
from torch import nn
from torch.utils._pytree import tree_flatten_with_path, tree_map_only

from tamiz.torch.batches import Standardize
from tamiz.torch.mask import FeatureMask, find_masks, main_parameter

_LINEAR = (-1, {"inputs": "in_features", "outputs": "out_features"})
_CONVOLUTION = (1, {"inputs": "in_channels", "outputs": "out_channels"})
_RECURRENT = (-1, {"inputs": "input_size"})
_NORM = (1, {"units": "num_features"})
#: Layers that can be cut: the dimension of the channels in their input or output (1: behind the batch), and which sides can be
#: cut, with the attribute that counts them. Units are channels that a layer has numbers for and leaves apart.
LAYERS: dict[type, tuple[int, dict[str, str]]] = {
    nn.Linear: _LINEAR, nn.LSTM: _RECURRENT, nn.GRU: _RECURRENT, nn.RNN: _RECURRENT,
    nn.Conv1d: _CONVOLUTION, nn.Conv2d: _CONVOLUTION, nn.Conv3d: _CONVOLUTION,
    nn.Embedding: (-1, {"outputs": "embedding_dim"}), nn.PReLU: (1, {"units": "num_parameters"}),
    nn.BatchNorm1d: _NORM, nn.BatchNorm2d: _NORM, nn.BatchNorm3d: _NORM, nn.InstanceNorm1d: _NORM, nn.InstanceNorm2d: _NORM,
    Standardize: (-1, {"units": "num_features"}),
}  # fmt: skip

Change = Callable[[torch.Tensor], torch.Tensor]


class MaskPlan(NamedTuple):
    """What becomes of one mask; plain lists and numbers, so that JSON can hold it.

    Attributes
    ----------
    name : str
        Name of the mask in the model.
    shape, kept : sequence of int
        Its shape, and the numbers of the entries that are kept, in the flattened mask.
    place : str
        What stands in its place: "nothing", "take" (the kept entries are taken out) or "multiply" (by ones and zeros).
    arguments : sequence of tuples
        Arguments of the model that the mask gates: the path in ``(args, kwargs)``, the sizes of the dimensions that the mask
        chooses from, how many dimensions come behind these, and whether the network wants all places, the others as zeros.
    cuts : sequence of tuples
        Layers that are cut: the name, the side ("inputs", "outputs" or "units"), the channels that stay, and what the inputs
        that go have been for all samples, unless it was zero; that is folded into the bias.
    """

    name: str
    shape: Sequence[int]
    kept: Sequence[int]
    place: str = "multiply"
    arguments: Sequence[Any] = ()
    cuts: Sequence[Any] = ()


# ---- parts of a pruned network -----------------------------------------------------------------------------------------


def core_of(shape: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Find the sizes from the first to the last dimension of a mask that is no 1, and how many ones come behind.

    Examples
    --------
    >>> core_of((6, 1)), core_of((1, 28, 28)), core_of((20,)), core_of((1, 1))
    (((6,), 1), ((28, 28), 0), ((20,), 0), ((1,), 0))
    """
    wide = [i for i, size in enumerate(shape) if size > 1] or [len(shape) - 1]
    return tuple(shape[wide[0] : wide[-1] + 1]), len(shape) - 1 - wide[-1]


def _check_core(x: torch.Tensor, core: list[int], behind: int) -> None:
    start, found = x.dim() - behind - len(core), list(x.shape)
    if not torch.jit.is_tracing() and (start < 0 or found[start : start + len(core)] != core):
        raise ValueError(f"the features are {core} values in dimension {start - x.dim()} of the input, got {found}")


torch.fx.wrap("_check_core")  # neither torch.fx nor a trace can hold a decision


class Take(nn.Module):
    """Take the kept entries out of the dimensions that a mask chooses from.

    Examples
    --------
    >>> Take([1, 2], (2, 2), 0)(torch.arange(8.0).reshape(2, 2, 2)).tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """

    def __init__(self, kept: Sequence[int], core: Sequence[int], behind: int) -> None:
        super().__init__()
        self.core, self.behind = [int(size) for size in core], behind  # a list: torch.jit.script takes no tuple
        self.register_buffer("kept", torch.tensor(list(kept), dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take the entries, in one dimension."""
        _check_core(x, self.core, self.behind)
        start = x.dim() - self.behind - len(self.core)
        flat = x.flatten(start, x.dim() - self.behind - 1) if len(self.core) > 1 else x
        return flat.index_select(start, self.kept.to(x.device))  # type: ignore[arg-type]


class Scatter(nn.Module):
    """Put values at their places in an input that is zero everywhere else.

    Examples
    --------
    >>> import torch
    >>> Scatter([1, 2], (2, 2), 0)(torch.tensor([[7.0, 8.0]])).tolist()
    [[[0.0, 7.0], [8.0, 0.0]]]
    """

    def __init__(self, kept: Sequence[int], core: Sequence[int], behind: int) -> None:
        super().__init__()
        self.core, self.dim = [int(size) for size in core], -1 - behind
        # Where each place takes its value from; one past the values there is a zero. A gather, not a scatter: it exists in
        # every format that networks are exported to.
        source = torch.full((math.prod(self.core),), len(kept), dtype=torch.int64)
        source[list(kept)] = torch.arange(len(kept))
        self.register_buffer("source", source, persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Put the values back into whole samples."""
        dim = values.dim() + self.dim
        padded = torch.cat([values, torch.zeros_like(values.narrow(dim, 0, 1))], dim=dim)
        return padded.index_select(dim, self.source).unflatten(dim, self.core)  # type: ignore[arg-type]


class PrunedNetwork(nn.Module):
    """Network without what its masks closed; :func:`prune` returns it.

    Parameters
    ----------
    network : nn.Module
        The network, cut.
    plans : sequence of MaskPlan
        What was cut.

    Attributes
    ----------
    n_cut : int
        Masks for which layers were cut; the others multiply by ones and zeros.
    """

    def __init__(self, network: nn.Module, plans: Sequence[MaskPlan]) -> None:
        super().__init__()
        self.network, self.plans = network, tuple(plans)
        self.n_cut = sum(bool(plan.cuts) for plan in plans)
        self._gated: list[Any] = [(plan.kept, *argument) for plan in plans for argument in plan.arguments]
        self.fronts = nn.ModuleList(
            Scatter(kept, core, behind) if put_back else nn.Identity()
            for kept, _, core, behind, put_back in self._gated
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Predict as the whole model does, from the selected values of each gated argument."""
        for (_, path, *_), front in zip(self._gated, self.fronts):
            args, kwargs = _changed((args, kwargs), path, front)
        return self.network(*args, **kwargs)

    def select(self, *args: Any, **kwargs: Any) -> Any:
        """Cut whole arguments to what this network reads; return ``(args, kwargs)``."""
        for kept, path, core, behind, _ in self._gated:
            args, kwargs = _changed((args, kwargs), path, Take(kept, core, behind))
        return args, kwargs


class PrunedModel(PrunedNetwork):
    """Pruned network of one input; :func:`prune` returns it.

    Attributes
    ----------
    indices : tensor of int
        The selected features, in the order of the inputs.
    n_values : int
        How many there are.
    """

    # No annotations of buffers: torch.jit.script cannot read those of a module that postpones them.

    def __init__(self, network: nn.Module, plans: Sequence[MaskPlan]) -> None:
        super().__init__(network, plans)
        kept, behind = next(((list(kept), behind) for kept, _, _, behind, _ in self._gated), ([], 0))
        self.front = self.fronts[0] if kept else nn.Identity()
        self.n_values, self.behind = len(kept), behind
        self.register_buffer("indices", torch.tensor(kept, dtype=torch.int64), persistent=False)

    def forward(self, values: torch.Tensor) -> Any:
        """Predict as the whole model does, from the selected values alone."""
        if self.n_values > 0:
            _check_core(values, [self.n_values], self.behind)
        return self.network(self.front(values))

    def select(self, x: torch.Tensor) -> torch.Tensor:
        """Take the values that this model reads out of whole inputs.

        What a mask of shape ``(n_channels, 1)`` or ``(n_channels, 1, 1)`` leaves free, as the length of a series, may have
        any size.
        """
        return super().select(x)[0][0]

    def extra_repr(self) -> str:
        """Tell how many values are read."""
        return f"n_values={self.n_values}"


def _changed(tree: Any, path: Sequence[int | str], change: Callable[[Any], Any]) -> Any:
    """Change the value at a path of nested tuples, lists and dictionaries, in a copy."""
    if not path:
        return change(tree)
    key, *rest = path
    if isinstance(tree, dict):
        return {**tree, key: _changed(tree[key], rest, change)}
    return type(tree)([_changed(part, rest, change) if i == key else part for i, part in enumerate(tree)])


def assemble(model: nn.Module, plans: Sequence[MaskPlan], is_single: bool) -> PrunedNetwork:
    """Cut a copy of ``model`` as planned."""
    try:
        network = copy.deepcopy(model)
    except RuntimeError as error:
        raise ValueError(
            f"the model cannot be copied: {error}. Weights that torch.nn.utils.prune or weight_norm computes are made plain "
            "by torch.nn.utils.prune.remove(module, 'weight') and torch.nn.utils.remove_weight_norm(module)"
        ) from error
    for plan in plans:
        mask = network.get_submodule(plan.name)
        assert isinstance(mask, FeatureMask)
        if mask.shape != tuple(plan.shape):
            raise ValueError(f"the mask {plan.name!r} has the shape {mask.shape}, not {tuple(plan.shape)}")
        parts = [part(plan.kept, *core_of(plan.shape)) for part in (Take, Scatter)]
        stands: dict[str, nn.Module] = {"nothing": nn.Identity(), "take": parts[0], "multiply": nn.Sequential(*parts)}
        for module in network.modules():
            for name, child in module._modules.items():
                module._modules[name] = stands[plan.place] if child is mask else child
        for name, side, kept, constants in plan.cuts:
            _narrow(network.get_submodule(name), side, kept, constants)
    return (PrunedModel if is_single else PrunedNetwork)(network, plans).to(main_parameter(model).device)


def _narrow(layer: nn.Module, side: str, kept: Sequence[int], constants: Sequence[float]) -> None:
    """Cut a layer to some of its channels."""
    if constants:
        assert isinstance(layer, nn.Linear)
        gone = sorted({*range(layer.in_features)} - {*kept})
        moved = layer.weight.detach()[:, gone] @ layer.weight.new_tensor(constants)
        layer.bias = nn.Parameter(moved if layer.bias is None else layer.bias.detach() + moved)
    setattr(layer, LAYERS[type(layer)][1][side], len(kept))
    dim = 1 if side == "inputs" or isinstance(layer, nn.Embedding) else 0
    for name, tensor in {**layer._parameters, **layer._buffers}.items():
        reads = side != "inputs" or name == "weight" or name.startswith("weight_ih_l0")
        if tensor is None or tensor.dim() <= dim or tensor.numel() == 1 or not reads:
            continue
        part = tensor.detach().index_select(dim, torch.tensor(kept, device=tensor.device))
        is_parameter = isinstance(tensor, nn.Parameter)
        setattr(layer, name, nn.Parameter(part, requires_grad=tensor.requires_grad) if is_parameter else part)


def _sides(layer: nn.Module) -> dict[str, str]:
    return LAYERS.get(type(layer), (0, {}))[1]


def _can_cut(layer: nn.Module, side: str) -> bool:
    """Whether a side of a layer can be cut: its weights are its own, and each output reads all channels."""
    if side == "units":
        return side in _sides(layer) and getattr(layer, "num_parameters", 2) > 1
    own = "weight" in layer._parameters or "weight_ih_l0" in layer._parameters
    return side in _sides(layer) and own and getattr(layer, "groups", 1) == 1


# ---- looking for what can be cut ---------------------------------------------------------------------------------------


class _Probe:
    """Run a model on an example with some values replaced, and look at the inputs of its layers."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.model, self.inputs, self.layers = model, (args, kwargs), dict(model.named_modules())
        self.error: Exception | None = None
        self.output, self.seen = self.run({})

    def run(self, changes: Mapping[str, Change], inputs: Any = None) -> tuple[Any, dict[str, torch.Tensor]]:
        """Run with the outputs of some modules changed; note the input of each layer that could be cut, channel by channel.

        A model that is given less than it needs may raise anything; then nothing was seen.
        """
        args, kwargs = self.inputs if inputs is None else inputs
        seen: dict[str, torch.Tensor] = {}

        def note(name: str, layer: nn.Module, given: Any) -> None:
            x = given[0] if given else None
            if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.dim() < 2:
                return
            if isinstance(layer, FeatureMask):
                core, behind = core_of(layer.shape)
                dim = x.dim() - behind - len(core)
                x = x.flatten(dim, dim + len(core) - 1)
            else:
                dim = LAYERS[type(layer)][0]
            rows = x.movedim(dim, 0).flatten(1)
            before = seen.get(name)  # of an earlier call of the same layer
            seen[name] = rows if before is None or len(before) != len(rows) else torch.cat([before, rows], 1)

        with ExitStack() as hooks:
            for name, layer in self.layers.items():
                if type(layer) in LAYERS or isinstance(layer, FeatureMask):
                    hooks.callback(layer.register_forward_pre_hook(partial(note, name)).remove)
                if name in changes:
                    change = changes[name]
                    hook = layer.register_forward_hook(lambda _, given, output, change=change: change(output))
                    hooks.callback(hook.remove)
            torch.manual_seed(0)  # a model that draws random numbers gets the same each time
            try:
                return self.model(*args, **kwargs), seen
            except Exception as error:
                self.error = error
                return None, {}


def _there(dead: torch.Tensor, leaf: torch.Tensor, core: Sequence[int], behind: int) -> torch.Tensor:
    """Find where an argument has the entries that a mask holds back."""
    return dead.reshape(*core, *[1] * behind).expand(leaf.shape)


def _find_arguments(probe: _Probe, mask: FeatureMask, dead: torch.Tensor) -> list[Any]:
    """Find the arguments whose places that the mask holds back do not matter, while the others do."""
    core, behind = core_of(mask.shape)
    found = []
    for keys, leaf in tree_flatten_with_path(probe.inputs)[0]:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype == torch.bool or leaf.is_complex() or leaf.dim() < 2:
            continue
        path: list[Any] = [getattr(key, "idx", getattr(key, "key", None)) for key in keys]
        ends = {end: leaf.dim() - end - len(core) for end in (behind, *range(leaf.dim()))}
        places: list[Any] = [
            (core, end) for end, at in ends.items() if at >= 1 and leaf.shape[at : at + len(core)] == core
        ]
        if leaf[0].numel() == math.prod(core):
            places.append((tuple(leaf.shape[1:]), 0))  # flattened before the mask
        other = torch.rand(leaf.shape, device=leaf.device)
        if leaf.is_floating_point():
            other = leaf + (1.0 + leaf.abs()) * (0.5 + other.to(leaf.dtype))
        else:
            other = leaf.flatten()[other.flatten().argsort()].reshape(leaf.shape)
        for place in places:
            there = _there(dead, leaf, *place)
            changed = (_changed(probe.inputs, path, partial(torch.where, at, other)) for at in (there, ~there))
            if [_same(probe.output, probe.run({}, inputs)[0]) for inputs in changed] == [True, False]:
                found.append((path, *place, False))
                break
    return found


def _cuts_behind(probe: _Probe, name: str, dead: torch.Tensor) -> list[Any]:
    """Find the layers behind a mask that read dead channels, and the channel-wise ones between."""

    def nothing(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, torch.nan) if x.is_floating_point() else x

    _, missing = probe.run({name: lambda output: output.masked_fill(dead, torch.nan)})
    others = tree_map_only(torch.Tensor, nothing, probe.inputs)
    _, alone = probe.run({name: lambda output: nothing(output).masked_fill(dead, 0.0)}, others)
    cuts: list[Any] = []
    for other, rows in probe.seen.items():
        if other not in missing or other not in alone:
            continue
        layer, depends, else_too = probe.layers[other], missing[other].isnan().any(1), alone[other].isnan().any(1)
        gone = depends & ~else_too & (rows == rows[:, :1]).all(1)
        if not bool(gone.any()) or bool(gone.all()):
            continue
        kept, constants = (~gone).nonzero().flatten().tolist(), rows[gone, 0].tolist()
        if _can_cut(layer, "units"):
            cuts.append((other, "units", kept, ()))
        elif _can_cut(layer, "inputs") and (type(layer) is nn.Linear or not any(constants)):
            cuts.append((other, "inputs", kept, constants if any(constants) else ()))
    return cuts if any(side == "inputs" for _, side, *_ in cuts) else []


def _cuts_before(probe: _Probe, name: str, arguments: Sequence[Any], dead: torch.Tensor) -> list[Any] | None:
    """Find the layers that make what a mask holds back; None if there are none and no argument holds it either."""
    flat, inputs = dead.reshape(-1), probe.inputs
    changes: dict[str, Change] = {name: lambda output: output.masked_fill(dead, 0.0)}
    cuts: list[Any] = []
    for other, layer in probe.layers.items():
        if arguments or not _can_cut(layer, "outputs") or len(core_of(dead.shape)[0]) > 1:
            continue
        dim, sides = LAYERS[type(layer)]
        if getattr(layer, sides["outputs"]) != flat.numel():
            continue

        def lose(output: torch.Tensor, dim: int = dim) -> torch.Tensor:
            return output.movedim(dim, -1).masked_fill(flat, torch.nan).movedim(-1, dim)

        output, seen = probe.run({name: changes[name], other: lose})
        if _same(probe.output, output) and name in seen and torch.equal(seen[name].isnan().any(1), flat):
            cuts.append((other, "outputs", (~flat).nonzero().flatten().tolist(), ()))
            changes[other] = lose
    if not arguments and not cuts:
        return None
    for path, core, behind, _ in arguments:

        def poison(leaf: torch.Tensor, core: Any = core, behind: int = behind) -> torch.Tensor:
            return leaf.masked_fill(_there(flat, leaf, core, behind), torch.nan) if leaf.is_floating_point() else leaf

        inputs = _changed(inputs, path, poison)
    _, seen = probe.run(changes, inputs)
    for other, rows in seen.items():
        lost = rows.isnan().any(1)
        if _can_cut(probe.layers[other], "units") and bool(lost.any()) and torch.equal(lost, rows.isnan().all(1)):
            cuts.append((other, "units", (~lost).nonzero().flatten().tolist(), ()))
    return cuts if seen else None


def _plans(probe: _Probe, plan: MaskPlan, mask: FeatureMask, taken: list[Any]) -> Iterator[MaskPlan]:
    """Yield what can be tried for a mask, the best first."""
    dead = ~mask.support()
    arguments = [argument for argument in _find_arguments(probe, mask, dead) if argument[0] not in taken]
    whole = plan._replace(arguments=[(*argument[:3], True) for argument in arguments])
    if not bool(dead.any()):
        yield plan._replace(place="nothing", arguments=arguments)
        yield whole._replace(place="nothing")
        return
    reading = _cuts_behind(probe, plan.name, dead)
    if reading:
        before = _cuts_before(probe, plan.name, arguments, dead)
        if before is not None:
            yield plan._replace(place="nothing", arguments=arguments, cuts=[*before, *reading])
        yield whole._replace(place="take", cuts=reading)
    if arguments:
        yield whole


def prune(
    model: nn.Module,
    example: torch.Tensor | None = None,
    *,
    example_args: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> PrunedNetwork:
    """Cut a model to a smaller one that takes only the selected values and predicts the same.

    Layers behind a mask (linear layers, convolutions, LSTM, GRU) are cut to the channels that are left; so are layers before a
    mask on hidden units, embeddings, and normalisations between. In front of anything else the values are put back
    into an input that is zero everywhere else. The result shares no memory with ``model`` and is compared with it, in
    evaluation mode, on the example before it is handed out.

    Parameters
    ----------
    model : nn.Module
        Holds one or more :class:`FeatureMask`, all closed.
    example : tensor or None, default=None
        A batch of inputs as the model takes them. Needed where one input is not of the shape of the mask: for a mask of
        shape ``(1, 28, 28)`` before colour images, or ``(n_channels, 1)`` before series.
    example_args : sequence or None, default=None
        All arguments of an example call, for models with several inputs; tensors may lie in tuples, lists and dictionaries.
    example_kwargs : mapping of str to object, default=None
        Keyword arguments of that call.

    Returns
    -------
    PrunedModel, or PrunedNetwork for more than one argument
        Takes the kept entries in the place of the dimensions that the mask chooses from: the M columns; for a mask of shape
        ``(n_channels, 1)`` an input of shape ``(batch, M, length)`` of any length; for ``(1, 28, 28)`` before colour images
        ``(batch, 3, M)``. ``select`` takes them out of whole inputs.

    Warns
    -----
    UserWarning
        If no layer could be cut for a mask, with the reason: the network keeps its size there.

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
    masks = find_masks(model)
    for name, mask in masks.items():
        if not mask.closed:
            raise ValueError(
                f"the mask {name!r} is not closed yet: {mask.n_alive} features are alive, {mask.n_features_to_select} to be "
                "selected; train on until mask.closed, or call mask.finalize()"
            )
    if example is not None and (example_args is not None or example_kwargs is not None):
        raise ValueError("give example, or example_args and example_kwargs, not both")
    mask = next(iter(masks.values()))
    if example is None and example_args is None and example_kwargs is None:
        example = torch.randn(4, *mask.shape, generator=torch.Generator().manual_seed(0)).to(main_parameter(model))
    args = tuple(example_args or ()) if example is None else (example,)
    modes = [(module, module.training) for module in model.modules()]
    device = mask.gamma.device
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.no_grad():
            pruned, reasons = _prune(model.eval(), masks, args, dict(example_kwargs or {}))
    finally:
        for module, mode in modes:
            module.training = mode
    if not any(plan.arguments or plan.cuts for plan in pruned.plans):
        raise ValueError(f"nothing can be cut: {'; '.join(reasons)}. Build the small network by hand")
    for reason in reasons:
        warnings.warn(f"prune could not make the network smaller: {reason}", UserWarning, stacklevel=2)
    return pruned.train(model.training)


def _prune(
    model: nn.Module, masks: dict[str, FeatureMask], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[PrunedNetwork, list[str]]:
    """Try the plans of each mask; return the network and why nothing was cut, for each mask without a cut."""
    probe = _Probe(model, args, kwargs)
    if probe.error is not None:
        shapes = ", ".join(str(tuple(leaf.shape)) for leaf in args if isinstance(leaf, torch.Tensor))
        raise ValueError(
            f"prune tries the model on an input of shape {shapes}, and the model does not run on it ({probe.error}); give a "
            "batch of your inputs as example"
        ) from probe.error
    if not _same(probe.output, probe.run({})[0]):
        raise ValueError(
            "the model gives other outputs for the same input and torch seed in evaluation mode, so the pruned model "
            "cannot be compared with it; switch off what is random, or prune the part that is not"
        )
    if not all(bool(output.isfinite().all()) for output in _leaves(probe.output) if isinstance(output, torch.Tensor)):
        raise ValueError("the model gives NaN or infinite outputs for the example, so a smaller one cannot be compared")
    is_single = not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor)
    # A second input guards against layers whose input happens to be zero on the first.
    noisy = tree_map_only(torch.Tensor, lambda x: x + torch.randn_like(x) if x.is_floating_point() else x, probe.inputs)
    output, seen = probe.run({}, noisy)
    examples = [(probe.inputs, probe.output), *([(noisy, output)] if seen else [])]
    accepted = [
        MaskPlan(name, mask.shape, mask.support().reshape(-1).nonzero().flatten().tolist())
        for name, mask in masks.items()
    ]
    best, taken = assemble(model, accepted, is_single), list[Any]()
    reasons: list[str] = []
    for number, (name, mask) in enumerate(masks.items()):
        why = "no linear layer, convolution or recurrent layer reads the entries that it closed by themselves"
        for nth, plan in enumerate(_plans(probe, accepted[number], mask, taken)):
            trial, refusal = [*accepted[:number], plan, *accepted[number + 1 :]], ""
            try:
                found = assemble(model, trial, is_single)
                if all(_same(expected, _predict(found, *inputs)) for inputs, expected in examples):
                    best, accepted = found, trial
                    taken += [path for path, *_ in plan.arguments]
                    break
                refusal = "without what was cut the outputs are others"
            except Exception as error:
                refusal = (str(error) or type(error).__name__).splitlines()[0]
            if nth == 0:
                why = f"the layers behind it cannot do with fewer values ({refusal})"
        plan = accepted[number]
        if plan.cuts or len(plan.kept) == mask.n_features:
            continue
        readers = [other for other, layer in probe.layers.items() if "inputs" in _sides(layer)]
        computed = ", ".join(other for other in readers if not _can_cut(probe.layers[other], "inputs"))
        if computed:
            why += f"; the weights of {computed} are computed or in groups: make them plain, for example by "
            why += "torch.nn.utils.prune.remove(module, 'weight')"
        gates = "" if plan.arguments else "; it gates no argument either, or the model reads it past the mask"
        reasons.append(f"mask {name!r}: {why}{gates}")
    return best, reasons


def _predict(found: PrunedNetwork, args: Any, kwargs: Any) -> Any:
    """Predict from whole arguments."""
    args, kwargs = PrunedNetwork.select(found, *args, **kwargs)
    torch.manual_seed(0)
    return found(*args, **kwargs)


def _leaves(output: Any) -> list[Any]:
    if isinstance(output, Mapping):
        output = [output[key] for key in sorted(output, key=str)]
    return [leaf for part in output for leaf in _leaves(part)] if isinstance(output, (tuple, list)) else [output]


def _same(expected: Any, found: Any) -> bool:
    """Whether two outputs have the same numbers, but for rounding."""
    ours, theirs = _leaves(expected), _leaves(found)
    return len(ours) == len(theirs) and all(_close(*pair) for pair in zip(ours, theirs))


def _close(expected: Any, found: Any) -> bool:
    if not isinstance(expected, torch.Tensor):
        return True
    if not isinstance(found, torch.Tensor) or expected.shape != found.shape:
        return False
    if not expected.is_floating_point():
        return torch.equal(expected, found)
    scale = float(expected.abs().nan_to_num(0.0, 0.0).max()) if expected.numel() else 0.0
    loose = 100.0 if expected.dtype in (torch.float16, torch.bfloat16) else 1.0
    return torch.allclose(expected, found, rtol=1e-4 * loose, atol=1e-5 * loose * max(1.0, scale), equal_nan=True)
