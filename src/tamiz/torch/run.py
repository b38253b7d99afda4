"""One training run: steps, learning rates, averages, history and checkpoints; alone or as one of several processes."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from tamiz._utils.files import open_atomic
from tamiz._utils.progress import ProgressBar
from tamiz.core.history import HistorySlot, history_to_dict, is_line_due, new_history, write_line
from tamiz.core.rule import Phase
from tamiz.torch.batches import TensorBatches, make_batches, processes


def checked_device(name: Any) -> torch.device:
    """Return the device of that name, or raise if this machine does not have it.

    Examples
    --------
    >>> checked_device("cpu")
    device(type='cpu')
    >>> checked_device("gpu")
    Traceback (most recent call last):
    ValueError: device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got 'gpu'.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got {name!r}."
        ) from None
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


def write_checkpoint(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write ``content`` so that a reader, or a crash, finds the old file or the new one, never half of one.

    Examples
    --------
    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint(folder + "/run.pt", {"step": 3, "state": torch.ones(1)})
    ...     read_checkpoint(folder + "/run.pt")
    {'step': 3, 'state': tensor([1.])}
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path) as file:
        torch.save(content, file)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what :func:`write_checkpoint` wrote, or None if there is no such file."""
    if not Path(path).exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of tamiz: delete it or give another path") from error
    if not isinstance(content, dict):
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of tamiz: delete it or give another path")
    return content


def check_same_run(path: str | os.PathLike[str], stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise ValueError if a run was started with other settings.

    Examples
    --------
    >>> check_same_run("run.pt", {"seed": 1}, {"seed": 2})
    Traceback (most recent call last):
    ValueError: run.pt belongs to a run with seed=1, now seed=2 is asked for; delete it or give another path
    """
    for name, value in wanted.items():
        if stored.get(name) != value:
            raise ValueError(
                f"{os.fspath(path)} belongs to a run with {name}={stored.get(name)!r}, now {name}={value!r} is asked for; "
                "delete it or give another path"
            )


#: Called with the parameters of a model, returns their optimizer.
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def decay_groups(parameters: Iterable[nn.Parameter], l2: float) -> list[dict[str, Any]]:
    """Return parameter groups whose weight decay is the gradient of ``l2 * |w|^2``, on matrices and kernels only.

    Biases, batch normalisation, one-to-one layers and masks are vectors and do not decay. The optimizers add
    ``weight_decay * w`` to the gradient, so the decay is ``2 * l2``. The key "decays" tells the groups apart later.

    Examples
    --------
    >>> [(len(group["params"]), group["weight_decay"]) for group in decay_groups(nn.Linear(3, 2).parameters(), 0.25)]
    [(1, 0.5), (1, 0.0)]
    """
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": 2.0 * l2, "decays": True},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0, "decays": False},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError("The network has no trainable parameters.")
    return groups


def make_optimizer(model: nn.Module, make: MakeOptimizer | None, learning_rate: float) -> torch.optim.Optimizer:
    """Return what ``make`` returns for the parameters of a model, checked; None: Adam with ``learning_rate``.

    Examples
    --------
    >>> type(make_optimizer(nn.Linear(2, 1), None, 0.01)).__name__
    'Adam'
    """
    if make is None:
        # The fused step is one call for all parameters; in small networks it saves a third of the time of a step.
        return torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    if isinstance(make, torch.optim.Optimizer) or not callable(make):
        raise TypeError(
            "optimizer must be a function of the model's parameters, for example "
            "functools.partial(torch.optim.SGD, lr=0.1)"
        )
    made = make(model.parameters())
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"optimizer must return a torch.optim.Optimizer, it returned {type(made).__name__}")
    return made


#: Changes when a checkpoint of an earlier version cannot be read any more.
CHECKPOINT_FORMAT = 3


@dataclass(frozen=True)
class StepReport:
    """Tell a callback about the step just taken."""

    step: int
    """Steps taken, from 1."""
    phase: str
    """"warm-up", "selection", "closing" or "refinement"; training without a mask is all "refinement"."""
    loss: torch.Tensor
    """Loss of the batch (0-d, without graph)."""
    n_alive: int
    """Features that are not eliminated; 0 without a mask."""
    n_refined: int
    """Steps of the refinement taken."""


