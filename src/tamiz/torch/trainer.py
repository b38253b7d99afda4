"""Train any module: with one FeatureMask through warm-up, selection, closing and refinement, or its weights alone.

Where the masked input goes straight into an ``nn.Linear``, a dead column changes nothing any more: its gamma is zero, and so is
the gradient of its weights. The trainer then works on the columns that are left: those of the data, of the layer's weights, of
the optimizer's moments and of the mask. In the end everything is put back into its place.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from tamiz.core.history import history_to_dict
from tamiz.core.rule import Phase, Slot, selection_schedule
from tamiz.selection import Selection
from tamiz.torch.batches import TensorBatches
from tamiz.torch.fold import watched
from tamiz.torch.mask import FeatureMask, find_mask
from tamiz.torch.run import MakeOptimizer, Run, StepReport, seeded, split_batch

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
        self.mask._update()

    def _gather(self, mask: nn.Module, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Cut inputs of the full width to the columns at work; those already cut pass."""
        (x,) = args
        if self.columns is None or x.shape[-1] == self.width:
            return args
        return (x.index_select(-1, self.columns),)


class SelectionRun(Run):
    """Train a model that holds a mask, through all phases.

    Parameters
    ----------
    model : nn.Module
        Holds ``mask``.
    mask : FeatureMask
        The mask.
    data, loss, optimizer
        As in :func:`tamiz.torch.train`.
    settings : dict
        The parameters of :func:`tamiz.torch.train`.
    """

    def __init__(
        self,
        model: nn.Module,
        mask: FeatureMask,
        data: Any,
        loss: Callable[..., torch.Tensor],
        optimizer: MakeOptimizer | None,
        settings: dict[str, Any],
    ) -> None:
        self.mask, self.n_features = mask, mask.n_features
        if mask.n_features_to_select < mask.n_features:
            self.refinement_from = settings["selection_steps"]
        self.shrinker: Shrinker | None = None
        self.compacts = False
        self.closed_at = 0
        self.all_columns = np.arange(mask.n_features)
        super().__init__(
            model, data, loss, optimizer, settings, settings["refinement_steps"], settings["refinement_rates"]
        )
        self.handle = mask.attach(
            self.optimizer, **{name: settings[name] for name in ("warmup_steps", "ramp_steps", "max_steps")}
        )

    def reference(self) -> torch.Tensor:
        """Return gamma, whose device and type the data are brought to."""
        return self.mask.gamma

    # ---- the steps -------------------------------------------------------------------------------------------------

    def phase(self) -> Phase:
        """Return the phase of the next step."""
        if self.n_steps < self.settings["warmup_steps"]:
            return Phase.WARM_UP
        if int(self.mask.counters[Slot.OPEN]) > 0:
            return Phase.SELECTION
        return Phase.REFINEMENT if self.mask.closed else Phase.CLOSING

    def n_alive(self) -> int:
        """Return the number of features that are not eliminated."""
        return (
            self.mask.n_alive
            if self.mask.gates is not None
            else (int(self.mask.counters[Slot.OPEN]) or self.mask.n_features_to_select)
        )

    def expected_steps(self) -> int:
        """Return about how many steps the run has; the selection ends by itself, most often within its ramp."""
        if self.phase() == Phase.REFINEMENT:
            return max(self.n_steps, self.refinement_from) + self.refinement_steps - self.refined
        rule = self.mask.rule
        within_ramp = self.n_steps < rule.warmup_steps + rule.ramp_steps
        return (rule.warmup_steps + rule.ramp_steps if within_ramp else rule.step_limit) + self.refinement_steps

    def take_step(self, phase: Phase) -> torch.Tensor:
        """Take one step; return the loss of its batch."""
        loss = super().take_step(phase)
        if phase != Phase.REFINEMENT and self.mask.closed and self.closed_at == 0:
            self.closed_at = self.n_steps
        if phase in (Phase.SELECTION, Phase.CLOSING):
            self.drop_dead_columns()
        return loss

    def forward(self, inputs: torch.Tensor, targets: Sequence[Any]) -> torch.Tensor:
        """Return the loss of a batch; the first forward shows which layer takes the masked input."""
        if self.n_steps > 0 or not self.settings["shrink"] or self.is_shared:
            return super().forward(inputs, targets)
        with Probe() as probe:
            loss = super().forward(inputs, targets)
        self.prepare_shrinking(probe)
        return loss

    def fixed(self) -> list[torch.Tensor]:
        """Return the tensors of the mask, which is closed in the refinement."""
        return [*self.mask.parameters(), *self.mask.buffers()]

    def describe_mask(self, phase: Phase) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Return the sum of gamma, alpha, gamma and the columns that its entries belong to."""
        gamma = self.mask.gamma.detach().reshape(-1)
        shrunk = None if self.shrinker is None else self.shrinker.columns
        columns = self.all_columns if shrunk is None else shrunk.cpu().numpy()
        alpha = 1.0
        if phase in (Phase.WARM_UP, Phase.SELECTION):
            alpha = float(selection_schedule(self.mask.rule, self.n_steps, 1)[0][0])
        total = float(gamma.sum(dtype=torch.float64))
        return total, alpha, gamma.to("cpu", torch.float32).numpy(), columns

    # ---- eliminated columns ----------------------------------------------------------------------------------------

    def prepare_shrinking(self, probe: Probe) -> None:
        """Find out whether eliminated columns can be dropped from the first layer, and from the data."""
        if self.mask.gates is not None:  # what leaves the working set could not come back into a budget
            return
        layer = probe.layer_behind(self.mask, self.model)
        if layer is None or not Shrinker.can_handle(layer, self.optimizer):
            return
        self.shrinker = Shrinker(self.mask, layer, self.optimizer)
        # The data can be cut only if nothing but the mask reads it.
        parts = self.batches.parts if isinstance(self.batches, TensorBatches) else []
        self.compacts = len(parts) > 1 and parts[0].dim() == 2 and reads_first(self.model, self.mask)

    def drop_dead_columns(self) -> None:
        """Drop the eliminated columns once there are enough of them."""
        if self.shrinker is not None and self.shrinker.is_due():
            self.keep_columns(self.shrinker.living())

    def keep_columns(self, places: torch.Tensor) -> None:
        """Go on with these columns of those at work."""
        assert self.shrinker is not None
        self.optimizer.zero_grad(set_to_none=True)
        self.shrinker.keep(places)
        if self.compacts and isinstance(self.batches, TensorBatches):
            self.batches.keep_columns(places)

    def close(self) -> None:
        """Leave the model as the caller knows it, however the run ended."""
        super().close()
        if self.shrinker is not None:
            self.shrinker.restore()
        self.handle.remove()

    # ---- checkpoints -----------------------------------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with to belong to this run."""
        mask = self.mask
        about: dict[str, Any] = {"n_features": mask.n_features, "n_features_to_select": mask.rule.n_features_to_select}
        if mask.rule.strength is not None:
            about["strength"] = mask.rule.strength
        return {**super().fingerprint(), **about, "variant": mask.variant}

    def content(self) -> dict[str, Any]:
        """Return the state of the run."""
        return {**super().content(), "closed_at": self.closed_at, "shrinks": self.shrinker is not None}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, with whole shapes, so that it can be loaded into the user's model by hand as well."""
        columns = None if self.shrinker is None else self.shrinker.columns
        if self.shrinker is not None:
            self.shrinker.restore()
        self.write(path, {**self.content(), "columns": columns})
        if self.shrinker is not None and columns is not None:
            self.shrinker.keep(columns)
        self.parts = {}  # the weights may lie elsewhere now

    def load(self, content: dict[str, Any]) -> None:
        """Take over a stored state, all but batches and random numbers."""
        super().load(content)
        self.closed_at = content["closed_at"]
        if content["shrinks"]:
            self.find_layer_again(content["columns"])

    def find_layer_again(self, columns: torch.Tensor | None) -> None:
        """Find the layer that takes the masked input by a forward in evaluation mode, which leaves no trace."""
        inputs, _ = split_batch(next(self.batches), self.device)
        self.model.eval()
        with Probe() as probe:
            self.model(inputs)
        self.model.train()
        self.prepare_shrinking(probe)
        if columns is not None:
            self.keep_columns(columns.to(self.device))

    # ---- the record ------------------------------------------------------------------------------------------------

    def selection(self) -> Selection:
        """Return the record of the run."""
        mask = self.mask
        ranking = mask.ranking().reshape(-1).cpu().numpy()
        support = mask.support().reshape(-1).cpu().numpy()
        return Selection(
            support=support,
            ranking=ranking,
            variant=mask.variant,
            converged=int(mask.counters[Slot.FORCED]) == 0,
            n_steps=self.n_steps,
            closed_at=self.closed_at,
            seed=self.settings["seed"],
            seconds=self.elapsed(),
            history=history_to_dict(self.history, ranking, int(support.sum())),
            groups=None if mask.group_names is None or mask.gates is None else mask.gates.group,
            group_names=mask.group_names,
            shape=mask.shape if len(mask.shape) > 1 else None,
            engine="torch",
        )


