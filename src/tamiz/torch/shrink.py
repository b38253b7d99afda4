"""Work on the living columns only: a folded first layer gets narrower as features are eliminated.

Where the masked input goes straight into an ``nn.Linear``, a dead column changes nothing any more: its gamma is zero, and
so is the gradient of its weights. The trainer then works on the columns that are left: those of the data, of the layer's
weights, of the optimizer's moments and of the mask. In the end everything is put back into its place.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from tamiz.core import Slot
from tamiz.torch.fold import watched
from tamiz.torch.mask import FeatureMask

#: Columns are dropped once fewer than this share of those at work are alive: each time costs a copy of what is left.
SHARE = 0.7

#: Optimizers that treat every weight by itself, so that the others do not notice when some are taken away.
ELEMENTWISE = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Adamax,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
)


def reads_first(model: nn.Module, mask: FeatureMask) -> bool:
    """Check that only the mask sees the input of the model: it is first in (nested) ``nn.Sequential``.

    Examples
    --------
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask
    >>> mask = FeatureMask(4, 2)
    >>> reads_first(nn.Sequential(nn.Sequential(mask, nn.Linear(4, 1))), mask), reads_first(nn.Sequential(nn.ReLU(), mask), mask)
    (True, False)
    """
    module = model
    while module is not mask:
        if type(module) is not nn.Sequential or len(module) == 0 or module._forward_pre_hooks:
            return False
        module = module[0]
    return True


class Probe(TorchFunctionMode):
    """Watch one forward (and loss): what became of the masked input, and how often each parameter was used.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask
    >>> mask, layer = FeatureMask(4, 2), nn.Linear(4, 1)
    >>> model = nn.Sequential(mask, layer)
    >>> with Probe() as probe:
    ...     _ = model(torch.zeros(2, 4))
    >>> probe.layer_behind(mask, model) is layer
    True
    """

    def __init__(self) -> None:
        super().__init__()
        self._uses: Counter[int] = Counter()
        self._watch = watched()
        self._fates: list[torch.Tensor | None] = []

    def __enter__(self) -> Probe:
        self._fates = self._watch.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._watch.__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") != "__get__":  # asking for the shape or the type is no use
            leaves = tree_leaves((args, kwargs))
            self._uses.update(id(leaf) for leaf in leaves if isinstance(leaf, nn.Parameter))
        return func(*args, **(kwargs or {}))

    def layer_behind(self, mask: FeatureMask, model: nn.Module) -> nn.Linear | None:
        """Return the ``nn.Linear`` that alone took the masked input and whose weights had no other use, or None."""
        if len(mask.shape) != 1 or len(self._fates) != 1 or self._fates[0] is None:
            return None
        weight = self._fates[0]
        owners = [(module, name) for module in model.modules() for name, p in module._parameters.items() if p is weight]
        if len(owners) != 1 or self._uses[id(weight)] != 1:
            return None
        layer, name = owners[0]
        if type(layer) is not nn.Linear or name != "weight" or layer.in_features != mask.n_features:
            return None
        return layer


def find_folded_layer(model: nn.Module, mask: FeatureMask, example: torch.Tensor) -> nn.Linear | None:
    """Return the layer that :class:`Probe` finds in a forward in evaluation mode, which leaves no trace in the model."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.enable_grad(), Probe() as probe:
            model(example)
    finally:
        for module, mode in modes:
            module.training = mode
    return probe.layer_behind(mask, model)


class Shrinker:
    """Take eliminated columns out of a mask, the layer behind it and the layer's optimizer, and put them back.

    Parameters
    ----------
    mask : FeatureMask
        The mask, a vector.
    layer : nn.Linear
        The layer that alone takes the masked input.
    optimizer : torch.optim.Optimizer
        The optimizer of both.
    """

    def __init__(self, mask: FeatureMask, layer: nn.Linear, optimizer: torch.optim.Optimizer) -> None:
        self.mask, self.layer, self.optimizer = mask, layer, optimizer
        self.columns: torch.Tensor | None = None
        self._whole: dict[str, torch.Tensor] = {}
        self._hook: Any = None

    @staticmethod
    def can_handle(layer: nn.Linear, optimizer: torch.optim.Optimizer) -> bool:
        """Check that columns can be taken out without a trace in the rest."""
        weight = layer.weight
        watched_from_outside = weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None)
        return type(optimizer) in ELEMENTWISE and not watched_from_outside and not layer._forward_pre_hooks

    @property
    def width(self) -> int:
        """Return the number of columns at work."""
        return self.layer.in_features

    def is_due(self) -> bool:
        """Check whether so many were eliminated that it pays to drop them."""
        n_alive = int(self.mask.counters[Slot.OPEN]) or self.mask.n_features_to_select
        return n_alive < SHARE * self.width

    def living(self) -> torch.Tensor:
        """Return the places of the living among the columns at work."""
        return (self.mask.rank <= self.mask.n_features_to_select).nonzero().flatten()

    def keep(self, places: torch.Tensor) -> None:
        """Drop all columns at work but those at ``places``."""
        with torch.no_grad():
            if self.columns is None:
                self._whole = self._tensors()  # put aside, not copied: what follows are new tensors
                self.columns = torch.arange(self.mask.n_features, device=places.device)
                self._hook = self.mask.register_forward_pre_hook(self._gather)
            else:
                self._write_back()
            self.columns = self.columns[places]
            for name, tensor in self._tensors().items():
                self._put(name, tensor.index_select(-1, places))
        self._resize(places.numel())

    def restore(self) -> None:
        """Put everything back into its place; what was dropped has the values it had then."""
        if self.columns is None:
            return
        with torch.no_grad():
            self._write_back()
            for name, tensor in self._whole.items():
                self._put(name, tensor)
        self._resize(self.mask.n_features)
        self._hook.remove()
        self.columns, self._whole, self._hook = None, {}, None

    def _write_back(self) -> None:
        assert self.columns is not None
        for name, tensor in self._tensors().items():
            whole = self._whole.get(name)
            if whole is None:  # a moment that the optimizer made only after columns had been dropped
                whole = self._whole[name] = tensor.new_zeros(*tensor.shape[:-1], self.mask.n_features)
            whole.index_copy_(-1, self.columns, tensor)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return everything that has one entry, or one column, for each column at work."""
        mask, weight = self.mask, self.layer.weight
        found = {"gamma": mask.gamma.data, "first": mask.first, "second": mask.second, "rank": mask.rank}
        found["weight"] = weight.data
        for key, value in self.optimizer.state.get(weight, {}).items():
            if isinstance(value, torch.Tensor) and value.shape == weight.shape:
                found["state." + key] = value
        return found

    def _put(self, name: str, tensor: torch.Tensor) -> None:
        if name == "gamma":
            self.mask.gamma.data = tensor
        elif name == "weight":
            self.layer.weight.data = tensor
        elif name.startswith("state."):
            self.optimizer.state[self.layer.weight][name[len("state.") :]] = tensor
        else:
            setattr(self.mask, name, tensor)

    def _resize(self, width: int) -> None:
        self.layer.in_features = width
        self.mask.shape = (width,)
        # Gradients of the old width must not be added to.
        self.layer.weight.grad = self.mask.gamma.grad = None

    def _gather(self, mask: nn.Module, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Cut inputs of the full width to the columns at work; those already cut pass."""
        (x,) = args
        if self.columns is None or x.shape[-1] == self.width:
            return args
        return (x.index_select(-1, self.columns),)
