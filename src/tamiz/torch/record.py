"""The trainer's history: a bounded number of lines, thinned as the run gets longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tamiz.core import HISTORY_COLUMNS, alpha
from tamiz.core.history import N_LINES, PATHS_KEPT, WIDEST_PATH
from tamiz.torch.mask import FeatureMask

WARMUP, SELECTION, CLOSING, REFINEMENT = range(4)


class Recorder:
    """Lines of ``HISTORY_COLUMNS``, and the paths of gamma where there are not too many features.

    When the lines are full, every second one is dropped and from then on half as many are written.

    Parameters
    ----------
    mask : FeatureMask
        Whose run is recorded.
    """

    def __init__(self, mask: FeatureMask) -> None:
        self.mask = mask
        self.n_features = mask.n_features
        self.lines: list[list[float]] = []
        self.paths: list[torch.Tensor] = []
        self.stride = 1
        self._loss: torch.Tensor | None = None
        self._count = 0

    def add(
        self, step: int, phase: int, loss: torch.Tensor, n_alive: int, columns: torch.Tensor | None, last: bool
    ) -> None:
        """One step; ``columns`` says which features the mask still holds, None for all."""
        self._loss = loss.double() if self._loss is None else self._loss + loss
        self._count += 1
        if step % self.stride and not last:
            return
        if len(self.lines) >= N_LINES:
            self.lines, self.paths = self.lines[1::2], self.paths[1::2]
            self.stride *= 2
            if step % self.stride and not last:
                return
        gamma = self.mask.gamma.detach().reshape(-1)
        rule = self.mask.rule
        weight = (
            0.0
            if phase == WARMUP
            else float(alpha(step - rule.warmup_steps, rule.ramp_steps))
            if phase == SELECTION
            else 1.0
        )
        total = float(gamma.sum(dtype=torch.float64))
        self.lines.append([step, phase, float(self._loss) / self._count, n_alive, total, weight])
        self._loss, self._count = None, 0
        if self.n_features <= WIDEST_PATH:
            self.paths.append(self._path(gamma, columns))

    def _path(self, gamma: torch.Tensor, columns: torch.Tensor | None) -> torch.Tensor:
        bytes_of_gamma = (gamma * 255).round().to(torch.uint8)
        if columns is None:
            return bytes_of_gamma.cpu()
        path = bytes_of_gamma.new_zeros(self.n_features)
        path[columns] = bytes_of_gamma
        return path.cpu()

    def history(self, ranking: np.ndarray) -> dict[str, np.ndarray]:
        """The lines by name; of the paths, those of the best features."""
        lines = np.asarray(self.lines, dtype=np.float64).reshape(-1, len(HISTORY_COLUMNS))
        history: dict[str, np.ndarray] = {name: lines[:, i].copy() for i, name in enumerate(HISTORY_COLUMNS)}
        if self.paths:
            m = self.mask.n_features_to_select
            best = np.argsort(ranking, kind="stable")[: min(ranking.size, max(PATHS_KEPT, min(2 * m, 2 * PATHS_KEPT)))]
            paths = torch.stack(self.paths).numpy()[:, best]
            history["gamma_path_features"] = best
            history["gamma_path"] = (paths / np.float32(255)).astype(np.float32)
        return history

    def state(self) -> dict[str, Any]:
        """Everything, for a checkpoint."""
        paths = torch.stack(self.paths) if self.paths else torch.empty(0, self.n_features, dtype=torch.uint8)
        lines = torch.tensor(self.lines, dtype=torch.float64).reshape(-1, len(HISTORY_COLUMNS))
        loss = None if self._loss is None else self._loss.cpu()
        return {"lines": lines, "paths": paths, "stride": self.stride, "loss": loss, "count": self._count}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        self.lines, self.paths = state["lines"].tolist(), list(state["paths"])
        self.stride, self._loss, self._count = state["stride"], state["loss"], state["count"]
        if self._loss is not None:
            self._loss = self._loss.to(self.mask.gamma.device)