def train(
    model: nn.Module,
    data: Any,
    loss: Callable[..., torch.Tensor],
    *,
    optimizer: MakeOptimizer | None = None,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    warmup_steps: int = 0,
    ramp_steps: int = 2000,
    max_steps: int | None = None,
    selection_steps: int = 0,
    refinement_steps: int = 1000,
    refinement_rates: Sequence[float] = (1.0, 0.2, 0.04),
    average: float = 0.0,
    shrink: bool = True,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    callbacks: Iterable[Callable[[StepReport], Any]] = (),
) -> Selection:
    """Train a model and select its inputs, in one run.

    The model ends in evaluation mode, with a closed mask and its original shapes. The random state of the caller is left
    as it was: the run has its own, from ``seed`` (the weights the model starts with are the caller's).

    Under ``torchrun``, after ``torch.distributed.init_process_group``, the model is trained data parallel: rows in memory are
    shared by the processes, a loader gives each process its own rows (:class:`ParquetRows`), and begins anew where it
    is shorter than the others. The first process writes the checkpoint, from which all go on after a restart.

    Parameters
    ----------
    model : nn.Module
        Any module that holds exactly one :class:`FeatureMask`; trained on the device it lies on.
    data : tuple of tensors or arrays, or iterable of batches
        ``(X, y)`` or ``(X, y, sample_weight)`` in memory, or anything that gives such batches again and again, for example
        a ``DataLoader``. A batch or ``data`` that is a single tensor has no target.
    loss : callable
        ``loss(model(x), y)``, with a third argument where a batch has three parts; ``loss(model(x), x)`` without target.
    optimizer : callable, default=None
        Called with the model's parameters, returns the optimizer: ``functools.partial(torch.optim.SGD, lr=0.1)``. By
        default Adam with ``learning_rate``.
    learning_rate : float, default=0.01
        Learning rate of the default optimizer.
    batch_size : int, default=64
        Rows per batch, for data in memory.
    warmup_steps : int, default=0
        Steps during which only the weights are trained, as in :meth:`FeatureMask.attach`.
    ramp_steps : int, default=2000
        The paper's T: steps until the penalty alone decides.
    max_steps : int, default=None
        Steps of selection after which the M largest are kept; None for four ramps.
    selection_steps : int, default=0
        Steps, warm-up included, before which the refinement does not begin: a mask that is closed sooner rests, and the
        weights are trained on at their first rates. 0: the refinement begins when the mask is closed.
    refinement_steps : int, default=1000
        Steps of refinement, after the mask is closed.
    refinement_rates : sequence of float, default=(1.0, 0.2, 0.04)
        Factors of the learning rates, one for each of as many equal parts of the refinement. The default divides by 5
        twice, as the paper does.
    average : float, default=0.0
        Share of the refinement, at its end, over which the weights are averaged; 0 keeps the last ones. With a rate that
        stays high, the average of many good networks beats each of them.
    shrink : bool, default=True
        Whether eliminated columns are dropped from the first layer, where the masked input goes straight into an
        ``nn.Linear``. The result is the same, the time is not. Not done by several processes.
    seed : int, default=0
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool, default=False
        Whether a run of more than two seconds draws a bar with the time left on stderr.
    checkpoint : path, default=None
        A file that the state of the run is kept in. If it exists, the run goes on from there, and ends with exactly what it
        would have ended with without the break.
    checkpoint_every : int, default=500
        Steps between two checkpoints.
    callbacks : iterable of callable, default=()
        Each is called with a :class:`StepReport` after every step.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask, prune, train
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(200, 20)
    >>> y = X[:, 3] - 2 * X[:, 11]
    >>> model = nn.Sequential(FeatureMask(20, 2), nn.Linear(20, 1), nn.Flatten(0))
    >>> selection = train(model, (X, y), nn.functional.mse_loss, ramp_steps=500, refinement_steps=200)
    >>> selection.indices.tolist()
    [3, 11]
    >>> prune(model)(X[:, [3, 11]]).shape
    torch.Size([200])
    """
    settings = {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "warmup_steps": warmup_steps,
        "ramp_steps": ramp_steps,
        "max_steps": max_steps,
        "selection_steps": selection_steps,
        "refinement_steps": refinement_steps,
        "refinement_rates": [float(rate) for rate in refinement_rates],
        "average": float(average),
        "shrink": shrink,
        "seed": seed,
    }
    _check_settings(settings, checkpoint_every)
    mask = _only_mask(model)
    with seeded(seed, mask.gamma.device):
        run = SelectionRun(model, mask, data, loss, optimizer, settings)
        _finish(run, checkpoint, checkpoint_every, callbacks, progress)
    return run.selection()


