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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.fx
from torch import nn
from torch.utils._pytree import tree_flatten_with_path, tree_map_only

from tamiz.torch.batches import Standardize
from tamiz.torch.mask import FeatureMask, find_masks

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

#: What a model that is given less than it needs may raise.
_REFUSALS = (RuntimeError, ValueError, IndexError, AssertionError)

Change = Callable[[torch.Tensor], torch.Tensor]


class Argument(NamedTuple):
    """Argument of a model that a mask gates."""

    path: Sequence[int | str]
    """Where it is in ``(args, kwargs)``."""
    core: Sequence[int]
    """Sizes of the dimensions that the mask chooses from."""
    behind: int
    """Number of dimensions behind these; what stands there, and in front, may have any size."""
    put_back: bool = False
    """Whether the network wants all places, those of the others being zero."""


class Cut(NamedTuple):
    """Layer that is cut."""

    name: str
    side: str
    """"inputs", "outputs" or "units"."""
    kept: list[int]
    constants: Sequence[float] = ()
    """What the inputs that go have been, for all samples; folded into the bias."""


class MaskPlan(NamedTuple):
    """What becomes of one mask."""

    name: str
    shape: tuple[int, ...]
    kept: list[int]
    """Numbers of the entries that are kept, in the flattened mask."""
    place: str = "multiply"
    """What stands in its place: "nothing", "take" (the kept entries are taken out) or "multiply" (by ones and zeros)."""
    arguments: Sequence[Argument] = ()
    cuts: Sequence[Cut] = ()

    @classmethod
    def from_json(cls, name: str, shape: Any, kept: Any, place: str, arguments: Any, cuts: Any) -> MaskPlan:
        """Build a plan from the lists that JSON has made of one."""
        found = [Argument(*entry) for entry in arguments], [Cut(*entry) for entry in cuts]
        return cls(name, tuple(shape), kept, place, *found)


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
        end = x.dim() - self.behind
        start = end - len(self.core)
        if start < 0 or list(x.shape[start:end]) != self.core:
            raise ValueError(
                f"the features are {self.core} values in dimension {start - x.dim()} of the input, got {list(x.shape)}"
            )
        flat = x.flatten(start, end - 1) if end > start + 1 else x
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


