"""Train any module: with one FeatureMask through warm-up, selection, closing and refinement, or its weights alone."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from tamiz._utils.files import open_atomic
from tamiz._utils.progress import ProgressBar
from tamiz.core.history import HistorySlot, history_to_dict, is_line_due, new_history, write_line
from tamiz.core.rule import Phase, Slot, selection_schedule
from tamiz.selection import Selection
from tamiz.torch.batches import gather_objects, make_batches, processes
from tamiz.torch.mask import FeatureMask, main_parameter
from tamiz.torch.state import SCHEDULE

#: Changes when a checkpoint of an earlier version cannot be read any more.
CHECKPOINT_FORMAT = 5

#: Factors of the learning rates in the parts of the refinement; the paper divides by 5 twice.
RATES = (1.0, 0.2, 0.04)

Loss = Callable[..., torch.Tensor]


def checked_device(name: Any) -> torch.device:
    """Look up a device by name; raise ValueError if this machine does not have it.

    Examples
    --------
    >>> checked_device("cpu")
    device(type='cpu')
    >>> checked_device("gpu")
    Traceback (most recent call last):
    ValueError: device must be one of torch, such as 'cpu', 'cuda' or 'cuda:1', got 'gpu'.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be one of torch, such as 'cpu', 'cuda' or 'cuda:1', got {name!r}.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r}, but torch finds no GPU here; use 'cpu', or a build of torch for CUDA.")
    return device


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Draw all random numbers inside from ``seed``; restore the random state of the caller afterwards.

    Each process of ``torch.distributed`` draws its own.

    Examples
    --------
    >>> before = torch.random.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(3)
    >>> with seeded(0):
    ...     second = torch.rand(3)
    >>> torch.equal(first, second), torch.equal(before, torch.random.get_rng_state())
    (True, True)
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed + processes()[0])
        yield


def decay_groups(parameters: Iterable[nn.Parameter], l2: float) -> list[dict[str, Any]]:
    """Make parameter groups whose weight decay is the gradient of ``l2 * |w|^2``, on matrices and kernels only.

    Biases, batch normalisation, one-to-one layers and masks are vectors and do not decay. The optimizers add
    ``weight_decay * w`` to the gradient, so the decay is ``2 * l2``. The key "decays" tells the groups apart later.

    Examples
    --------
    >>> [(len(group["params"]), group["weight_decay"]) for group in decay_groups(nn.Linear(3, 2).parameters(), 0.25)]
    [(1, 0.5), (1, 0.0)]
    """
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    if not trainable:
        raise ValueError("The network has no trainable parameters.")
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": 2.0 * l2, "decays": True},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0, "decays": False},
    ]
    return [group for group in groups if group["params"]]


class StepReport(NamedTuple):
    """The step just taken, as callbacks of the trainer see it.

    Attributes
    ----------
    step : int
        Steps taken, from 1.
    phase : str
        "warm-up", "selection", "closing" or "refinement"; training without a mask is all "refinement".
    loss : tensor
        Loss of the batch (0-d, without graph).
    n_alive : int
        Features that are not eliminated; 0 without a mask.
    n_refined : int
        Steps of the refinement taken.
    """

    step: int
    phase: str
    loss: torch.Tensor
    n_alive: int
    n_refined: int


#: Options that train and train_weights share.
DEFAULTS: dict[str, Any] = {
    "optimizer": None, "learning_rate": 0.01, "batch_size": 64, "average": 0.0, "seed": 0,
    "progress": False, "checkpoint": None, "checkpoint_every": 500, "callbacks": (),
}  # fmt: skip
_AT_LEAST = {"batch_size": 1, "selection_steps": 0, "refinement_steps": 0, "n_steps": 1, "checkpoint_every": 1}