def train_weights(
    model: nn.Module,
    data: Any,
    loss: Callable[..., torch.Tensor],
    *,
    optimizer: MakeOptimizer | None = None,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    n_steps: int = 1000,
    rates: Sequence[float] = (1.0, 0.2, 0.04),
    average: float = 0.0,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    callbacks: Iterable[Callable[[StepReport], Any]] = (),
) -> dict[str, np.ndarray]:
    """Train the weights of a model that selects nothing, for example a pruned one.

    This is the refinement of :func:`train` on its own; the parameters mean the same. A penalty on the weights is part of
    ``loss``, which may look at the model.

    Parameters
    ----------
    model : nn.Module
        Any module without a :class:`FeatureMask`; trained on the device it lies on, left in evaluation mode.
    data : tuple of tensors or arrays, iterable of batches, or TensorBatches
        As in :func:`train`; :class:`~tamiz.torch.batches.TensorBatches` are used as they are.
    loss : callable
        As in :func:`train`.
    optimizer : callable, default=None
        As in :func:`train`.
    learning_rate : float, default=0.01
        Learning rate of the default optimizer.
    batch_size : int, default=64
        Rows per batch, for data in memory.
    n_steps : int, default=1000
        Steps in all.
    rates : sequence of float, default=(1.0, 0.2, 0.04)
        Factors of the learning rates, one for each of as many equal parts of the run.
    average : float, default=0.0
        Share of the run, at its end, over which the weights are averaged.
    seed : int, default=0
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool, default=False
        Whether a run of more than two seconds draws a bar with the time left on stderr.
    checkpoint : path, default=None
        A file that the state of the run is kept in.
    checkpoint_every : int, default=500
        Steps between two checkpoints.
    callbacks : iterable of callable, default=()
        Each is called with a :class:`StepReport` after every step.

    Returns
    -------
    dict of str to ndarray
        "step" and "loss": the mean loss since the line before, thinned to at most 256 lines.

    Examples
    --------
    >>> X = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> model = nn.Linear(1, 1)
    >>> history = train_weights(model, (X, 3 * X), nn.functional.mse_loss, learning_rate=0.1, n_steps=600)
    >>> round(model.weight.item(), 3)
    3.0
    """
    settings: dict[str, Any] = {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "n_steps": n_steps,
        "rates": [float(rate) for rate in rates],
        "average": float(average),
        "seed": seed,
    }
    _check_settings(settings, checkpoint_every)
    if any(isinstance(module, FeatureMask) for module in model.modules()):
        raise ValueError("the model holds a FeatureMask, which train_weights would not move: use tamiz.torch.train")
    first = next(model.parameters(), None)
    if first is None:
        raise ValueError("the model has no parameters to train")
    with seeded(seed, first.device):
        run = Run(model, data, loss, optimizer, settings, n_steps, settings["rates"])
        _finish(run, checkpoint, checkpoint_every, callbacks, progress)
    return run.losses()


