"""Settings of a selection, its phases, and what the rule takes from the number of a step."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tamiz._utils.text import pick_name


class Phase(IntEnum):
    """Phase of a run, as the column ``phase`` of a history holds it.

    Examples
    --------
    >>> [phase.label for phase in Phase]
    ['warm-up', 'selection', 'closing', 'refinement']
    """

    #: gamma does not move; the weights are trained.
    WARM_UP = 0
    #: Features are eliminated.
    SELECTION = 1
    #: Exactly M features are alive; the penalty alone lifts them to 1.
    CLOSING = 2
    #: gamma is binary and fixed; the weights are trained on.
    REFINEMENT = 3

    @property
    def label(self) -> str:
        """Name that reports print."""
        return "warm-up" if self is Phase.WARM_UP else self.name.lower()


class Slots(NamedTuple):
    """Position of a number in the array ``counters`` that belongs to a gamma; compiled code and checkpoints use it.

    Compiled code takes the fields of a named tuple as constants; members of an ``IntEnum`` it takes as an index only with numba
    0.68 and later.
    """

    #: Steps taken, warm-up included.
    STEP: int = 0
    #: Steps that the moments of gamma have seen.
    AGE: int = 1
    #: Features that are neither eliminated nor kept yet; 0 once exactly M are left.
    OPEN: int = 2
    #: 1 once gamma is binary with exactly M ones.
    CLOSED: int = 3
    #: 1 if the step limit had to decide, 2 once that was reported.
    FORCED: int = 4
    #: Features that are kept in the end: M; with a budget 0 until the closing begins.
    KEPT: int = 5


Slot = Slots()
N_SLOTS = len(Slot)

#: Columns of a history, one row per recorded step; ``phase`` is a :class:`Phase`.
HISTORY_COLUMNS = ("step", "phase", "loss", "n_alive", "gamma_sum", "alpha")


#: The ranking variant reaches its lowest target this many times sooner than alpha reaches 1.
RANKING_SPEED = 4.0


def hard_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    """M (the budget, where there is one) for every step: plain E2E-FS.

    Examples
    --------
    >>> from tamiz.core.rule import Rule
    >>> hard_target(np.arange(2), Rule(100, 5)).tolist()
    [5.0, 5.0]
    """
    return np.full(np.shape(step), rule.size)


def soft_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    r"""Return :math:`M_\rho = (1-\rho) M` (eq. 8), the target while more than M features are alive.

    With a constant :math:`\rho` more than M features can settle around the sum :math:`(1-\rho)M` and stay. So
    :math:`\rho` rises to 1 within one ramp, from the end of the ramp on or, where the step limit comes sooner, in the
    last quarter of the steps, and the last ones go.

    Examples
    --------
    >>> from tamiz.core.rule import Rule
    >>> soft_target(np.array([50, 100, 150, 900]), Rule(500, 20, ramp_steps=100)).tolist()
    [5.0, 5.0, 2.5, 0.0]
    >>> soft_target(np.array([60, 75, 90]), Rule(500, 20, ramp_steps=1000, max_steps=80)).tolist()
    [5.0, 1.25, 0.0]
    """
    limit = rule.step_limit - rule.warmup_steps
    begin = min(rule.ramp_steps, 0.75 * limit)
    length = min(rule.ramp_steps, limit - begin)
    late = np.maximum(0.0, (np.asarray(step) - begin) / length)
    rho = np.minimum(1.0, rule.rho + (1.0 - rule.rho) * late)
    return (1.0 - rho) * rule.size


def ranking_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    r"""Target that falls geometrically from F to 1: features die one after the other, which orders them all.

    With a budget it falls from the sum of all costs to the smallest of them.

    Examples
    --------
    >>> from tamiz.core.rule import Rule
    >>> ranking_target(np.array([0, 50, 100, 200]), Rule(256, 20, ramp_steps=400)).tolist()
    [256.0, 16.0, 1.0, 1.0]
    """
    first, last = (float(rule.n_features), 1.0) if rule.costs is None else (rule.costs.sum(), rule.costs.min())
    return last * (first / last) ** np.maximum(0.0, 1.0 - RANKING_SPEED * np.asarray(step) / rule.ramp_steps)


@dataclass(frozen=True)
class Variant:
    """Describe a variant of the method.

    Parameters
    ----------
    name : str
        Value of the parameter ``variant``.
    title : str
        Name in tables and reports.
    target : callable
        ``target(steps, rule)``: the sum of gamma, weighted by the costs where there are any, that the penalty aims at
        while features are eliminated, for an array of steps counted from the end of the warm-up; ``rule.size`` is M or the
        budget. Once exactly M are left, the target is M for every variant.
    """

    name: str
    title: str
    target: Callable[[np.ndarray, Rule], np.ndarray]


VARIANTS: dict[str, Variant] = {
    "hard": Variant("hard", "E2E-FS", hard_target),
    "soft": Variant("soft", "E2E-FS-Soft", soft_target),
    "ranking": Variant("ranking", "E2E-FS-Ranking", ranking_target),
}


def selection_schedule(rule: Rule, first_step: int, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Alpha and target for ``n_steps`` steps of the selection from ``first_step`` on (counted from 1, with warm-up).

    Steps of the warm-up get an alpha of 0; gamma does not move in them.

    Examples
    --------
    >>> from tamiz.core.rule import Rule
    >>> alphas, targets = selection_schedule(Rule(100, 5, "hard", warmup_steps=1, ramp_steps=4), 1, 3)
    >>> alphas.tolist(), targets.tolist()
    ([0.0, 0.25, 0.5], [5.0, 5.0, 5.0])
    """
    since = np.maximum(0, np.arange(first_step, first_step + n_steps) - rule.warmup_steps)
    targets = VARIANTS[rule.variant].target(since, rule)
    return np.minimum(1.0, since / rule.ramp_steps), np.asarray(targets, dtype=np.float64)


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
    #: With the tolerance of rounding.
    budget: float
    #: (n_features,) float64, or None; compiled code is specialised for either.
    costs: Any


