"""Train a model and select its inputs step by step: the phases, eliminated columns, and the record at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz.core.history import history_to_dict
from tamiz.core.schedule import selection_schedule
from tamiz.core.state import Phase, Slot
from tamiz.selection import Selection
from tamiz.torch._run import Run, split_batch
from tamiz.torch.batches import TensorBatches
from tamiz.torch.checkpoint import write_checkpoint
from tamiz.torch.mask import FeatureMask
from tamiz.torch.optimizers import MakeOptimizer
from tamiz.torch.shrink import Probe, Shrinker, reads_first


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
        if self.n_steps > 0 or not self.settings["shrink"]:
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
        write_checkpoint(path, {**self.content(), "columns": columns})
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
