"""A small trainer: warm-up, selection, closing and refinement for any module that holds one FeatureMask."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tamiz._progress import ProgressBar
from tamiz.linear.gamma import FORCED, OPEN
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


def train(
    model: nn.Module,
    data: Any,
    loss: Callable[..., torch.Tensor],
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    warmup_steps: int = 0,
    ramp_steps: int = 2000,
    max_steps: int | None = None,
    refinement_steps: int = 1000,
    refinement_rates: Sequence[float] = (1.0, 0.2, 0.04),
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

    Parameters
    ----------
    model : nn.Module
        Any module that holds exactly one :class:`FeatureMask`; trained on the device it lies on.
    data : tuple of tensors or arrays, or iterable of batches
        ``(X, y)`` or ``(X, y, sample_weight)`` in memory, or anything that gives such batches again and again, for example
        a ``DataLoader``. A batch or ``data`` that is a single tensor has no target.
    loss : callable
        ``loss(model(x), y)``, with a third argument where a batch has three parts; ``loss(model(x), x)`` without target.
    optimizer : callable, optional
        Called with the model's parameters, returns the optimizer: ``functools.partial(torch.optim.SGD, lr=0.1)``. By
        default Adam with ``learning_rate``.
    learning_rate : float
        Of the default optimizer.
    batch_size : int
        Rows of a batch, for data in memory.
    warmup_steps, ramp_steps, max_steps : int
        As in :meth:`FeatureMask.attach`.
    refinement_steps : int
        Steps after the mask is closed.
    refinement_rates : sequence of float
        The refinement has as many equal parts; in each the optimizer's learning rates are multiplied by its number. The
        default divides by 5 twice, as the paper does.
    shrink : bool
        Whether dead columns are dropped from the first layer as they die, where the masked input goes straight into an
        ``nn.Linear``. The result is the same, the time is not.
    seed : int
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool
        Whether a run of more than two seconds draws a bar with the time left on stderr.
    checkpoint : path, optional
        A file that the state of the run is kept in. If it exists, the run goes on from there, and ends with exactly what it
        would have ended with without the break.
    checkpoint_every : int
        Steps between two checkpoints.
    callbacks : iterable of callable
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
        "refinement_steps": refinement_steps,
        "refinement_rates": [float(rate) for rate in refinement_rates],
        "shrink": shrink,
        "seed": seed,
    }
    _check_settings(settings, checkpoint_every)
    mask = _the_mask(model)
    with _random_numbers(seed, mask.gamma.device):
        run = _Run(model, mask, data, loss, optimizer, settings)
        try:
            if checkpoint is not None:
                run.resume(checkpoint)
            run.until_done(checkpoint, checkpoint_every, list(callbacks), progress)
        finally:
            run.close()
    model.eval()
    return run.selection()


def _check_settings(settings: dict[str, Any], checkpoint_every: int) -> None:
    least = {"batch_size": 1, "refinement_steps": 0}
    for name, value in {**settings, "checkpoint_every": checkpoint_every}.items():
        if name in (*least, "checkpoint_every") and (not isinstance(value, int) or value < least.get(name, 1)):
            raise ValueError(f"{name} must be an integer of at least {least.get(name, 1)}, got {value!r}")
    rates = settings["refinement_rates"]
    if not rates or not all(rate > 0 for rate in rates):
        raise ValueError(f"refinement_rates must be positive numbers, at least one, got {rates!r}")
    if not settings["learning_rate"] > 0:
        raise ValueError(f"learning_rate must be above zero, got {settings['learning_rate']!r}")


def _the_mask(model: nn.Module) -> FeatureMask:
    masks = [module for module in model.modules() if isinstance(module, FeatureMask)]
    if len(masks) != 1:
        raise ValueError(f"the model must hold exactly one FeatureMask, it holds {len(masks)}")
    if masks[0].step > 0:
        raise ValueError(
            f"the mask has taken {masks[0].step} steps already: call mask.reset() to select anew, or build a new model"
        )
    return masks[0]


@contextmanager
def _random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from ``seed`` inside; the random state of the caller is as before afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


class _Run:
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
            n_alive = int(self.mask.counters[OPEN]) or self.mask.n_features_to_select
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
        if int(self.mask.counters[OPEN]) > 0:
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
        }
        write_checkpoint(path, content)
        if self.shrinker is not None and columns is not None:
            self.shrinker.keep(columns)

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
            converged=int(mask.counters[FORCED]) == 0,
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
