"""Advance gamma by one step of the paper's rule, as a pure function for NumPy arrays and torch tensors.

Warm-up (gamma does not move) -> selection (alpha rises, features are eliminated) -> closing (exactly M are alive, the
penalty alone lifts them to 1) -> closed. There is no branch on the contents of an array, so on an accelerator a step never
waits for the host. ``tamiz.core.compiled`` holds the same step in place for arrays on the CPU; a test compares the two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tamiz.core._arrays import Array, as_array, cast, namespace
from tamiz.core.closing import UNDECIDED, eliminate, initial_ranks, project, rank_survivors
from tamiz.core.mixing import mixed_gradient
from tamiz.core.penalty import penalty_gradient
from tamiz.core.rule import Rule
from tamiz.core.schedule import selection_schedule


class MaskState(NamedTuple):
    """State of a mask between two steps; arrays of one kind, on one device."""

    gamma: Array
    """The mask, in [0, 1]."""
    first: Array
    """First moment of the mixed gradient (Adam)."""
    second: Array
    """Second moment."""
    rank: Array
    """0 while a feature is undecided, then its final rank (1 is the best)."""
    age: Array
    """Steps that the moments have seen (0-d)."""
    kept: Array
    """Features that are kept in the end (0-d): M; with a budget 0 until the closing begins."""


def initial_state(rule: Rule, like: Array) -> MaskState:
    """Return the state at the start: gamma all ones, nothing decided; arrays of the kind, type and device of ``like``.

    Examples
    --------
    >>> import numpy as np
    >>> initial_state(Rule(3, 1), np.zeros(0)).gamma.tolist()
    [1.0, 1.0, 1.0]
    """
    rank = initial_ranks(rule.n_features, rule.n_features_to_select, like)
    gamma = cast(rank * 0 + as_array(1.0, like), like)
    return MaskState(gamma, 0 * gamma, 0 * gamma, rank, as_array(0, like), as_array(rule.n_features_to_select, like))


def extrapolated_gamma(state: MaskState, rule: Rule) -> Array:
    """Return gamma one step on if its gradient stayed as it is, not clipped.

    Many of the best features stand at 1 together; their values without the bound tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Rule(3, 1)
    >>> state = advance(initial_state(rule, np.zeros(0)), np.array([-1.0, 2.0, 0.0]), 1, rule)
    >>> extrapolated_gamma(state, rule).round(3).tolist()
    [1.01, 0.98, 0.98]
    """
    return state.gamma - _adam_step(state.first, state.second, state.age, rule)


def _unbiased(moment: Array, beta: float, age: Array) -> Array:
    """Apply the correction of Adam, ``moment / (1 - beta ** age)``, by ``expm1`` so that float32 does not lose digits."""
    if beta == 0:
        return moment
    return moment / -namespace(moment).expm1(cast(age, moment) * math.log(beta))


def _adam_step(first: Array, second: Array, age: Array, rule: Rule) -> Array:
    """Return the step of Adam for moments that have seen ``age`` gradients (0 for none)."""
    seen = namespace(first).where(age > 0, age, as_array(1, first))
    numbers = rule.numbers
    denominator = _unbiased(second, numbers.beta2, seen) ** 0.5 + numbers.epsilon
    return numbers.mask_learning_rate * _unbiased(first, numbers.beta1, seen) / denominator


def current_ranking(state: MaskState, rule: Rule) -> Array:
    """Return a full order at any moment, 1 the best: the undecided by extrapolated gamma, then the eliminated, last first.

    Examples
    --------
    >>> import numpy as np
    >>> current_ranking(initial_state(Rule(3, 1), np.zeros(0)), Rule(3, 1)).tolist()
    [1, 2, 3]
    """
    return rank_survivors(extrapolated_gamma(state, rule), state.rank)


def is_closed(state: MaskState, rule: Rule) -> Array:
    r"""Check that :math:`L_{1-2} + L_M = 0` with every feature decided: gamma is binary with exactly M ones (Theorem 2)."""
    kept = (state.rank > UNDECIDED) & (state.rank <= state.kept)
    return ((kept & (state.gamma == 1)).sum() == state.kept) & ((state.rank == UNDECIDED).sum() == 0)


def advance(state: MaskState, loss_gradient: Array, step: int, rule: Rule) -> MaskState:
    """Return the state after one more step.

    Parameters
    ----------
    state : MaskState
        The state before the step.
    loss_gradient : array, shape (n_features,)
        Gradient of the training loss with respect to gamma.
    step : int
        Number of this step, counted from 1 over warm-up and selection.
    rule : Rule
        The settings.

    Returns
    -------
    MaskState

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
    gamma, m, numbers = state.gamma, state.kept, rule.numbers

    alive = state.rank <= m
    selecting = (state.rank == UNDECIDED).sum() > 0
    # While features are undecided there are more than M of them; after that the target is M for every variant.
    (alpha,), (target,) = selection_schedule(rule, step, 1)
    target = xp.where(selecting, as_array(float(target), gamma), cast(m, gamma))
    alpha = xp.where(selecting, as_array(float(alpha), gamma), as_array(1.0, gamma))
    costs = _costs(rule, gamma)
    # In the closing every feature counts once: all that are left have to come to 1.
    weights = None if costs is None else xp.where(selecting, cast(costs, gamma), xp.ones_like(gamma))

    zeros = xp.zeros_like(gamma)
    mixed = mixed_gradient(
        xp.where(alive & selecting, loss_gradient, zeros),
        xp.where(alive, penalty_gradient(gamma, target, numbers.mu, weights), zeros),
        alpha,
    )
    age = state.age + 1
    beta1, beta2 = numbers.beta1, numbers.beta2
    first = beta1 * state.first + (1 - beta1) * mixed
    second = beta2 * state.second + (1 - beta2) * mixed * mixed
    value = gamma - _adam_step(first, second, age, rule)

    forced = step >= rule.step_limit and rule.strength is None
    extrapolated = extrapolated_gamma(MaskState(project(value), first, second, state.rank, age, m), rule)
    rank = eliminate(extrapolated if forced else value, state.rank, m, forced, costs, rule.limit)
    undecided = rank == UNDECIDED
    if costs is None:
        closing_begins = selecting & (undecided.sum() == m)
    else:
        closing_begins = selecting & (xp.where(undecided, costs, xp.zeros_like(costs)).sum() <= rule.limit)
        m = xp.where(closing_begins, undecided.sum(), m)
    rank = xp.where(closing_begins, rank_survivors(extrapolated, rank), rank)
    kept = rank <= m
    # The closing starts from fresh moments: what pulled a survivor down during the selection is over.
    moving = kept & ~closing_begins
    return MaskState(
        cast(xp.where(kept, project(value), zeros), gamma),
        cast(xp.where(moving, first, zeros), gamma),
        cast(xp.where(moving, second, zeros), gamma),
        rank,
        xp.where(closing_begins, as_array(0, age), age),
        m,
    )


def _costs(rule: Rule, like: Array) -> Array | None:
    """Return the costs as an array of the kind and on the device of ``like``, in float64."""
    if rule.costs is None:
        return None
    xp = namespace(like)
    return rule.costs if xp is np else xp.asarray(rule.costs, device=like.device)
