r"""Compute what the rule takes from the number of a step: the weight alpha of the penalty and its target.

A variant of the method is a target. To add one, write its function and add a :class:`Variant` to ``VARIANTS``; both
engines, the estimators and the command line read that table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamiz._names import pick

if TYPE_CHECKING:
    from tamiz.core.rule import Rule

#: The ranking variant reaches its lowest target this many times sooner than alpha reaches 1.
RANKING_SPEED = 4.0


def alpha(step: np.ndarray | float, ramp_steps: int) -> np.ndarray:
    r"""Return :math:`\alpha^t_T = \min(1, t / T)` (eq. 7): 0 follows the loss alone, 1 the penalty alone.

    Examples
    --------
    >>> alpha(np.array([0, 50, 1000]), 100).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.minimum(1.0, np.asarray(step) / ramp_steps)


def hard_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    """Return M (the budget, where there is one) for every step: plain E2E-FS.

    Examples
    --------
    >>> from tamiz.core import Rule
    >>> hard_target(np.arange(2), Rule(100, 5)).tolist()
    [5.0, 5.0]
    """
    return np.full(np.shape(step), rule.size)


def soft_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    r"""Return :math:`M_\rho = (1-\rho) M` (eq. 8), the target while more than M features are alive.

    With a constant :math:`\rho` more than M features can settle around the sum :math:`(1-\rho)M` and stay. So
    :math:`\rho` rises from its value at the end of the ramp to 1 one ramp later, and the last ones go.

    Examples
    --------
    >>> from tamiz.core import Rule
    >>> soft_target(np.array([50, 100, 150, 900]), Rule(500, 20, ramp_steps=100)).tolist()
    [5.0, 5.0, 2.5, 0.0]
    """
    late = np.maximum(0.0, np.asarray(step) / rule.ramp_steps - 1.0)
    rho = np.minimum(1.0, rule.rho + (1.0 - rule.rho) * late)
    return (1.0 - rho) * rule.size


def ranking_target(step: np.ndarray, rule: Rule) -> np.ndarray:
    r"""Return a target that falls geometrically from F to 1: features die one after the other, which orders them all.

    With a budget it falls from the sum of all costs to the smallest of them.

    Examples
    --------
    >>> from tamiz.core import Rule
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
    """Return alpha and target for ``n_steps`` steps of the selection from ``first_step`` on (counted from 1, with warm-up).

    Steps of the warm-up get an alpha of 0; gamma does not move in them.

    Examples
    --------
    >>> from tamiz.core import Rule
    >>> alphas, targets = selection_schedule(Rule(100, 5, "hard", warmup_steps=1, ramp_steps=4), 1, 3)
    >>> alphas.tolist(), targets.tolist()
    ([0.0, 0.25, 0.5], [5.0, 5.0, 5.0])
    """
    since = np.maximum(0, np.arange(first_step, first_step + n_steps) - rule.warmup_steps)
    targets = pick(rule.variant, VARIANTS, "variant").target(since, rule)
    return alpha(since, rule.ramp_steps), np.asarray(targets, dtype=np.float64)


class ScheduleWindow:
    """Hand out the schedule of the selection a few steps at a time; it is computed for many steps at once.

    Parameters
    ----------
    rule : Rule
        The settings.
    size : int, default=8192
        Steps that are computed at a time.

    Examples
    --------
    >>> from tamiz.core import Rule
    >>> window = ScheduleWindow(Rule(100, 5, "hard", ramp_steps=4))
    >>> [part.tolist() for part in window.steps(2, 3)]
    [[0.5, 0.75, 1.0], [5.0, 5.0, 5.0]]
    """

    def __init__(self, rule: Rule, size: int = 8192) -> None:
        self.rule = rule
        self.size = size
        self._first, self._alphas, self._targets = 1, np.zeros(0), np.zeros(0)

    def steps(self, first_step: int, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return alpha and target of ``n_steps`` steps from ``first_step`` on, as :func:`selection_schedule` does."""
        begin = first_step - self._first
        if begin < 0 or begin + n_steps > self._alphas.size:
            self._first, begin = first_step, 0
            self._alphas, self._targets = selection_schedule(self.rule, first_step, max(n_steps, self.size))
        return self._alphas[begin : begin + n_steps], self._targets[begin : begin + n_steps]