def _finish(run: Run, checkpoint: Any, every: int, callbacks: Iterable[Callable[..., Any]], progress: bool) -> None:
    """Take all steps of a run; leave the model whole, in evaluation mode if nothing was raised."""
    try:
        if checkpoint is not None:
            run.resume(checkpoint)
        run.until_done(checkpoint, every, list(callbacks), progress)
    finally:
        run.close()
    run.model.eval()


def _check_settings(settings: dict[str, Any], checkpoint_every: int) -> None:
    least = {"batch_size": 1, "selection_steps": 0, "refinement_steps": 0, "n_steps": 1, "checkpoint_every": 1}
    for name, value in {**settings, "checkpoint_every": checkpoint_every}.items():
        if name in least and (not isinstance(value, int) or value < least[name]):
            raise ValueError(f"{name} must be an integer of at least {least[name]}, got {value!r}")
        if name in ("refinement_rates", "rates") and not (value and all(rate > 0 for rate in value)):
            raise ValueError(f"{name} must be positive numbers, at least one, got {value!r}")
    if not 0 <= settings["average"] <= 1:
        raise ValueError(f"average must be a share from 0 to 1, got {settings['average']!r}")
    if not settings["learning_rate"] > 0:
        raise ValueError(f"learning_rate must be above zero, got {settings['learning_rate']!r}")


def _only_mask(model: nn.Module) -> FeatureMask:
    mask = find_mask(model)
    if mask.step > 0:
        raise ValueError(
            f"the mask has taken {mask.step} steps already: call mask.reset() to select anew, or build a new model"
        )
    return mask
