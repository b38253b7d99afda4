"""One step of gamma: everything of the paper's rule put together, as a pure function of the state.

Warm-up (gamma rests) -> selection (alpha rises, features die) -> closing (exactly M are alive, the penalty alone lifts
them to 1) -> closed. There is no branch on the contents of an array, so on an accelerator a step never waits for the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tamiz.core._arrays import Array, as_array, cast, namespace
from tamiz.core.closing import UNDECIDED, deaths, first_ranks, project, survivors_ranked
from tamiz.core.mixing import mixed_gradient
from tamiz.core.penalty import penalty_gradient
from tamiz.core.schedule import VARIANTS, alpha, target


@dataclass(frozen=True)
class Rule:
    r"""The settings of a selection.

    Parameters
    ----------
    n_features, n_features_to_select : int
        F and M.
    variant : {"soft", "hard", "ranking"}
        E2E-FS-Soft, E2E-FS, or the variant that orders all features in one fit.
    mu, rho, beta : float
        The paper's :math:`\mu` (weight of the count penalty beyond 1), :math:`\rho` (soft variant) and :math:`\beta`
        (length of the mixed gradient).
    warmup_steps : int
        Steps during which gamma rests.
    ramp_steps : int
        The paper's T: steps until alpha reaches 1.
    max_steps : int or None
        Steps of selection after which the M largest are kept whatever happens; by default four ramps, and never less than
        gamma needs to go from 1 to 0 four times.
    learning_rate, beta1, beta2, epsilon : float
        gamma's own Adam.

    Examples
    --------
    >>> Rule(100, 5).max_steps
    8000
    >>> Rule(100, 0)
    Traceback (most recent call last):
    ValueError: n_features_to_select must be from 1 to the 100 features there are, got 0
    """

    n_features: int
    n_features_to_select: int
    variant: str = "soft"
    mu: float = 1.0
    rho: float = 0.75
    beta: float = 1.0
    warmup_steps: int = 0
    ramp_steps: int = 2000
    max_steps: int | None = None
    learning_rate: float = 0.01
    beta1: float = 0.5
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(map(repr, VARIANTS))}, got {self.variant!r}")
        if not 1 <= self.n_features_to_select <= self.n_features:
            raise ValueError(
                f"n_features_to_select must be from 1 to the {self.n_features} features there are, "
                f"got {self.n_features_to_select}"
            )
        bounds = {
            "mu": self.mu > 0,
            "rho": 0 <= self.rho <= 1,
            "beta": self.beta > 0,
            "warmup_steps": self.warmup_steps >= 0,
            "ramp_steps": self.ramp_steps >= 1,
            "max_steps": self.max_steps is None or self.max_steps >= 1,
            "learning_rate": 0 < self.learning_rate <= 1,
            "beta1": 0 <= self.beta1 < 1,
            "beta2": 0 <= self.beta2 < 1,
            "epsilon": self.epsilon > 0,
        }
        for name, fine in bounds.items():
            if not fine:
                raise ValueError(f"{name} is out of range: {getattr(self, name)!r}")
        if self.max_steps is None:
            object.__setattr__(self, "max_steps", max(4 * self.ramp_steps, math.ceil(4 / self.learning_rate)))

    @property
    def step_limit(self) -> int:
        """Selection has ended by this step, whatever happens."""
        assert self.max_steps is not None
        return self.warmup_steps + self.max_steps


class State(NamedTuple):
    """What changes from step to step; arrays of one kind, on one device."""

    gamma: Array
    """The mask, in [0, 1]."""
    first: Array
    """Adam's first moment of the mixed gradient."""
    second: Array
    """Adam's second moment."""
    rank: Array
    """0 while a feature's fate is open; its final rank after that (1 is the best)."""
    age: Array
    """Steps that the moments have seen (0-d)."""


def initial_state(rule: Rule, like: Array) -> State:
    """gamma all ones, nothing decided; arrays of the kind, type and device of ``like``.

    Examples
    --------
    >>> import numpy as np
    >>> initial_state(Rule(3, 1), np.zeros(0)).gamma.tolist()
    [1.0, 1.0, 1.0]
    """
    rank = first_ranks(rule.n_features, rule.n_features_to_select, like)
    ones = rank * 0 + as_array(1.0, like)
    gamma = cast(ones, like)
    return State(gamma, 0 * gamma, 0 * gamma, rank, as_array(0, like))


