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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
import torch.fx
from torch import nn
from torch.utils._pytree import tree_flatten_with_path, tree_leaves, tree_map_only

from tamiz.torch.batches import Standardize
from tamiz.torch.mask import FeatureMask, find_masks

#: Layers that read channels: where the channels are (-1: the last dimension, 1: behind the batch).
READERS: dict[type, int] = {
    nn.Linear: -1, nn.LSTM: -1, nn.GRU: -1, nn.RNN: -1, nn.Conv1d: 1, nn.Conv2d: 1, nn.Conv3d: 1,
}  # fmt: skip
#: Layers with numbers for each channel, which leave the channels apart.
UNITS: dict[type, int] = {
    nn.BatchNorm1d: 1, nn.BatchNorm2d: 1, nn.BatchNorm3d: 1, nn.InstanceNorm1d: 1, nn.InstanceNorm2d: 1, nn.PReLU: 1,
    Standardize: -1,
}  # fmt: skip
#: Layers that make channels, each by itself.
MAKERS: dict[type, int] = {nn.Linear: -1, nn.Embedding: -1, nn.Conv1d: 1, nn.Conv2d: 1, nn.Conv3d: 1}


@dataclass(frozen=True)
class Argument:
    """Argument of a model that a mask gates."""

    path: tuple[int | str, ...]
    """Where it is in ``(args, kwargs)``."""
    core: tuple[int, ...]
    """Sizes of the dimensions that the mask chooses from."""
    behind: int
    """Number of dimensions behind these; what stands there, and in front, may have any size."""
    put_back: bool = False
    """Whether the network wants all places, those of the others being zero."""


@dataclass(frozen=True)
class Cut:
    """Layer that is cut."""

    name: str
    side: str
    """"inputs", "outputs" or "units"."""
    kept: tuple[int, ...]
    constants: tuple[float, ...] = ()
    """What the inputs that go have been, for all samples; folded into the bias."""


