"""One run of the trainer, step by step: phases, rates, dead columns, averages, checkpoints, and the record at its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tamiz._progress import ProgressBar
from tamiz.core import Slot
from tamiz.selection import Selection
from tamiz.torch.batches import TensorBatches, make_batches
from tamiz.torch.checkpoint import check_same_run, read_checkpoint, write_checkpoint
from tamiz.torch.mask import FeatureMask
from tamiz.torch.record import CLOSING, REFINEMENT, SELECTION, WARMUP, Recorder
from tamiz.torch.shrink import Probe, Shrinker, reads_first

PHASES = ("warm-up", "selection", "closing", "refinement")


@dataclass(frozen=True)
class StepReport:
    """What a callback is told after each step."""

    step: int
    """Steps taken, from 1."""
    phase: str
    """"warm-up", "selection", "closing" or "refinement"."""
    loss: torch.Tensor
    """The loss of the batch (0-d, without graph)."""
    n_alive: int
    """Features that are left."""


class Run:
    """One run of the trainer: everything that changes from step to step."""

    def __init__(
        self,
        model: nn.Module,
        mask: FeatureMask,
        data: Any,
        loss: Callable[..., torch.Tensor],
        optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None,
        settings: dict[str, Any],
    ) -> None:
        self.started = time.perf_counter()
        self.model, self.mask, self.loss, self.settings = model, mask, loss, settings
        self.optimizer = _make_optimizer(model, optimizer, settings["learning_rate"])
        self.base_rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self.batches = make_batches(data, mask.gamma, settings["batch_size"], settings["seed"])
        self.recorder = Recorder(mask)
        self.shrinker: Shrinker | None = None
        self.compacts = False
        self.averages: dict[str, torch.Tensor] = {}
        self.parts: dict[str, torch.Tensor] = {}
        self.n_steps, self.closed_at, self.refined, self.seconds = 0, 0, 0, 0.0
        model.train()
        self.handle = mask.attach(
            self.optimizer, **{name: settings[name] for name in ("warmup_steps", "ramp_steps", "max_steps")}
        )

    # ---- the steps -------------------------------------------------------------------------------------------------

    def until_done(
        self, checkpoint: Any, every: int, callbacks: list[Callable[[StepReport], Any]], progress: bool
    ) -> None:
        bar = ProgressBar("training") if progress else None
        done = self.is_done()
        while not done:
            phase = self.phase()
            loss = self.take_step(phase)
            done = self.is_done()
            n_alive = int(self.mask.counters[Slot.OPEN]) or self.mask.n_features_to_select
            columns = None if self.shrinker is None else self.shrinker.columns
            self.recorder.add(self.n_steps, phase, loss, n_alive, columns, last=done)
            if checkpoint is not None and (self.n_steps % every == 0 or done):
                self.save(checkpoint)
            for callback in callbacks:
                callback(StepReport(self.n_steps, PHASES[phase], loss, n_alive))
            if bar is not None:
                bar.update(self.n_steps, self.expected_steps(), f"{PHASES[phase]}, {n_alive} features")
        if bar is not None:
            bar.close()

    def is_done(self) -> bool:
        return self.refined >= self.settings["refinement_steps"] and self.phase() == REFINEMENT

    def phase(self) -> int:
        if self.n_steps < self.settings["warmup_steps"]:
            return WARMUP
        if int(self.mask.counters[Slot.OPEN]) > 0:
            return SELECTION
        return REFINEMENT if self.mask.closed else CLOSING

    def expected_steps(self) -> int:
        """About how many steps the run will have; the selection ends by itself, most often within its ramp."""
        rule, refinement = self.mask.rule, self.settings["refinement_steps"]
        if self.phase() == REFINEMENT:
            return self.n_steps + refinement - self.refined
        within_ramp = self.n_steps < rule.warmup_steps + rule.ramp_steps
        return (rule.warmup_steps + rule.ramp_steps if within_ramp else rule.step_limit) + refinement

    def take_step(self, phase: int) -> torch.Tensor:
        if phase == REFINEMENT:
            self.set_refinement_rate()
        batch = next(self.batches)
        inputs, targets = _split_batch(batch, self.mask.gamma.device)
        self.optimizer.zero_grad(set_to_none=True)
        if self.n_steps == 0 and self.settings["shrink"]:
            with Probe() as probe:
                loss = self.loss(self.model(inputs), *targets)
            self.prepare_shrinking(probe)
        else:
            loss = self.loss(self.model(inputs), *targets)
        loss.backward()
        self.optimizer.step()
        self.n_steps += 1
        if phase == REFINEMENT:
            self.refined += 1
            self.take_average()
        elif self.mask.closed and self.closed_at == 0:
            self.closed_at = self.n_steps
        loss = loss.detach()
        if phase in (SELECTION, CLOSING):
            self.drop_dead_columns()
        return loss

    def set_refinement_rate(self) -> None:
        rates = self.settings["refinement_rates"]
        part = self.refined * len(rates) // self.settings["refinement_steps"]
        for group, base in zip(self.optimizer.param_groups, self.base_rates):
            group["lr"] = base * rates[part]

    def averaged(self) -> dict[str, torch.Tensor]:
        """What averages are taken of: weights, and running statistics of normalisations; not the mask, which is closed."""
        own = {id(part) for part in (*self.mask.parameters(), *self.mask.buffers())}
        named = (*self.model.named_parameters(), *self.model.named_buffers())
        return {name: part.detach() for name, part in named if part.is_floating_point() and id(part) not in own}

    def take_average(self) -> None:
        """Shapes stay as they are during the refinement, so that the averages fit the shrunk layer."""
        total, share = self.settings["refinement_steps"], self.settings["average"]
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

    # ---- dead columns ----------------------------------------------------------------------------------------------

    def prepare_shrinking(self, probe: Probe) -> None:
        layer = probe.layer_behind(self.mask, self.model)
        if layer is None or not Shrinker.can_handle(layer, self.optimizer):
            return
        self.shrinker = Shrinker(self.mask, layer, self.optimizer)
        # The data itself can be cut only if nothing but the mask reads it.
        parts = self.batches.parts if isinstance(self.batches, TensorBatches) else []
        self.compacts = len(parts) > 1 and parts[0].dim() == 2 and reads_first(self.model, self.mask)

    def drop_dead_columns(self) -> None:
        if self.shrinker is not None and self.shrinker.is_due():
            self.keep_columns(self.shrinker.living())

    def keep_columns(self, places: torch.Tensor) -> None:
        assert self.shrinker is not None
        self.optimizer.zero_grad(set_to_none=True)
        self.shrinker.keep(places)
        if self.compacts and isinstance(self.batches, TensorBatches):
            self.batches.keep_columns(places)

    def close(self) -> None:
        """Leave the model as the user knows it, however the run ended."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.shrinker is not None:
            self.shrinker.restore()
        self.handle.remove()

    # ---- checkpoints -----------------------------------------------------------------------------------------------

    def fingerprint(self) -> dict[str, Any]:
        mask = self.mask
        about = {"n_features": mask.n_features, "n_features_to_select": mask.n_features_to_select}
        rows = self.batches.n_rows if isinstance(self.batches, TensorBatches) else None
        return {
            **self.settings,
            **about,
            "variant": mask.variant,
            "optimizer": type(self.optimizer).__name__,
            "rows": rows,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        columns = None if self.shrinker is None else self.shrinker.columns
        # Whole shapes go into the file, so that it can be loaded into the user's model by hand as well.
        if self.shrinker is not None:
            self.shrinker.restore()
        content = {
            "settings": self.fingerprint(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.batches.state(),
            "random": torch.random.get_rng_state(),
            "random_cuda": _cuda_random_state(self.mask.gamma.device),
            "recorder": self.recorder.state(),
            "counts": [self.n_steps, self.closed_at, self.refined],
            "seconds": self.seconds + time.perf_counter() - self.started,
            "columns": columns,
            "shrinks": self.shrinker is not None,
            "averages": self.averages,
        }
        write_checkpoint(path, content)
        if self.shrinker is not None and columns is not None:
            self.shrinker.keep(columns)
        self.parts = {}  # the weights may lie elsewhere now

    def resume(self, path: str | os.PathLike[str]) -> None:
        content = read_checkpoint(path)
        if content is None:
            return
        check_same_run(path, content.get("settings", {}), self.fingerprint())
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.recorder.load(content["recorder"])
        self.n_steps, self.closed_at, self.refined = content["counts"]
        self.seconds = content["seconds"]
        self.averages = {name: part.to(self.mask.gamma.device) for name, part in content["averages"].items()}
        if content["shrinks"]:
            self.find_layer_again(content["columns"])
        self.batches.load(content["batches"])
        torch.random.set_rng_state(content["random"])
        if content["random_cuda"] is not None:
            torch.cuda.set_rng_state(content["random_cuda"], self.mask.gamma.device)

    def find_layer_again(self, columns: torch.Tensor | None) -> None:
        """Which layer takes the masked input is seen in a forward; one in evaluation mode leaves no trace."""
        inputs, _ = _split_batch(next(self.batches), self.mask.gamma.device)
        self.model.eval()
        with Probe() as probe:
            self.model(inputs)
        self.model.train()
        self.prepare_shrinking(probe)
        if columns is not None:
            self.keep_columns(columns.to(self.mask.gamma.device))

    # ---- the record ------------------------------------------------------------------------------------------------

    def selection(self) -> Selection:
        mask = self.mask
        ranking = mask.ranking().reshape(-1).cpu().numpy()
        return Selection(
            support=ranking <= mask.n_features_to_select,
            ranking=ranking,
            variant=mask.variant,
            converged=int(mask.counters[Slot.FORCED]) == 0,
            n_steps=self.n_steps,
            closed_at=self.closed_at,
            seed=self.settings["seed"],
            seconds=self.seconds + time.perf_counter() - self.started,
            history=self.recorder.history(ranking),
            shape=mask.shape if len(mask.shape) > 1 else None,
            engine="torch",
        )


def _make_optimizer(
    model: nn.Module,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None,
    learning_rate: float,
) -> torch.optim.Optimizer:
    if optimizer is None:
        return torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    if isinstance(optimizer, torch.optim.Optimizer) or not callable(optimizer):
        raise TypeError(
            "optimizer must be a function of the model's parameters, for example "
            "functools.partial(torch.optim.SGD, lr=0.1)"
        )
    made = optimizer(model.parameters())
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"optimizer must return a torch.optim.Optimizer, it returned {type(made).__name__}")
    return made


def _split_batch(batch: Any, device: torch.device) -> tuple[torch.Tensor, Sequence[Any]]:
    """The input of the model and what the loss gets beside its output."""
    parts = [batch] if isinstance(batch, torch.Tensor) else list(batch)
    parts = [part.to(device) if isinstance(part, torch.Tensor) else part for part in parts]
    return parts[0], parts[1:] or parts[:1]


def _cuda_random_state(device: torch.device) -> torch.Tensor | None:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else None