class _Multiply(nn.Module):
    def __init__(self, support: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("support", support, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.support.to(x.dtype)  # type: ignore[operator]


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
        gated = [(argument, plan.kept) for plan in plans for argument in plan.arguments]
        self._paths = [argument.path for argument, _ in gated]
        # In a tuple they are no part of the network: it does not run them.
        self._takes = tuple(Take(kept, argument.core, argument.behind) for argument, kept in gated)
        self.fronts = nn.ModuleList(
            Scatter(kept, argument.core, argument.behind) if argument.put_back else nn.Identity()
            for argument, kept in gated
        )

    def _put(self, parts: Iterable[nn.Module], args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tree: Any = (args, kwargs)
        for path, part in zip(self._paths, parts):
            tree = _changed(tree, path, part)
        return tree

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Predict as the whole model does, from the selected values of each gated argument."""
        args, kwargs = self._put(self.fronts, args, kwargs)
        return self.network(*args, **kwargs)

    def select(self, *args: Any, **kwargs: Any) -> Any:
        """Cut whole arguments to what this network reads; return ``(args, kwargs)``."""
        return self._put(self._takes, args, kwargs)


def _check_size(values: torch.Tensor, size: int, dim: int) -> None:
    if not torch.jit.is_tracing() and values.shape[dim] != size:  # a trace cannot hold a decision
        raise ValueError(f"this model reads {size} values per sample, got {values.shape[dim]}")


torch.fx.wrap("_check_size")  # torch.fx cannot trace a decision, and calls the function as it is


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
        gating = [plan for plan in plans if plan.arguments]
        kept = gating[0].kept if gating else []
        self.front = self.fronts[0] if gating else nn.Identity()
        self.n_values, self.dim = len(kept), -1 - gating[0].arguments[0].behind if gating else 0
        self.register_buffer("indices", torch.tensor(kept, dtype=torch.int64), persistent=False)

    def forward(self, values: torch.Tensor) -> Any:
        """Predict as the whole model does, from the selected values alone."""
        if self.n_values > 0:
            _check_size(values, self.n_values, self.dim)
        return self.network(self.front(values))

    def select(self, x: torch.Tensor) -> torch.Tensor:
        """Take the values that this model reads out of whole inputs.

        What a mask of shape ``(n_channels, 1)`` or ``(n_channels, 1, 1)`` leaves free, as the length of a series, may have
        any size.
        """
        (values,), _ = super().select(x)
        return values

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
        if mask.shape != plan.shape:
            raise ValueError(f"the mask {plan.name!r} has the shape {mask.shape}, not {plan.shape}")
        instead: nn.Module = nn.Identity()
        if plan.place == "take":
            instead = Take(plan.kept, *core_of(plan.shape))
        elif plan.place == "multiply":
            kept = torch.zeros(mask.n_features).index_fill(0, torch.tensor(plan.kept, dtype=torch.int64), 1.0)
            instead = _Multiply(kept.reshape(plan.shape))
        network = _replaced(network, plan.name, instead)
        for cut in plan.cuts:
            network = _replaced(network, cut.name, _narrowed(network.get_submodule(cut.name), cut))
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    return (PrunedModel if is_single else PrunedNetwork)(network, plans).to(device)


def _replaced(model: nn.Module, name: str, new: nn.Module) -> nn.Module:
    """Replace one part of ``model``, wherever it is used."""
    old = model.get_submodule(name)
    new.train(old.training)
    if old is model:
        return new
    for module in list(model.modules()):
        for child_name, child in list(module._modules.items()):
            if child is old:
                module._modules[child_name] = new
    return model


def _narrowed(layer: nn.Module, cut: Cut) -> nn.Module:
    """Copy a layer with some of its channels."""
    small, whole = copy.deepcopy(layer), {**layer._parameters, **layer._buffers}
    setattr(small, LAYERS[type(layer)][1][cut.side], len(cut.kept))
    for name, tensor in whole.items():
        reads = name == "weight" or name.startswith("weight_ih_l0")
        dim = 1 if cut.side == "inputs" or isinstance(layer, nn.Embedding) else 0
        if tensor is None or tensor.dim() <= dim or tensor.numel() == 1 or (cut.side == "inputs" and not reads):
            continue
        part = tensor.detach().index_select(dim, torch.tensor(cut.kept, device=tensor.device))
        is_parameter = isinstance(tensor, nn.Parameter)
        setattr(small, name, nn.Parameter(part, requires_grad=tensor.requires_grad) if is_parameter else part)
    if cut.constants:
        assert isinstance(layer, nn.Linear)
        gone = [i for i in range(layer.in_features) if i not in set(cut.kept)]
        moved = layer.weight.detach()[:, gone] @ layer.weight.new_tensor(cut.constants)
        small.bias = nn.Parameter(moved if layer.bias is None else layer.bias.detach() + moved)
    return small


def _can_cut(layer: nn.Module, side: str) -> bool:
    """Whether a side of a layer can be cut: its weights are its own, and each output reads all channels."""
    if side not in LAYERS.get(type(layer), (0, {}))[1]:
        return False
    if side == "units":
        return getattr(layer, "num_parameters", 2) > 1
    own = "weight" in layer._parameters or "weight_ih_l0" in layer._parameters
    return own and getattr(layer, "groups", 1) == 1


# ---- looking for what can be cut ---------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """What a layer was given along its channels, over all its calls."""

    constant: torch.Tensor
    value: torch.Tensor
    any_nan: torch.Tensor
    all_nan: torch.Tensor


class _Laboratory:
    """Run a model on an example, with parts of it replaced."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.model, self.inputs, self.layers = model, (args, kwargs), dict(model.named_modules())
        self.output, self.seen = self.run({})

    def run(self, changes: Mapping[str, Change], inputs: Any = None) -> tuple[Any, dict[str, _Seen]]:
        """Run with the outputs of some modules changed; note what the layers that could be cut are given."""
        args, kwargs = self.inputs if inputs is None else inputs
        seen: dict[str, _Seen] = {}

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
            rows = x.detach().movedim(dim, 0).flatten(1)
            nan = rows.isnan()
            found = _Seen((rows == rows[:, :1]).all(1), rows[:, 0], nan.any(1), nan.all(1))
            before = seen.get(name)
            if before is not None and before.constant.shape == found.constant.shape:
                same = before.constant & found.constant & (before.value == found.value)
                found = _Seen(same, found.value, before.any_nan | found.any_nan, before.all_nan & found.all_nan)
            seen[name] = found

        with ExitStack() as hooks:
            for name, layer in self.layers.items():
                if type(layer) in LAYERS or isinstance(layer, FeatureMask):
                    hooks.callback(layer.register_forward_pre_hook(partial(note, name)).remove)
                if name in changes:
                    change = changes[name]
                    hook = layer.register_forward_hook(lambda _, given, output, change=change: change(output))
                    hooks.callback(hook.remove)
            torch.manual_seed(0)  # a model that draws random numbers gets the same each time
            return self.model(*args, **kwargs), seen

    def attempt(self, changes: Mapping[str, Change], inputs: Any = None) -> tuple[Any, dict[str, _Seen]]:
        """Run if that is possible; else nothing was seen."""
        try:
            return self.run(changes, inputs)
        except _REFUSALS:
            return None, {}


def _spread(dead: torch.Tensor, argument: Argument, leaf: torch.Tensor) -> torch.Tensor:
    """Find where an argument has the entries that a mask holds back."""
    return dead.reshape(*argument.core, *[1] * argument.behind).expand(leaf.shape)


def _find_arguments(lab: _Laboratory, mask: FeatureMask, dead: torch.Tensor) -> list[Argument]:
    """Find the arguments whose places that the mask holds back do not matter, while the others do."""
    core, behind = core_of(mask.shape)
    found = []
    for keys, leaf in tree_flatten_with_path(lab.inputs)[0]:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype == torch.bool or leaf.is_complex() or leaf.dim() < 2:
            continue
        path: list[Any] = [getattr(key, "idx", getattr(key, "key", None)) for key in keys]
        first = [leaf.dim() - t - len(core) for t in dict.fromkeys((behind, *range(leaf.dim())))]
        places = [Argument(path, core, leaf.dim() - at - len(core)) for at in first
                  if at >= 1 and tuple(leaf.shape[at : at + len(core)]) == core]  # fmt: skip
        flattened = Argument(path, tuple(leaf.shape[1:]), 0)
        if math.prod(leaf.shape[1:]) == math.prod(core) and flattened not in places:
            places.append(flattened)
        other = torch.rand(leaf.shape, device=leaf.device)
        if leaf.is_floating_point():
            other = leaf + (1.0 + leaf.abs()) * (0.5 + other.to(leaf.dtype))
        else:
            other = leaf.flatten()[other.flatten().argsort()].reshape(leaf.shape)
        for argument in places:
            there = _spread(dead, argument, leaf)
            runs = [
                lab.attempt({}, _changed(lab.inputs, path, partial(torch.where, where, other)))
                for where in (there, ~there)
            ]
            if all(seen for _, seen in runs) and [_same(lab.output, output) for output, _ in runs] == [True, False]:
                found.append(argument)
                break
    return found


def _cuts_behind(lab: _Laboratory, name: str, dead: torch.Tensor) -> list[Cut]:
    """Find the layers behind a mask that read dead channels, and the channel-wise ones between."""

    def nothing(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, torch.nan) if x.is_floating_point() else x

    _, missing = lab.attempt({name: lambda output: output.masked_fill(dead, torch.nan)})
    others = tree_map_only(torch.Tensor, nothing, lab.inputs)
    _, alone = lab.attempt({name: lambda output: nothing(output).masked_fill(dead, 0.0)}, others)
    cuts = []
    for other in [other for other in lab.seen if other in missing and other in alone]:
        layer, seen = lab.layers[other], lab.seen[other]
        gone = missing[other].any_nan & ~alone[other].any_nan & seen.constant
        if isinstance(layer, FeatureMask) or not bool(gone.any()) or bool(gone.all()):
            continue
        keep, constants = (~gone).nonzero().flatten().tolist(), seen.value[gone]
        if _can_cut(layer, "units"):
            cuts.append(Cut(other, "units", keep))
        elif _can_cut(layer, "inputs") and bool((constants == 0).all()):
            cuts.append(Cut(other, "inputs", keep))
        elif _can_cut(layer, "inputs") and type(layer) is nn.Linear:
            cuts.append(Cut(other, "inputs", keep, constants.tolist()))
    return cuts if any(cut.side == "inputs" for cut in cuts) else []


def _cuts_before(
    lab: _Laboratory, name: str, mask: FeatureMask, arguments: Sequence[Argument], dead: torch.Tensor
) -> list[Cut] | None:
    """Find the layers that make what a mask holds back; None if there are none and no argument holds it either."""
    flat = dead.reshape(-1)
    changes: dict[str, Change] = {name: lambda output: output.masked_fill(dead, 0.0)}
    makers = []
    if not arguments and len(core_of(mask.shape)[0]) == 1:
        for other, layer in lab.layers.items():
            if not _can_cut(layer, "outputs"):
                continue
            dim, sides = LAYERS[type(layer)]
            if getattr(layer, sides["outputs"]) != flat.numel():
                continue

            def lose(output: torch.Tensor, dim: int = dim) -> torch.Tensor:
                return output.movedim(dim, -1).masked_fill(flat, torch.nan).movedim(-1, dim)

            output, seen = lab.run({name: changes[name], other: lose})
            if _same(lab.output, output) and name in seen and torch.equal(seen[name].any_nan, flat):
                makers.append(other)
                changes[other] = lose
    if not arguments and not makers:
        return None
    inputs: Any = lab.inputs
    for argument in arguments:

        def poison(leaf: torch.Tensor, argument: Argument = argument) -> torch.Tensor:
            return leaf.masked_fill(_spread(flat, argument, leaf), torch.nan) if leaf.is_floating_point() else leaf

        inputs = _changed(inputs, argument.path, poison)
    _, seen = lab.attempt(changes, inputs)
    if not seen:
        return None
    kept = (~flat).nonzero().flatten().tolist()
    cuts = [Cut(maker, "outputs", kept) for maker in makers]
    for other, there in seen.items():
        lost = there.any_nan
        if _can_cut(lab.layers[other], "units") and bool(lost.any()) and torch.equal(lost, there.all_nan):
            cuts.append(Cut(other, "units", (~lost).nonzero().flatten().tolist()))
    return cuts


def _plans(lab: _Laboratory, plan: MaskPlan, mask: FeatureMask, taken: list[Any]) -> Iterator[MaskPlan]:
    """Yield what can be tried for a mask, the best first."""
    dead = ~mask.support()
    arguments = [a for a in _find_arguments(lab, mask, dead) if a.path not in taken]
    whole = plan._replace(arguments=[argument._replace(put_back=True) for argument in arguments])
    if not bool(dead.any()):
        yield plan._replace(place="nothing", arguments=arguments)
        yield whole._replace(place="nothing")
        return
    reading = _cuts_behind(lab, plan.name, dead)
    if reading:
        before = _cuts_before(lab, plan.name, mask, arguments, dead)
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
                f"the mask {name!r} is not closed yet: {mask.n_alive} features are alive, {mask.n_features_to_select} are "
                "to be selected; train on until mask.closed, or call mask.finalize()"
            )
    if example is not None and (example_args is not None or example_kwargs is not None):
        raise ValueError("give example, or example_args and example_kwargs, not both")
    mask = next(iter(masks.values()))
    if example is None and example_args is None and example_kwargs is None:
        types = [
            p.dtype
            for p in model.parameters()
            if p.is_floating_point() and all(p is not m.gamma for m in masks.values())
        ]
        example = torch.randn(4, *mask.shape, generator=torch.Generator().manual_seed(0))
        example = example.to(mask.gamma.device, types[0] if types else torch.float32)
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
    try:
        lab = _Laboratory(model, args, kwargs)
    except Exception as error:
        shapes = [tuple(leaf.shape) for leaf in args if isinstance(leaf, torch.Tensor)]
        raise ValueError(
            f"prune tries the model on an input of shape {', '.join(map(str, shapes))}, and the model does not run on it "
            f"({error}); give a batch of your inputs as example"
        ) from error
    if not _same(lab.output, lab.run({})[0]):
        raise ValueError(
            "the model gives other outputs for the same input and torch seed in evaluation mode, so the pruned model "
            "cannot be compared with it; switch off what is random, or prune the part that is not"
        )
    if not all(bool(output.isfinite().all()) for output in _leaves(lab.output) if isinstance(output, torch.Tensor)):
        raise ValueError(
            "the model gives NaN or infinite outputs for the example, so a smaller one cannot be compared with it"
        )
    is_single = not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor)
    # A second input guards against layers whose input happens to be zero on the first.
    noisy = tree_map_only(torch.Tensor, lambda x: x + torch.randn_like(x) if x.is_floating_point() else x, lab.inputs)
    output, seen = lab.attempt({}, noisy)
    examples = [(lab.inputs, lab.output), *([(noisy, output)] if seen else [])]
    accepted = [
        MaskPlan(name, mask.shape, mask.support().reshape(-1).nonzero().flatten().tolist())
        for name, mask in masks.items()
    ]
    best, taken = assemble(model, accepted, is_single), list[Any]()
    reasons: list[str] = []
    for number, (name, mask) in enumerate(masks.items()):
        errors: list[str] = []
        for plan in _plans(lab, accepted[number], mask, taken):
            trial = [*accepted[:number], plan, *accepted[number + 1 :]]
            try:
                found = assemble(model, trial, is_single)
                if _agrees(found, examples, is_single):
                    best, accepted = found, trial
                    taken += [argument.path for argument in plan.arguments]
                    break
                errors.append("without what was cut the outputs are others")
            except _REFUSALS as error:
                errors.append(str(error).splitlines()[0])
        plan = accepted[number]
        if plan.cuts or len(plan.kept) == mask.n_features:
            continue
        why = "no linear layer, convolution or recurrent layer reads the entries that it closed by themselves"
        if errors:
            why = f"the layers behind it cannot do with fewer values ({errors[0]})"
        computed = [
            other
            for other, layer in lab.layers.items()
            if "inputs" in LAYERS.get(type(layer), (0, {}))[1] and not _can_cut(layer, "inputs")
        ]
        if computed:
            why += f"; the weights of {', '.join(computed)} are computed or in groups: make them plain, for example by "
            why += "torch.nn.utils.prune.remove(module, 'weight')"
        gates = "" if plan.arguments else "; it gates no argument either, or the model reads it past the mask"
        reasons.append(f"mask {name!r}: {why}{gates}")
    return best, reasons


def _agrees(found: PrunedNetwork, examples: list[Any], is_single: bool) -> bool:
    found.eval()
    for (args, kwargs), expected in examples:
        small = ((found.select(*args),), {}) if is_single else found.select(*args, **kwargs)
        torch.manual_seed(0)
        if not _same(expected, found(*small[0], **small[1])):
            return False
    return True


def _leaves(output: Any) -> list[Any]:
    if isinstance(output, Mapping):
        output = [output[key] for key in sorted(output, key=str)]
    return [leaf for part in output for leaf in _leaves(part)] if isinstance(output, (tuple, list)) else [output]


def _same(expected: Any, found: Any) -> bool:
    """Whether two outputs have the same numbers, but for rounding."""
    pairs = list(zip(_leaves(expected), _leaves(found)))
    return len(_leaves(expected)) == len(_leaves(found)) and all(_close(*pair) for pair in pairs)


def _close(expected: Any, found: Any) -> bool:
    if not isinstance(expected, torch.Tensor):
        return True
    if not isinstance(found, torch.Tensor) or expected.shape != found.shape:
        return False
    if not expected.is_floating_point():
        return torch.equal(expected, found)
    finite = expected[expected.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    loose = 100.0 if expected.dtype in (torch.float16, torch.bfloat16) else 1.0
    return torch.allclose(expected, found, rtol=1e-4 * loose, atol=1e-5 * loose * max(1.0, scale), equal_nan=True)