class _Run:
    """One training run, alone or as one of several processes; without a mask all of it is refinement."""

    def __init__(self, model: nn.Module, mask: FeatureMask | None, data: Any, loss: Loss, settings: Any) -> None:
        self.started = time.perf_counter()
        self.model, self.mask, self.loss, self.settings = model, mask, loss, settings
        names = ("n_steps", "rates") if mask is None else ("refinement_steps", "refinement_rates")
        self.n_refinement, self.rates = (settings[name] for name in names)
        self.rank, self.n_processes = processes()
        wrapped = any(isinstance(module, DistributedDataParallel) for module in model.modules())
        self.runner = DistributedDataParallel(model) if self.n_processes > 1 and not wrapped else model
        # The fused step is one call for all parameters; in small networks it saves a third of the time of a step.
        adam = partial(torch.optim.Adam, lr=settings["learning_rate"], fused=True)
        make = adam if settings["optimizer"] is None else settings["optimizer"]
        self.optimizer: torch.optim.Optimizer = make(model.parameters()) if callable(make) else make
        if not callable(make) or not isinstance(self.optimizer, torch.optim.Optimizer):
            raise TypeError(
                "optimizer must be a function of the model's parameters that returns a torch.optim.Optimizer, for example "
                f"functools.partial(torch.optim.SGD, lr=0.1), got {make!r}"
            )
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        like, size, seed = main_parameter(model), settings["batch_size"], settings["seed"]
        self.device = like.device
        self.batches = make_batches(data, like, size, seed)
        rows = settings.get("held_out")
        self.held_out = None if rows is None else make_batches(rows, like, size, seed + 1)
        self.history = new_history(0 if mask is None else mask.n_features)
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=self.device)
        self.averages: dict[str, torch.Tensor] = {}
        self.parts: dict[str, torch.Tensor] = {}
        self.n_steps, self.refined, self.closed_at, self.seconds = 0, 0, 0, 0.0
        # Steps before which the refinement is not counted: a closed mask waits, the weights are trained at their first rates.
        selects = mask is not None and mask.n_features_to_select < mask.n_features
        self.refinement_from = settings["selection_steps"] if selects else 0
        model.train()
        if mask is not None:
            schedule = {name: settings[name] for name in SCHEDULE}
            mask.attach(self.optimizer, **schedule, held_out=None if self.held_out is None else self.held_out_loss)

    # ---- the steps -------------------------------------------------------------------------------------------------

    def until_done(self) -> None:
        """Take all steps; leave the model as the caller knows it, in evaluation mode if nothing was raised."""
        settings = self.settings
        checkpoint, callbacks = settings["checkpoint"], list(settings["callbacks"])
        bar = ProgressBar("training") if settings["progress"] and self.rank == 0 else None
        try:
            if checkpoint is not None and Path(checkpoint).exists():
                self.resume(checkpoint)
            while not self.is_done():
                phase = self.phase()
                loss = self.take_step(phase)
                done = self.is_done()
                n_alive = 0 if self.mask is None else self.mask.n_alive
                self.record(phase, loss, n_alive, last=done)
                if checkpoint is not None and (self.n_steps % settings["checkpoint_every"] == 0 or done):
                    self.save(checkpoint)
                for callback in callbacks:
                    callback(StepReport(self.n_steps, phase.label, loss, n_alive, self.refined))
                if bar is not None:
                    note = f"{phase.label}, {n_alive} features" if n_alive else ""
                    bar.update(self.n_steps, self.expected_steps(), note)
        finally:
            self.optimizer.zero_grad(set_to_none=True)
            if self.mask is not None:
                self.mask.detach()
        if bar is not None:
            bar.close()
        self.model.eval()

    def is_done(self) -> bool:
        return self.refined >= self.n_refinement and self.phase() == Phase.REFINEMENT

    def phase(self) -> Phase:
        """Phase of the next step."""
        return Phase.REFINEMENT if self.mask is None else self.mask.phase

    def expected_steps(self) -> int:
        """About how many steps the run has; the selection ends by itself, most often within its ramp."""
        if self.mask is None or self.phase() == Phase.REFINEMENT:
            return max(self.n_steps, self.refinement_from) + self.n_refinement - self.refined
        rule = self.mask.rule
        within_ramp = self.n_steps < rule.warmup_steps + rule.ramp_steps
        return (rule.warmup_steps + rule.ramp_steps if within_ramp else rule.step_limit) + self.n_refinement

    def take_step(self, phase: Phase) -> torch.Tensor:
        refining = phase == Phase.REFINEMENT and self.n_steps >= self.refinement_from
        if refining:
            part = self.refined * len(self.rates) // self.n_refinement
            for group, base in zip(self.optimizer.param_groups, self.base_rates):
                group["lr"] = base * self.rates[part]
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(self.runner, next(self.batches))
        loss.backward()
        self.optimizer.step()
        self.n_steps += 1
        if refining:
            self.refined += 1
            self.take_average()
        elif phase != Phase.REFINEMENT and self.mask is not None and self.mask.closed and self.closed_at == 0:
            self.closed_at = self.n_steps
        return loss.detach()

    def loss_of(self, network: nn.Module, batch: Any) -> torch.Tensor:
        parts = [batch] if isinstance(batch, torch.Tensor) else list(batch)
        x, *targets = (part.to(self.device) if isinstance(part, torch.Tensor) else part for part in parts)
        return self.loss(network(x), *(targets or [x]))

    def held_out_loss(self) -> torch.Tensor:
        # Past the wrapper, which would wait for the gradients of the weights.
        inner = self.model.module if isinstance(self.model, DistributedDataParallel) else self.model
        return self.loss_of(inner, next(self.held_out))  # type: ignore[arg-type]

    def take_average(self) -> None:
        """Add the weights to their averages in the last part of the refinement; put the averages in place at its end."""
        share = self.settings["average"]
        nth = self.refined - int(self.n_refinement * (1.0 - share))
        if share == 0 or nth < 1:
            return
        if not self.parts:  # weights and running statistics, looked up once: it takes longer than the averages
            named = (*self.model.named_parameters(), *self.model.named_buffers())
            self.parts = {name: part.detach() for name, part in named if part.is_floating_point()}
        for name, part in self.parts.items():
            self.averages[name] = part.clone() if nth == 1 else self.averages[name].lerp_(part, 1.0 / nth)
            if self.refined == self.n_refinement:
                part.copy_(self.averages[name])

    def record(self, phase: Phase, loss: torch.Tensor, n_alive: int, last: bool) -> None:
        """Add a step to the history. Losses are summed on their device: the host waits for it only when a line is due."""
        self.loss_sum += loss
        self.history.counters[HistorySlot.SINCE] += 1
        if not is_line_due(self.history, self.n_steps, last):
            return
        alpha, gamma = 1.0, torch.zeros(0)
        if self.mask is not None:
            gamma = self.mask.gamma.detach().reshape(-1).cpu()
            if phase in (Phase.WARM_UP, Phase.SELECTION):
                alpha = float(selection_schedule(self.mask.rule, self.n_steps, 1)[0][0])
        self.history.loss_sum[0] = float(self.loss_sum)
        total, columns = float(gamma.sum(dtype=torch.float64)), np.arange(gamma.numel())
        write_line(self.history, self.n_steps, int(phase), n_alive, total, alpha, gamma.float().numpy(), columns)
        self.loss_sum.zero_()

    # ---- checkpoints -----------------------------------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        """Collect what a checkpoint must agree with to belong to this run."""
        passing = ("optimizer", "held_out", "progress", "checkpoint", "checkpoint_every", "callbacks")
        about = {name: value for name, value in self.settings.items() if name not in passing}
        for name, part in (("rows", self.batches), ("held-out rows", self.held_out)):
            about[name] = getattr(None if part is None else part.loader, "n_rows", None)
        about |= {"format": CHECKPOINT_FORMAT, "optimizer": type(self.optimizer).__name__}
        return about if self.mask is None else {**about, **self.mask.description()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, by the first process; the others wait until it is there."""
        own = {
            "batches": [part.state() for part in (self.batches, self.held_out) if part is not None],
            "random": torch.random.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }
        positions = gather_objects(own)
        if self.rank == 0:
            content = {
                "settings": self.fingerprint(),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "processes": positions,
                "history": [torch.from_numpy(part) for part in self.history],
                "loss_sum": self.loss_sum,
                "counts": [self.n_steps, self.refined, self.closed_at, self.elapsed()],
                "averages": self.averages,
            }
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with open_atomic(path) as file:
                torch.save(content, file)
        if self.n_processes > 1:
            distributed.barrier()

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint."""
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            stored = content["settings"]
        except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not a checkpoint of tamiz: delete it or give another path") from error
        for name, value in self.fingerprint().items():
            if stored.get(name) != value:
                differ = f"{name}={stored.get(name)!r}, now {name}={value!r} is asked for"
                raise ValueError(f"{path} belongs to a run with {differ}; delete it or give another path")
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        for part, saved in zip(self.history, content["history"]):
            part[...] = saved.numpy()
        self.loss_sum.copy_(content["loss_sum"])
        self.n_steps, self.refined, self.closed_at, self.seconds = content["counts"]
        self.averages = {name: part.to(self.device) for name, part in content["averages"].items()}
        own = content["processes"][self.rank % len(content["processes"])]  # there may be fewer than before, or more
        for batches, state in zip((self.batches, self.held_out), own["batches"]):
            batches.load(state)  # type: ignore[union-attr]
        torch.random.set_rng_state(own["random"])
        if own["random_cuda"] is not None:
            torch.cuda.set_rng_state(own["random_cuda"], self.device)

    def elapsed(self) -> float:
        return self.seconds + time.perf_counter() - self.started


def train(
    model: nn.Module,
    data: Any,
    loss: Loss,
    *,
    warmup_steps: int = 0,
    ramp_steps: int = 2000,
    max_steps: int | None = None,
    selection_steps: int = 0,
    refinement_steps: int = 1000,
    refinement_rates: Sequence[float] = RATES,
    held_out: Any = None,
    **options: Any,
) -> Selection:
    """Train a model and select its inputs, in one run.

    The model ends in evaluation mode, with a closed mask. The random state of the caller is left as it was: the run has
    its own, from ``seed`` (the weights the model starts with are the caller's).

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
    held_out : as ``data``, default=None
        Rows that move gamma and do not train the weights, a batch for each step: see :meth:`FeatureMask.held_out`.
    **options
        optimizer : callable, default=None
            Called with the model's parameters, returns the optimizer: ``functools.partial(torch.optim.SGD, lr=0.1)``.
            None: Adam with ``learning_rate``.
        learning_rate : float, default=0.01
            Learning rate of the default optimizer.
        batch_size : int, default=64
            Rows per batch, for data in memory.
        average : float, default=0.0
            Share of the refinement, at its end, over which the weights are averaged; 0 keeps the last ones. With a rate
            that stays high, the average of many good networks beats each of them.
        seed : int, default=0
            Decides the order of the rows and what the model itself draws (dropout).
        progress : bool, default=False
            Whether a run of more than two seconds draws a bar with the time left on stderr.
        checkpoint : path, default=None
            A file that the state of the run is kept in. If it exists, the run goes on from there, and ends with exactly
            what it would have ended with without the break.
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
    masks = [module for module in model.modules() if isinstance(module, FeatureMask)]
    if len(masks) != 1:
        raise ValueError(f"the model must hold exactly one FeatureMask, it holds {len(masks)}")
    mask = masks[0]
    if mask.step > 0:
        raise ValueError(f"the mask has taken {mask.step} steps already: call mask.reset() to select anew")
    schedule = {"warmup_steps": warmup_steps, "ramp_steps": ramp_steps, "max_steps": max_steps, "held_out": held_out}
    phases = {"selection_steps": selection_steps, "refinement_steps": refinement_steps}
    settings = {**schedule, **phases, "refinement_rates": [float(rate) for rate in refinement_rates]}
    run = _train(model, mask, data, loss, settings, options)
    ranking, support = (part.reshape(-1).cpu().numpy() for part in (mask.ranking(), mask.support()))
    return Selection(
        support=support,
        ranking=ranking,
        variant=mask.variant,
        converged=int(mask.counters[Slot.FORCED]) == 0,
        n_steps=run.n_steps,
        closed_at=run.closed_at,
        seed=run.settings["seed"],
        seconds=run.elapsed(),
        history=history_to_dict(run.history, ranking, int(support.sum())),
        groups=None if mask.group_names is None or mask.gates is None else mask.gates.group,
        group_names=mask.group_names,
        shape=mask.shape if len(mask.shape) > 1 else None,
        engine="torch",
    )


def train_weights(
    model: nn.Module, data: Any, loss: Loss, *, n_steps: int = 1000, rates: Sequence[float] = RATES, **options: Any
) -> dict[str, np.ndarray]:
    """Train the weights of a model that selects nothing, for example a pruned one: the refinement of :func:`train`.

    A penalty on the weights is part of ``loss``, which may look at the model.

    Parameters
    ----------
    model : nn.Module
        Any module without a :class:`FeatureMask`; trained on the device it lies on, left in evaluation mode.
    data : tuple of tensors or arrays, or iterable of batches
        As in :func:`train`.
    loss : callable
        As in :func:`train`.
    n_steps : int, default=1000
        Steps in all.
    rates : sequence of float, default=(1.0, 0.2, 0.04)
        Factors of the learning rates, one for each of as many equal parts of the run.
    **options
        As in :func:`train`.

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
    if any(isinstance(module, FeatureMask) for module in model.modules()):
        raise ValueError("the model holds a FeatureMask, which train_weights would not move: use tamiz.torch.train")
    if next(model.parameters(), None) is None:
        raise ValueError("the model has no parameters to train")
    settings = {"n_steps": n_steps, "rates": [float(rate) for rate in rates]}
    lines = history_to_dict(_train(model, None, data, loss, settings, options).history, np.zeros(0, np.int64), 0)
    return {name: lines[name] for name in ("step", "loss")}


def _train(model: nn.Module, mask: FeatureMask | None, data: Any, loss: Loss, settings: Any, options: Any) -> _Run:
    """Check the settings and take all steps of a run."""
    unknown = options.keys() - DEFAULTS.keys()
    if unknown:
        raise TypeError(f"there is no option {min(unknown)!r}; there are {', '.join(DEFAULTS)}")
    settings = {**DEFAULTS, **options, **settings}
    for name, value in settings.items():
        if name in _AT_LEAST and (not isinstance(value, int) or value < _AT_LEAST[name]):
            raise ValueError(f"{name} must be an integer of at least {_AT_LEAST[name]}, got {value!r}")
        if name in ("refinement_rates", "rates") and not (value and all(rate > 0 for rate in value)):
            raise ValueError(f"{name} must be positive numbers, at least one, got {value!r}")
    if not 0 <= settings["average"] <= 1:
        raise ValueError(f"average must be a share from 0 to 1, got {settings['average']!r}")
    if not settings["learning_rate"] > 0:
        raise ValueError(f"learning_rate must be above zero, got {settings['learning_rate']!r}")
    with seeded(settings["seed"], next(model.parameters()).device):
        run = _Run(model, mask, data, loss, settings)
        run.until_done()
    return run
