"""Settings of a selection: what gamma is told, whatever engine runs it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tamiz._names import pick, pick_name
from tamiz.core.schedule import VARIANTS

#: Costs are sums of rounded numbers: three times 0.1 shall fit into 0.3.
BUDGET_TOLERANCE = 1e-9

#: Solvers of gamma, each as what it makes of the numbers of Adam. Adam without first moments is RMSprop (with its start
#: corrected), without any moments it takes the sign; with an epsilon beside which the second moment vanishes it is plain
#: projected gradient descent, whose gradient has length one: the factor of the rate makes its largest typical step the rate.
MASK_OPTIMIZERS: dict[str, Callable[[RuleNumbers], RuleNumbers]] = {
    "adam": lambda numbers: numbers,
    "rmsprop": lambda numbers: numbers._replace(beta1=0.0),
    "sign": lambda numbers: numbers._replace(beta1=0.0, beta2=0.0),
    "sgd": lambda numbers: numbers._replace(
        beta1=0.0,
        beta2=0.0,
        epsilon=_LARGE,
        mask_learning_rate=_LARGE * numbers.mask_learning_rate * math.sqrt(max(1, numbers.n_features_to_select)),
    ),
}
_LARGE = 1e6


class RuleNumbers(NamedTuple):
    """Settings that are the same in every step, as numbers only, so that compiled code can take them."""

    n_features_to_select: int
    mu: float
    mask_learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    budget: float
    """With the tolerance of rounding."""
    costs: Any
    """(n_features,) float64, or None; compiled code is specialised for either."""


@dataclass(frozen=True)
class Rule:
    r"""Hold the settings of a selection.

    The paper's :math:`\beta`, the length of the mixed gradient, is no parameter: gamma is moved by Adam, which divides the
    length of its gradient out.

    Parameters
    ----------
    n_features, n_features_to_select : int
        F and M; M is 0 with a budget or a strength, which then decides how many are kept.
    variant : str, default="soft"
        A name in ``VARIANTS``: E2E-FS-Soft ("soft"), E2E-FS ("hard"), or "ranking", which orders all features in one fit.
    mu : float, default=1.0
        The paper's :math:`\mu`, weight of the count penalty beyond 1.
    rho : float, default=0.75
        The paper's :math:`\rho`, relaxation of the target of the soft variant.
    warmup_steps : int, default=0
        Steps during which gamma does not move.
    ramp_steps : int, default=2000
        The paper's T: steps until alpha reaches 1.
    max_steps : int or None, default=None
        Steps of selection after which the M largest are kept; None: four ramps, and never less than gamma needs to go from
        1 to 0 four times.
    mask_learning_rate, beta1, beta2, epsilon : float, default=0.01, 0.5, 0.999, 1e-8
        Adam of gamma.
    mask_optimizer : str, default="adam"
        A name in ``MASK_OPTIMIZERS``: "adam", "rmsprop" (``beta1`` is not used), "sign" (every entry moves by the rate,
        ``beta1`` and ``beta2`` are not used) or "sgd" (plain projected gradient, rate times :math:`\sqrt M` times the mixed
        gradient, which has length one at most).
    costs : array-like, shape (n_features,), or None, default=None
        What each feature costs, above 0; only together with ``budget``.
    budget : float or None, default=None
        What the kept features may cost together. At least the most expensive feature must fit alone, and not all together.
    strength : float or None, default=None
        Price of a feature in units of the loss, above 0: takes the place of the count penalty, and the loss decides how many are
        kept (:mod:`tamiz.core.price`). The selection then ends with the ramp; ``variant``, ``mu`` and ``rho`` do not count.

    Examples
    --------
    >>> Rule(100, 5).max_steps
    8000
    >>> Rule(100, 0)
    Traceback (most recent call last):
    ValueError: n_features_to_select must be from 1 to the 100 features there are, got 0
    >>> Rule(3, 0, costs=[1, 2, 3], budget=4).size
    4.0
    """

    n_features: int
    n_features_to_select: int
    variant: str = "soft"
    mu: float = 1.0
    rho: float = 0.75
    warmup_steps: int = 0
    ramp_steps: int = 2000
    max_steps: int | None = None
    mask_learning_rate: float = 0.01
    beta1: float = 0.5
    beta2: float = 0.999
    epsilon: float = 1e-8
    mask_optimizer: str = "adam"
    costs: np.ndarray | None = field(default=None, compare=False)
    budget: float | None = None
    strength: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variant", pick(self.variant, VARIANTS, "variant").name)
        object.__setattr__(self, "mask_optimizer", pick_name(self.mask_optimizer, MASK_OPTIMIZERS, "mask_optimizer"))
        if self.strength is not None:
            self._check_strength()
        elif self.budget is not None or self.costs is not None:
            self._check_budget()
        elif not 1 <= self.n_features_to_select <= self.n_features:
            raise ValueError(
                f"n_features_to_select must be from 1 to the {self.n_features} features there are, "
                f"got {self.n_features_to_select}"
            )
        bounds = {
            "mu": self.mu > 0,
            "rho": 0 <= self.rho <= 1,
            "warmup_steps": self.warmup_steps >= 0,
            "ramp_steps": self.ramp_steps >= 1,
            "max_steps": self.max_steps is None or self.max_steps >= 1,
            "mask_learning_rate": 0 < self.mask_learning_rate <= 1,
            "beta1": 0 <= self.beta1 < 1,
            "beta2": 0 <= self.beta2 < 1,
            "epsilon": self.epsilon > 0,
        }
        for name, is_valid in bounds.items():
            if not is_valid:
                raise ValueError(f"{name} is out of range: {getattr(self, name)!r}")
        if self.max_steps is None:
            object.__setattr__(self, "max_steps", max(4 * self.ramp_steps, math.ceil(4 / self.mask_learning_rate)))

    def _check_budget(self) -> None:
        """Store the costs as an array; raise ValueError if they and the budget are none for a selection."""
        if self.costs is None or self.budget is None:
            raise ValueError("costs and budget go together: give both or neither")
        if self.n_features_to_select != 0:
            raise ValueError(f"with a budget n_features_to_select must be 0, got {self.n_features_to_select}")
        costs = np.asarray(self.costs, dtype=np.float64)
        if costs.shape != (self.n_features,) or not (np.isfinite(costs) & (costs > 0)).all():
            raise ValueError(f"costs must hold a finite number above 0 for each of the {self.n_features} features")
        if not costs.max() <= self.limit < costs.sum():
            raise ValueError(
                f"the budget must be at least the largest cost, {costs.max():g}, and less than the sum of all, "
                f"{costs.sum():g}; got {self.budget:g}"
            )
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "budget", float(self.budget))

    def _check_strength(self) -> None:
        """Raise ValueError if the strength is no price, or is given together with a count or a budget."""
        if not 0 < self.strength < math.inf:  # type: ignore[operator]
            raise ValueError(f"strength must be a finite number above 0, got {self.strength!r}")
        if self.n_features_to_select != 0 or self.budget is not None or self.costs is not None:
            raise ValueError("strength leaves the number of features to the loss: give neither M nor costs and budget")
        if self.max_steps not in (None, self.ramp_steps):
            raise ValueError(
                "with a strength the selection ends with the ramp: leave max_steps at None, set ramp_steps"
            )
        object.__setattr__(self, "max_steps", self.ramp_steps)

    @property
    def limit(self) -> float:
        """Return what the kept features may cost together, with the tolerance of rounding; 0 without a budget."""
        return 0.0 if self.budget is None else float(self.budget) * (1.0 + BUDGET_TOLERANCE)

    @property
    def size(self) -> float:
        """Return what the sum of gamma, weighted by the costs, shall come down to: the budget, or M."""
        return float(self.n_features_to_select if self.budget is None else self.budget)

    @property
    def step_limit(self) -> int:
        """Return the step, warm-up included, by which the selection has ended."""
        assert self.max_steps is not None
        return self.warmup_steps + self.max_steps

    @property
    def numbers(self) -> RuleNumbers:
        """Return what compiled code needs in every step."""
        numbers = RuleNumbers(
            int(self.n_features_to_select),
            # With a strength there is no count penalty, whose weight is 1 + mu.
            float(self.mu if self.strength is None else -1.0),
            float(self.mask_learning_rate),
            float(self.beta1),
            float(self.beta2),
            float(self.epsilon),
            self.limit,
            None if self.costs is None else self.costs.copy(),
        )
        return MASK_OPTIMIZERS[self.mask_optimizer](numbers)