@dataclass(frozen=True)
class Rule:
    r"""Hold the settings of a selection.

    The paper's :math:`\beta`, the length of the mixed gradient, is no parameter: gamma is moved by Adam, which divides the
    length of its gradient out (with ``mask_optimizer="sgd"``, which does not, ``mask_learning_rate`` has its place).

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
        kept (:mod:`tamiz.core.step`). The selection then ends with the ramp; ``variant``, ``mu`` and ``rho`` do not count.

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
        for name, known in (("variant", VARIANTS), ("mask_optimizer", MASK_OPTIMIZERS)):
            if getattr(self, name) not in known:
                object.__setattr__(self, name, pick_name(getattr(self, name), known, name))
        if self.strength is not None:
            self._check_strength(self.strength)
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

    def _check_strength(self, strength: Any) -> None:
        """Raise ValueError if the strength is no price, or is given together with a count or a budget."""
        is_number = isinstance(strength, numbers.Real) and not isinstance(strength, bool)
        if not is_number or not 0 < float(strength) < math.inf:
            raise ValueError(f"strength must be a finite number above 0, got {strength!r}")
        if self.n_features_to_select != 0 or self.budget is not None or self.costs is not None:
            raise ValueError("strength leaves the number of features to the loss: give neither M nor costs and budget")
        if self.max_steps not in (None, self.ramp_steps):
            raise ValueError(
                "with a strength the selection ends with the ramp: leave max_steps at None, set ramp_steps"
            )
        object.__setattr__(self, "max_steps", self.ramp_steps)

    @property
    def limit(self) -> float:
        """Limit of the cost of the kept features, with the tolerance of rounding; 0 without a budget."""
        return 0.0 if self.budget is None else float(self.budget) * (1.0 + BUDGET_TOLERANCE)

    @property
    def size(self) -> float:
        """Sum of gamma, weighted by the costs, to aim at: the budget, or M."""
        return float(self.n_features_to_select if self.budget is None else self.budget)

    @property
    def step_limit(self) -> int:
        """Step, warm-up included, by which the selection has ended."""
        assert self.max_steps is not None
        return self.warmup_steps + self.max_steps

    @property
    def numbers(self) -> RuleNumbers:
        """Settings for compiled code."""
        found = RuleNumbers(
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
        return MASK_OPTIMIZERS[self.mask_optimizer](found)


def expected_size(rule: Any) -> int:
    """M of a ``Rule`` or ``Gates`` or, with a budget, about how many features it pays for.

    Examples
    --------
    >>> expected_size(Rule(9, 4)), expected_size(Rule(3, 0, costs=[1, 2, 3], budget=4))
    (4, 2)
    """
    if rule.costs is None:
        return rule.n_features_to_select
    return min(rule.n_features, max(1, int(rule.budget / rule.costs.mean())))
