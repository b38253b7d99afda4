"""Train the weights of a model step by step: rates, averages, history, callbacks and checkpoints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz._progress import ProgressBar
from tamiz.core.history import HistorySlot, history_to_dict, is_line_due, new_history, write_line
from tamiz.core.state import Phase
from tamiz.torch.batches import TensorBatches, make_batches
from tamiz.torch.checkpoint import check_same_run, read_checkpoint, write_checkpoint
from tamiz.torch.optimizers import MakeOptimizer, make_optimizer

#: Changes when a checkpoint of an earlier version cannot be read any more.
CHECKPOINT_FORMAT = 2


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

    In the words of the phases this is the refinement alone; ``tamiz.torch._selection_run`` adds those with a mask.

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
        bar = ProgressBar("training") if progress else None
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
        return self.loss(self.model(inputs), *targets)

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
            "batches": self.batches.state(),
            "random": torch.random.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
            "history": [torch.from_numpy(part) for part in self.history],
            "loss_sum": self.loss_sum,
            "counts": [self.n_steps, self.refined],
            "seconds": self.elapsed(),
            "averages": self.averages,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        write_checkpoint(path, self.content())

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint, if there is one."""
        content = read_checkpoint(path)
        if content is None:
            return
        check_same_run(path, content.get("settings", {}), self.fingerprint())
        self.load(content)
        self.batches.load(content["batches"])
        torch.random.set_rng_state(content["random"])
        if content["random_cuda"] is not None:
            torch.cuda.set_rng_state(content["random_cuda"], self.device)

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