@dataclass(frozen=True)
class MaskPlan:
    """What becomes of one mask."""

    name: str
    shape: tuple[int, ...]
    kept: tuple[int, ...]
    """Numbers of the entries that are kept, in the flattened mask."""
    place: str = "multiply"
    """What stands in its place: "nothing", "take" (the kept entries are taken out) or "multiply" (by ones and zeros)."""
    arguments: tuple[Argument, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @classmethod
    def from_dict(cls, about: Mapping[str, Any]) -> MaskPlan:
        """Build a plan from what ``dataclasses.asdict`` and JSON have made of one."""
        arguments = [
            {**entry, "path": tuple(entry["path"]), "core": tuple(entry["core"])} for entry in about["arguments"]
        ]
        cuts = [{**cut, "kept": tuple(cut["kept"]), "constants": tuple(cut["constants"])} for cut in about["cuts"]]
        made = cls(about["name"], tuple(about["shape"]), tuple(about["kept"]), about["place"])
        return replace(made, arguments=tuple(Argument(**a) for a in arguments), cuts=tuple(Cut(**c) for c in cuts))


# ---- parts of a pruned network -----------------------------------------------------------------------------------------


def core_of(shape: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the sizes from the first to the last dimension of a mask that is no 1, and how many ones come behind.

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
        """Return the kept entries, in one dimension."""
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
        """Return the whole samples."""
        dim = values.dim() + self.dim
        padded = torch.cat([values, torch.zeros_like(values.narrow(dim, 0, 1))], dim=dim)
        return padded.index_select(dim, self.source).unflatten(dim, self.core)  # type: ignore[arg-type]


class _Multiply(nn.Module):
    """Multiply by ones and zeros."""

    def __init__(self, support: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("support", support, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.support  # type: ignore[operator]


def _narrowed(layer: nn.Module, cut: Cut) -> nn.Module:
    """Return a copy of a layer with some of its channels."""
    small, whole = copy.deepcopy(layer), layer._parameters | layer._buffers
    device = next(iter(tensor.device for tensor in whole.values() if tensor is not None), None)
    kept = torch.tensor(cut.kept, dtype=torch.int64, device=device)
    sizes: dict[str, str] = {
        "inputs": {nn.Linear: "in_features", nn.LSTM: "input_size", nn.GRU: "input_size", nn.RNN: "input_size"}.get(
            type(layer), "in_channels"
        ),
        "outputs": {nn.Linear: "out_features", nn.Embedding: "embedding_dim"}.get(type(layer), "out_channels"),
        "units": "num_parameters" if isinstance(layer, nn.PReLU) else "num_features",
    }
    setattr(small, sizes[cut.side], len(cut.kept))
    for name, tensor in whole.items():
        if tensor is None or tensor.dim() == 0:
            continue
        if cut.side == "inputs":
            dim = 1 if name == "weight" or name.startswith("weight_ih_l0") else None
        elif isinstance(layer, nn.Embedding):
            dim = 1
        else:
            dim = None if tensor.numel() == 1 else 0
        if dim is not None:
            part = tensor.detach().index_select(dim, kept)
            is_parameter = isinstance(tensor, nn.Parameter)
            setattr(small, name, nn.Parameter(part, requires_grad=tensor.requires_grad) if is_parameter else part)
    if cut.constants:
        assert isinstance(layer, nn.Linear)
        dead = torch.ones(layer.in_features, dtype=torch.bool)
        dead[list(cut.kept)] = False
        weight = layer.weight.detach()
        moved = weight[:, dead] @ torch.tensor(cut.constants, dtype=weight.dtype, device=weight.device)
        small.bias = nn.Parameter(moved if layer.bias is None else layer.bias.detach() + moved)
    return small


def _check_size(values: torch.Tensor, size: int, dim: int) -> None:
    if not torch.jit.is_tracing() and values.shape[dim] != size:  # a trace cannot hold a decision
        raise ValueError(f"this model reads {size} values per sample, got {values.shape[dim]}")


torch.fx.wrap("_check_size")  # torch.fx cannot trace a decision, and calls the function as it is


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
        """Return the predictions of the whole model, from the selected values of each gated argument."""
        args, kwargs = self._put(self.fronts, args, kwargs)
        return self.network(*args, **kwargs)

    def select(self, *args: Any, **kwargs: Any) -> Any:
        """Cut whole arguments to what this network reads; return ``(args, kwargs)``."""
        return self._put(self._takes, args, kwargs)


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
        kept = gating[0].kept if gating else ()
        self.front = self.fronts[0] if gating else nn.Identity()
        self.n_values, self.dim = len(kept), -1 - gating[0].arguments[0].behind if gating else 0
        self.register_buffer("indices", torch.tensor(kept, dtype=torch.int64), persistent=False)

    def forward(self, values: torch.Tensor) -> Any:
        """Return the predictions of the whole model, from the selected values alone."""
        if self.n_values > 0:
            _check_size(values, self.n_values, self.dim)
        return self.network(self.front(values))

    def select(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values that this model reads, out of whole inputs.

        What a mask of shape ``(n_channels, 1)`` or ``(n_channels, 1, 1)`` leaves free, as the length of a series, may have
        any size.
        """
        (values,), _ = super().select(x)
        return values

    def extra_repr(self) -> str:
        """Return how many values are read."""
        return f"n_values={self.n_values}"


def _changed(tree: Any, path: Sequence[int | str], change: Callable[[Any], Any]) -> Any:
    """Return nested tuples, lists and dictionaries with the value at a path changed."""
    if not path:
        return change(tree)
    key, *rest = path
    if isinstance(tree, dict):
        return {**tree, key: _changed(tree[key], rest, change)}
    parts = [_changed(part, rest, change) if i == key else part for i, part in enumerate(tree)]
    return type(tree)(parts)


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
        support = torch.zeros(math.prod(plan.shape), dtype=mask.gamma.dtype, device=mask.gamma.device)
        support[list(plan.kept)] = 1.0
        core, behind = core_of(plan.shape)
        instead: nn.Module = nn.Identity()
        if plan.place != "nothing":
            multiply = plan.place == "multiply"
            instead = _Multiply(support.reshape(plan.shape)) if multiply else Take(plan.kept, core, behind)
        network = _replaced(network, plan.name, instead)
        for cut in plan.cuts:
            network = _replaced(network, cut.name, _narrowed(network.get_submodule(cut.name), cut))
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    return (PrunedModel if is_single else PrunedNetwork)(network, plans).to(device)


def _replaced(model: nn.Module, name: str, new: nn.Module) -> nn.Module:
    """Return ``model`` with one of its parts replaced, wherever it is used."""
    old = model.get_submodule(name)
    new.training = old.training
    if old is model:
        return new
    for module in list(model.modules()):
        for child_name, child in list(module._modules.items()):
            if child is old:
                module._modules[child_name] = new
    return model


# ---- looking for what can be cut ---------------------------------------------------------------------------------------


@dataclass
class _Seen:
    """What a layer was given along its channels, over all its calls."""

    constant: torch.Tensor
    value: torch.Tensor
    all_nan: torch.Tensor
    any_nan: torch.Tensor


@dataclass
class _Run:
    """One forward of the model."""

    output: Any
    seen: dict[str, _Seen] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)


class _Laboratory:
    """Run a model on an example, with parts of it replaced by NaN."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self.names = dict(model.named_modules())

    def run(self, changes: Mapping[str, Callable[[torch.Tensor], torch.Tensor]], args: Any = None) -> _Run:
        """Run with the outputs of some modules changed; note what the layers that could be cut are given."""
        args, kwargs = (self.args, self.kwargs) if args is None else args
        run = _Run(None)
        with ExitStack() as hooks:
            for name, module in self.names.items():
                dims = {**READERS, **UNITS}
                if type(module) in dims or isinstance(module, FeatureMask):

                    def note(module: nn.Module, inputs: Any, name: str = name) -> None:
                        _note(run, name, module, inputs)

                    hooks.callback(module.register_forward_pre_hook(note).remove)
                if name in changes:

                    def change(module: nn.Module, inputs: Any, output: Any, name: str = name) -> Any:
                        return changes[name](output)

                    hooks.callback(module.register_forward_hook(change).remove)
            torch.manual_seed(0)  # a model that draws random numbers gets the same each time
            run.output = self.model(*args, **kwargs)
        return run


def _note(run: _Run, name: str, module: nn.Module, inputs: Any) -> None:
    x = inputs[0] if inputs else None
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.dim() < 2:
        return
    if isinstance(module, FeatureMask):
        core, behind = core_of(module.shape)
        x = x.flatten(x.dim() - behind - len(core), x.dim() - behind - 1)
        dim = x.dim() - behind - 1
    else:
        dim = {**READERS, **UNITS}[type(module)]
    rows = x.detach().movedim(dim, 0).flatten(1)
    nan = rows.isnan()
    seen = _Seen((rows == rows[:, :1]).all(1), rows[:, 0], nan.all(1), nan.any(1))
    run.order.append(name)
    before = run.seen.get(name)
    if before is not None and before.constant.shape == seen.constant.shape:
        same = before.constant & seen.constant & (before.value == seen.value)
        seen = _Seen(same, seen.value, before.all_nan & seen.all_nan, before.any_nan | seen.any_nan)
    run.seen[name] = seen


def _all_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, torch.nan) if x.is_floating_point() else x


def _with_nan(dead: torch.Tensor, rest: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Replace what a mask holds back by NaN, or everything else, what is held back being 0."""
    if rest:
        return lambda output: torch.full_like(output, torch.nan).masked_fill(dead, 0.0)
    return lambda output: output.masked_fill(dead, torch.nan)


def _find_arguments(lab: _Laboratory, mask: FeatureMask, dead: torch.Tensor, expected: Any) -> list[Argument]:
    """Return the arguments whose places that the mask holds back do not matter, while the others do."""
    core, behind = core_of(mask.shape)
    found = []
    leaves, _ = tree_flatten_with_path((lab.args, lab.kwargs))
    for keys, leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype == torch.bool or leaf.is_complex() or leaf.dim() < 2:
            continue
        path: tuple[Any, ...] = tuple(getattr(key, "idx", getattr(key, "key", None)) for key in keys)
        ways = [t for t in (behind, *range(leaf.dim())) if leaf.dim() - t - len(core) >= 1]
        places = [
            (core, t)
            for t in dict.fromkeys(ways)
            if tuple(leaf.shape[leaf.dim() - t - len(core) :][: len(core)]) == core
        ]
        if math.prod(leaf.shape[1:]) == math.prod(core) and (tuple(leaf.shape[1:]), 0) not in places:
            places.append((tuple(leaf.shape[1:]), 0))
        for sizes, t in places:
            there = dead.reshape(-1).reshape(*sizes, *[1] * t).expand(leaf.shape)
            other = torch.rand(leaf.shape, device=leaf.device)
            if leaf.is_floating_point():
                other = leaf + (1.0 + leaf.abs()) * (0.5 + other.to(leaf.dtype))
            else:
                other = leaf.flatten()[other.flatten().argsort()].reshape(leaf.shape)
            outcomes: list[bool] = []
            for where in (there, ~there):
                try:
                    args = _changed((lab.args, lab.kwargs), path, partial(torch.where, where, other))
                    outcomes.append(_same(expected, lab.run({}, args).output))
                except (RuntimeError, ValueError, IndexError):
                    break
            if outcomes == [True, False]:
                found.append(Argument(path, sizes, t))
                break
    return found


def _plans(lab: _Laboratory, name: str, mask: FeatureMask, normal: _Run, taken: set[Any]) -> Iterator[MaskPlan]:
    """Yield what can be tried for a mask, the best first."""
    support = mask.support()
    dead, kept = ~support, tuple(support.reshape(-1).nonzero().flatten().tolist())
    plan = MaskPlan(name, mask.shape, kept)
    arguments = [a for a in _find_arguments(lab, mask, dead, normal.output) if a.path not in taken]
    whole = replace(plan, arguments=tuple(replace(argument, put_back=True) for argument in arguments))
    if not bool(dead.any()):
        yield replace(plan, place="nothing", arguments=tuple(arguments))
        yield replace(whole, place="nothing")
        return
    reading = _cuts_behind(lab, name, dead, normal)
    if reading:
        before = _cuts_before(lab, name, mask, arguments, normal)
        if before is not None:
            yield replace(plan, place="nothing", arguments=tuple(arguments), cuts=(*before, *reading))
        yield replace(whole, place="take", cuts=tuple(reading))
    if arguments:
        yield whole


def _cuts_behind(lab: _Laboratory, name: str, dead: torch.Tensor, normal: _Run) -> list[Cut]:
    """Find the layers behind a mask that read dead channels, and the channel-wise ones between."""
    try:
        missing = lab.run({name: _with_nan(dead, rest=False)})
        others = tree_map_only(torch.Tensor, _all_nan, (lab.args, lab.kwargs))
        alone = lab.run({name: _with_nan(dead, rest=True)}, others)
    except (RuntimeError, ValueError, IndexError):
        return []
    cuts, reads = [], False
    for other, seen in normal.seen.items():
        layer = lab.names[other]
        if isinstance(layer, FeatureMask) or other not in missing.seen or other not in alone.seen:
            continue
        gone = missing.seen[other].any_nan & ~alone.seen[other].any_nan & seen.constant
        if not bool(gone.any()) or bool(gone.all()):
            continue
        keep = tuple((~gone).nonzero().flatten().tolist())
        if _has_units(layer):
            cuts.append(Cut(other, "units", keep))
        elif _reads(lab, other):
            constants = seen.value[gone]
            if bool((constants == 0).all()):
                cuts.append(Cut(other, "inputs", keep))
            elif type(layer) is nn.Linear:
                cuts.append(Cut(other, "inputs", keep, tuple(constants.tolist())))
            else:
                continue
            reads = True
    return cuts if reads else []


def _has_units(layer: nn.Module) -> bool:
    """Whether a layer has numbers for each channel."""
    return type(layer) in UNITS and getattr(layer, "num_parameters", 2) > 1


def _reads(lab: _Laboratory, name: str) -> bool:
    """Whether a layer's inputs can be cut: its weights are its own, and each output reads all channels."""
    layer = lab.names[name]
    own = "weight" in layer._parameters or "weight_ih_l0" in layer._parameters
    return type(layer) in READERS and own and getattr(layer, "groups", 1) == 1


def _cuts_before(
    lab: _Laboratory, name: str, mask: FeatureMask, arguments: list[Argument], normal: _Run
) -> list[Cut] | None:
    """Find the layers that make what a mask holds back; None if there are none and no argument holds it either."""
    core, _ = core_of(mask.shape)
    dead = ~mask.support()
    flat = dead.reshape(-1)
    hides = {name: lambda output: output.masked_fill(dead, 0.0)}
    changes: dict[str, Callable[[torch.Tensor], torch.Tensor]] = dict(hides)
    makers = []
    if not arguments and len(core) == 1:
        for other, layer in lab.names.items():
            sizes = {nn.Linear: "out_features", nn.Embedding: "embedding_dim"}.get(type(layer), "out_channels")
            plain = type(layer) in MAKERS and "weight" in layer._parameters and getattr(layer, "groups", 1) == 1
            if not plain or getattr(layer, sizes) != flat.numel():
                continue

            def lose(output: torch.Tensor, dim: int = MAKERS[type(layer)]) -> torch.Tensor:
                shape = [1] * output.dim()
                shape[dim] = -1
                return output.masked_fill(flat.reshape(shape), torch.nan)

            run = lab.run({**hides, other: lose})
            seen = run.seen.get(name)
            if _same(normal.output, run.output) and seen is not None and torch.equal(seen.any_nan, flat):
                makers.append(other)
                changes[other] = lose
        if not makers:
            return None
    inputs: Any = (lab.args, lab.kwargs)
    for argument in arguments:

        def poison(leaf: torch.Tensor, argument: Argument = argument) -> torch.Tensor:
            there = flat.reshape(*argument.core, *[1] * argument.behind).expand(leaf.shape)
            return leaf.masked_fill(there, torch.nan) if leaf.is_floating_point() else leaf

        inputs = _changed(inputs, argument.path, poison)
    try:
        run = lab.run(changes, inputs)
    except (RuntimeError, ValueError, IndexError):
        return None
    kept = tuple((~flat).nonzero().flatten().tolist())
    cuts = [Cut(maker, "outputs", kept) for maker in makers]
    for other, seen in run.seen.items():
        layer = lab.names[other]
        if _has_units(layer) and bool(seen.any_nan.any()) and torch.equal(seen.any_nan, seen.all_nan):
            cuts.append(Cut(other, "units", tuple((~seen.any_nan).nonzero().flatten().tolist())))
    return cuts


def prune(
    model: nn.Module,
    example: torch.Tensor | None = None,
    *,
    example_args: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> PrunedNetwork:
    """Return a smaller module that takes only the selected values and predicts what the masked model predicts.

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
    if example_args is None and example_kwargs is None:
        example_args = (_random_example(model, next(iter(masks.values()))) if example is None else example,)
    args, kwargs = tuple(example_args or ()), dict(example_kwargs or {})
    device = next(iter(masks.values())).gamma.device
    forked = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
    with forked, _evaluating(model), torch.no_grad():
        pruned, reasons = _prune(model, masks, args, kwargs)
    if not any(plan.arguments or plan.cuts for plan in pruned.plans):
        raise ValueError(f"nothing can be cut: {'; '.join(reasons)}. Build the small network by hand")
    for reason in reasons:
        warnings.warn(f"prune could not make the network smaller: {reason}", UserWarning, stacklevel=2)
    return pruned.train(model.training)


def _prune(
    model: nn.Module, masks: dict[str, FeatureMask], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[PrunedNetwork, list[str]]:
    """Try the plans of each mask; return the network and why nothing was cut, for each mask without a cut."""
    lab = _Laboratory(model, args, kwargs)
    try:
        normal = lab.run({})
    except Exception as error:
        shapes = [tuple(leaf.shape) for leaf in args if isinstance(leaf, torch.Tensor)]
        raise ValueError(
            f"prune tries the model on an input of shape {', '.join(map(str, shapes))}, and the model does not run on it "
            f"({error}); give a batch of your inputs as example"
        ) from error
    if not _same(normal.output, lab.run({}).output):
        raise ValueError(
            "the model gives other outputs for the same input and torch seed in evaluation mode, so the pruned model "
            "cannot be compared with it; switch off what is random, or prune the part that is not"
        )
    outputs = [
        leaf for leaf in tree_leaves(normal.output) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    ]
    if not all(bool(output.isfinite().all()) for output in outputs):
        raise ValueError(
            "the model gives NaN or infinite outputs for the example, so a smaller one cannot be compared with it"
        )
    is_single = not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor)
    # A second input guards against layers whose input happens to be zero on the first.
    noisy = tree_map_only(
        torch.Tensor, lambda x: x + torch.randn_like(x) if x.is_floating_point() else x, (args, kwargs)
    )
    try:
        examples = [((args, kwargs), normal.output), (noisy, lab.run({}, noisy).output)]
    except (RuntimeError, ValueError, IndexError):
        examples = [((args, kwargs), normal.output)]
    kept = {name: tuple(mask.support().reshape(-1).nonzero().flatten().tolist()) for name, mask in masks.items()}
    accepted = [MaskPlan(name, mask.shape, kept[name]) for name, mask in masks.items()]
    best = assemble(model, accepted, is_single)
    reasons: list[str] = []
    taken: set[Any] = set()
    for number, (name, mask) in enumerate(masks.items()):
        errors: list[str] = []
        for plan in _plans(lab, name, mask, normal, taken):
            trial = [*accepted[:number], plan, *accepted[number + 1 :]]
            try:
                found = assemble(model, trial, is_single)
                if not _agrees(found, examples, is_single):
                    errors.append("without what was cut the outputs are others")
                    continue
            except (RuntimeError, ValueError, IndexError, AssertionError) as error:
                errors.append(str(error).splitlines()[0])
                continue
            best, accepted = found, trial
            taken |= {argument.path for argument in plan.arguments}
            break
        plan = accepted[number]
        if not plan.cuts and bool((~mask.support()).any()):
            why = (
                f"the layers behind it cannot do with fewer values ({errors[0]})"
                if errors
                else ("no linear layer, convolution or recurrent layer reads the entries that it closed by themselves")
            )
            gates = "" if plan.arguments else "; it gates no argument either, or the model reads it past the mask"
            computed = [
                other for other, layer in lab.names.items() if type(layer) in READERS and not _reads(lab, other)
            ]
            if computed:
                why += f"; the weights of {', '.join(computed)} are computed or in groups: make them plain, for example by "
                why += "torch.nn.utils.prune.remove(module, 'weight')"
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


def _random_example(model: nn.Module, mask: FeatureMask) -> torch.Tensor:
    own = {id(tensor) for tensor in (*mask.parameters(), *mask.buffers())}
    kinds = [p.dtype for p in model.parameters() if p.is_floating_point() and id(p) not in own]
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(4, *mask.shape, generator=generator)
    return example.to(mask.gamma.device, kinds[0] if kinds else mask.gamma.dtype)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, Mapping):
        return set(expected) == set(found) and all(_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, (tuple, list)):
        return len(expected) == len(found) and all(_same(a, b) for a, b in zip(expected, found))
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