def heading(state: State, rule: Rule) -> Array:
    """Where gamma is going: its value one step on, if its gradient stayed as it is, not clipped.

    Many of the best features stand at 1 together; what they would do without the bound tells them apart.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Rule(3, 1)
    >>> state = advance(initial_state(rule, np.zeros(0)), np.array([-1.0, 2.0, 0.0]), 1, rule)
    >>> heading(state, rule).round(3).tolist()
    [1.01, 0.98, 0.98]
    """
    return state.gamma - _drift(state.first, state.second, state.age, rule)


def _unbiased(moment: Array, beta: float, age: Array) -> Array:
    """Adam's correction ``moment / (1 - beta ** age)``, by ``expm1`` so that float32 does not lose its digits."""
    if beta == 0:
        return moment
    return moment / -namespace(moment).expm1(cast(age, moment) * math.log(beta))


def _drift(first: Array, second: Array, age: Array, rule: Rule) -> Array:
    """Adam's step for moments that have seen ``age`` gradients (none yet: no step)."""
    seen = namespace(first).where(age > 0, age, as_array(1, first))
    denominator = _unbiased(second, rule.beta2, seen) ** 0.5 + rule.epsilon
    return rule.learning_rate * _unbiased(first, rule.beta1, seen) / denominator


def current_ranking(state: State, rule: Rule) -> Array:
    """A full order at any moment, 1 the best: what is open by its heading, then what died, the last death first.

    Examples
    --------
    >>> import numpy as np
    >>> current_ranking(initial_state(Rule(3, 1), np.zeros(0)), Rule(3, 1)).tolist()
    [1, 2, 3]
    """
    return survivors_ranked(heading(state, rule), state.rank)


def is_closed(state: State, rule: Rule) -> Array:
    r"""Whether :math:`L_{1-2} + L_M = 0` with every fate decided: gamma binary with exactly M ones (Theorem 2)."""
    kept = (state.rank > UNDECIDED) & (state.rank <= rule.n_features_to_select)
    return (kept & (state.gamma == 1)).sum() == rule.n_features_to_select


def advance(state: State, loss_gradient: Array, step: int, rule: Rule) -> State:
    """The state after one more step.

    Parameters
    ----------
    state : State
        The state before.
    loss_gradient : array, shape (n_features,)
        Gradient of the training loss with respect to gamma.
    step : int
        The number of this step, counted from 1 over warm-up and selection.
    rule : Rule
        The settings.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Rule(4, 2, ramp_steps=1000)
    >>> state, step = initial_state(rule, np.zeros(0)), 0
    >>> while not is_closed(state, rule):
    ...     step += 1
    ...     state = advance(state, np.array([-1.0, -0.1, -2.0, 1.0]), step, rule)
    >>> state.gamma.tolist(), state.rank.tolist()
    ([1.0, 0.0, 1.0, 0.0], [2, 3, 1, 4])
    """
    if step <= rule.warmup_steps:
        return state
    xp = namespace(state.gamma)
    gamma, m = state.gamma, rule.n_features_to_select
    since = step - rule.warmup_steps

    alive = state.rank <= m
    n_open = (state.rank == UNDECIDED).sum()
    selecting = n_open > 0
    # While features are open there are more than M of them; after that the aim is M for every variant.
    aim = float(target(rule.variant, since, rule.ramp_steps, m + 1, rule.n_features, m, rule.rho))
    aim = xp.where(selecting, as_array(aim, gamma), as_array(float(m), gamma))
    weight = xp.where(selecting, as_array(alpha(since, rule.ramp_steps), gamma), as_array(1.0, gamma))

    nothing = xp.zeros_like(gamma)
    mixed = mixed_gradient(
        xp.where(alive & selecting, loss_gradient, nothing),
        xp.where(alive, penalty_gradient(gamma, aim, rule.mu), nothing),
        weight,
        rule.beta,
    )
    age = state.age + 1
    first = rule.beta1 * state.first + (1 - rule.beta1) * mixed
    second = rule.beta2 * state.second + (1 - rule.beta2) * mixed * mixed
    value = gamma - _drift(first, second, age, rule)

    forced = step >= rule.step_limit
    ahead = heading(State(project(value), first, second, state.rank, age), rule)
    rank = deaths(ahead if forced else value, state.rank, m, forced)
    begins = selecting & ((rank == UNDECIDED).sum() == m)
    rank = xp.where(begins, survivors_ranked(ahead, rank), rank)
    kept = rank <= m
    # The lifting starts from fresh moments: what pulled a survivor down during the selection is over.
    moving = kept & ~begins
    return State(
        cast(xp.where(kept, project(value), nothing), gamma),
        cast(xp.where(moving, first, nothing), gamma),
        cast(xp.where(moving, second, nothing), gamma),
        rank,
        xp.where(begins, as_array(0, age), age),
    )