class Run:
    """Train the weights of a model; what changes from step to step is kept here.

    In the words of the phases this is the refinement alone; ``tamiz.torch.trainer`` adds those with a mask.

    Parameters
    ----------
    model : nn.Module
        Trained on the device it lies on.
    data, loss, optimizer
        As in :func:`tamiz.torch.train_weights`.
    settings : dict
        The parameters of the caller; a checkpoint belongs to one set of them. "learning_rate", "batch_size", "average"
        and "seed" are read here.
    n_steps : int
        Steps of the refinement.
    rates : sequence of float
        Factors of the learning rates, one for each of as many equal parts.
    """

    #: Features that a history has paths of.
    n_features = 0
    #: Steps before which the refinement is not counted: a closed mask waits, the weights are trained at their first rates.
    refinement_from = 0

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        loss: Callable[..., torch.Tensor],
        optimizer: MakeOptimizer | None,
        settings: dict[str, Any],
        n_steps: int,
        rates: Sequence[float],
    ) -> None:
        self.started = time.perf_counter()
        self.model, self.loss, self.settings = model, loss, settings
        self.rank, self.n_processes = processes()
        wrapped = any(isinstance(module, DistributedDataParallel) for module in model.modules())
        self.is_shared = wrapped or self.n_processes > 1
        self.runner = DistributedDataParallel(model) if self.is_shared and not wrapped else model
        self.refinement_steps, self.rates = n_steps, rates
        self.optimizer = make_optimizer(model, optimizer, settings["learning_rate"])
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        like = self.reference()
        self.device = like.device
        self.batches = make_batches(data, like, settings["batch_size"], settings["seed"])
        self.history = new_history(self.n_features)
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=self.device)
        self.averages: dict[str, torch.Tensor] = {}
        self.parts: dict[str, torch.Tensor] = {}
        self.n_steps, self.refined, self.seconds = 0, 0, 0.0
        model.train()

    def reference(self) -> torch.Tensor:
        """Return a tensor of the device and type that the data are brought to."""
        return next(self.model.parameters())

    # ---- the steps -------------------------------------------------------------------------------------------------

    def until_done(
        self, checkpoint: Any, every: int, callbacks: list[Callable[[StepReport], Any]], progress: bool
    ) -> None:
        """Take all steps that are left."""
        bar = ProgressBar("training") if progress and self.rank == 0 else None
        done = self.is_done()
        while not done:
            phase = self.phase()
            loss = self.take_step(phase)
            done = self.is_done()
            self.record(phase, loss, last=done)
            if checkpoint is not None and (self.n_steps % every == 0 or done):
                self.save(checkpoint)
            n_alive = self.n_alive()
            for callback in callbacks:
                callback(StepReport(self.n_steps, phase.label, loss, n_alive, self.refined))
            if bar is not None:
                note = f"{phase.label}, {n_alive} features" if n_alive else ""
                bar.update(self.n_steps, self.expected_steps(), note)
        if bar is not None:
            bar.close()

    def is_done(self) -> bool:
        """Check whether the last step is taken."""
        return self.refined >= self.refinement_steps and self.phase() == Phase.REFINEMENT

    def phase(self) -> Phase:
        """Return the phase of the next step."""
        return Phase.REFINEMENT

    def n_alive(self) -> int:
        """Return the number of features that are not eliminated; 0 without a mask."""
        return 0

    def expected_steps(self) -> int:
        """Return about how many steps the run has in all."""
        return self.n_steps + self.refinement_steps - self.refined

    def take_step(self, phase: Phase) -> torch.Tensor:
        """Take one step; return the loss of its batch."""
        refining = phase == Phase.REFINEMENT and self.n_steps >= self.refinement_from
        if refining:
            self.set_refinement_rate()
        inputs, targets = split_batch(next(self.batches), self.device)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward(inputs, targets)
        loss.backward()
        self.optimizer.step()
        self.n_steps += 1
        if refining:
            self.refined += 1
            self.take_average()
        return loss.detach()

    def forward(self, inputs: torch.Tensor, targets: Sequence[Any]) -> torch.Tensor:
        """Return the loss of a batch, with its graph."""
        return self.loss(self.runner(inputs), *targets)

    def set_refinement_rate(self) -> None:
        """Set the learning rates of the part of the refinement that the next step belongs to."""
        part = self.refined * len(self.rates) // self.refinement_steps
        for group, base in zip(self.optimizer.param_groups, self.base_rates):
            group["lr"] = base * self.rates[part]

    def fixed(self) -> list[torch.Tensor]:
        """Return the tensors of the model that no averages are taken of."""
        return []

    def averaged(self) -> dict[str, torch.Tensor]:
        """Return what averages are taken of: weights, and running statistics of normalisations."""
        fixed = {id(part) for part in self.fixed()}
        named = (*self.model.named_parameters(), *self.model.named_buffers())
        return {name: part.detach() for name, part in named if part.is_floating_point() and id(part) not in fixed}

    def take_average(self) -> None:
        """Add the weights to their averages in the last part of the refinement; put the averages in place at its end.

        Shapes stay as they are during the refinement, so that the averages fit a shrunk layer.
        """
        total, share = self.refinement_steps, self.settings["average"]
        nth = self.refined - int(total * (1.0 - share))
        if share == 0 or nth < 1:
            return
        self.parts = self.parts or self.averaged()  # looked up once: it takes longer than the averages
        for name, part in self.parts.items():
            if nth == 1:
                self.averages[name] = part.clone()
            else:
                self.averages[name].lerp_(part, 1.0 / nth)
            if self.refined == total:
                part.copy_(self.averages[name])

    def close(self) -> None:
        """Leave the model as the caller knows it, however the run ended."""
        self.optimizer.zero_grad(set_to_none=True)

    # ---- the history -----------------------------------------------------------------------------------------------

    def record(self, phase: Phase, loss: torch.Tensor, last: bool) -> None:
        """Add a step to the history. Losses are summed on their device: the host waits for it only when a line is due."""
        self.loss_sum += loss
        self.history.counters[HistorySlot.SINCE] += 1
        if is_line_due(self.history, self.n_steps, last):
            self.history.loss_sum[0] = float(self.loss_sum)
            write_line(self.history, self.n_steps, int(phase), self.n_alive(), *self.describe_mask(phase))
            self.loss_sum.zero_()

    def describe_mask(self, phase: Phase) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Return the sum of gamma, alpha, gamma and the columns that its entries belong to."""
        return 0.0, 1.0, np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)

    def losses(self) -> dict[str, np.ndarray]:
        """Return the columns "step" and "loss" of the history."""
        lines = history_to_dict(self.history, np.zeros(0, dtype=np.int64), 0)
        return {name: lines[name] for name in ("step", "loss")}

    # ---- checkpoints -----------------------------------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with to belong to this run."""
        rows = self.batches.n_rows if isinstance(self.batches, TensorBatches) else None
        kind = type(self.optimizer).__name__
        return {"format": CHECKPOINT_FORMAT, **self.settings, "optimizer": kind, "rows": rows}

    def content(self) -> dict[str, Any]:
        """Return the state of the run."""
        return {
            "settings": self.fingerprint(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "processes": self.positions(),
            "history": [torch.from_numpy(part) for part in self.history],
            "loss_sum": self.loss_sum,
            "counts": [self.n_steps, self.refined],
            "seconds": self.elapsed(),
            "averages": self.averages,
        }

    def positions(self) -> list[dict[str, Any]]:
        """Return where batches and random numbers stand, of every process."""
        own = {
            "batches": self.batches.state(),
            "random": torch.random.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }
        found: list[Any] = [own] * self.n_processes
        if self.n_processes > 1:
            distributed.all_gather_object(found, own)
        return found

    def write(self, path: str | os.PathLike[str], content: dict[str, Any]) -> None:
        """Write a checkpoint, by the first process; the others wait until it is there."""
        if self.rank == 0:
            write_checkpoint(path, content)
        if self.n_processes > 1:
            distributed.barrier()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        self.write(path, self.content())

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint, if there is one."""
        content = read_checkpoint(path)
        if content is None:
            return
        check_same_run(path, content.get("settings", {}), self.fingerprint())
        self.load(content)
        own = content["processes"][self.rank % len(content["processes"])]  # there may be fewer than before, or more
        self.batches.load(own["batches"])
        torch.random.set_rng_state(own["random"])
        if own["random_cuda"] is not None:
            torch.cuda.set_rng_state(own["random_cuda"], self.device)

    def load(self, content: dict[str, Any]) -> None:
        """Take over a stored state, all but batches and random numbers."""
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        for part, stored in zip(self.history, content["history"]):
            part[...] = stored.numpy()
        self.loss_sum.copy_(content["loss_sum"])
        self.n_steps, self.refined = content["counts"]
        self.seconds = content["seconds"]
        self.averages = {name: part.to(self.device) for name, part in content["averages"].items()}

    def elapsed(self) -> float:
        """Return the seconds of the run, those before a break included."""
        return self.seconds + time.perf_counter() - self.started


def split_batch(batch: Any, device: torch.device) -> tuple[torch.Tensor, Sequence[Any]]:
    """Return the input of the model and what the loss is given beside its output, on a device.

    Examples
    --------
    >>> x = torch.zeros(2, 3)
    >>> split_batch(x, x.device)[1][0] is x
    True
    """
    parts = [batch] if isinstance(batch, torch.Tensor) else list(batch)
    parts = [part.to(device) if isinstance(part, torch.Tensor) else part for part in parts]
    return parts[0], parts[1:] or parts[:1]
