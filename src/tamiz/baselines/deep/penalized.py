"""Base of the two selectors with the layer of DFS: one weight in front of each input, under an elastic net."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tamiz._constraints import finite_number
from tamiz.baselines.deep.selector import NetworkSelector, Setting, Trained


class OneToOneSelector(NetworkSelector):
    """Base of the selectors whose network carries a one-to-one layer w with ``l1 * |w|_1 + l2 * |w|_2^2`` on it."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkSelector._parameter_constraints,
        "l1": [finite_number(0)],
        "l2": [finite_number(0)],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        l1: float = 0.001,
        l2: float = 0.001,
        network: str | Callable[[Any, int], Any] = "linear",
        input_shape: Sequence[int] | None = None,
        loss: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_l2: float | None = None,
        class_weight: Any = "balanced",
        normalize: str | None = "erf",
        task: str = "auto",
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_features_to_select,
            network=network,
            input_shape=input_shape,
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_l2=weight_l2,
            class_weight=class_weight,
            normalize=normalize,
            task=task,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.l1 = l1
        self.l2 = l2

    def _train_with_penalty(self, setting: Setting) -> Trained:
        return self._train(setting, setting.problem.X, penalty=(self.l1, self.l2))
