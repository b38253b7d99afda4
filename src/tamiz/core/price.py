r"""Leave the number of features to the loss and one strength: a price for each feature takes the place of the count penalty.

Gamma follows

.. math::
    (1-\alpha)\, z(\partial (L_f + \lambda \|\gamma\|_1)/\partial\gamma) + \alpha\, z(\partial L_{1-2}/\partial\gamma)

so the strength :math:`\lambda` is a price in units of the loss, and :math:`L_{1-2}` of the paper (eq. 2), which prefers no
count, makes gamma binary. The price stands beside the loss and not beside :math:`L_{1-2}`: there its part would not
depend on the loss, and either all features or none would stay.

The selection ends with the ramp (:math:`\alpha = 1`). From then on :math:`L_{1-2}` alone would lift what is above one half and
lower the rest, so this is where :func:`decide_by_price` draws the line; the closing then lifts what is kept to exactly 1.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from tamiz.core._arrays import Array, as_array, cast, namespace
from tamiz.core.closing import UNDECIDED, eliminate, rank_survivors
from tamiz.core.rule import Rule
from tamiz.core.step import MaskState, advance, extrapolated_gamma

#: L_12 lifts what is above and lowers what is below.
BOUNDARY = 0.5


def check_strength(strength: Any) -> None:
    """Raise ValueError if a strength is not a finite number above 0.

    Examples
    --------
    >>> check_strength(0)
    Traceback (most recent call last):
    ValueError: strength must be a finite number above 0, got 0
    """
    is_number = isinstance(strength, numbers.Real) and not isinstance(strength, bool)
    if not is_number or not 0 < float(strength) < math.inf:
        raise ValueError(f"strength must be a finite number above 0, got {strength!r}")


def decide_by_price(state: MaskState, rule: Rule) -> MaskState:
    """Return the state with every feature decided: those above one half are kept, the others eliminated, the lowest first.

    Parameters
    ----------
    state : MaskState
        At the end of the selection, or earlier, to see what would be kept now.
    rule : Rule
        The settings.

    Returns
    -------
    MaskState
        ``kept`` holds how many are kept, 0 to all of them; the moments are fresh, as at the beginning of every closing.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import initial_state
    >>> rule = Rule(4, 0, strength=0.1)
    >>> state = initial_state(rule, np.zeros(0))._replace(gamma=np.array([0.9, 0.2, 0.6, 0.4]))
    >>> decided = decide_by_price(state, rule)
    >>> decided.rank.tolist(), int(decided.kept), decided.gamma.tolist()
    ([1, 4, 2, 3], 2, [0.9, 0.0, 0.6, 0.0])
    """
    xp = namespace(state.gamma)
    rank = eliminate(state.gamma - BOUNDARY, state.rank, 0)
    n_kept = (rank == UNDECIDED).sum()
    rank = rank_survivors(extrapolated_gamma(state, rule), rank)
    zeros = xp.zeros_like(state.gamma)
    gamma = cast(xp.where(rank <= n_kept, state.gamma, zeros), state.gamma)
    return MaskState(gamma, zeros, zeros, rank, as_array(0, state.gamma), n_kept)


def advance_with_price(state: MaskState, loss_gradient: Array, step: int, rule: Rule) -> MaskState:
    """Return the state after one more step of a rule with a strength; parameters of :func:`tamiz.core.advance`.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import initial_state, is_closed
    >>> rule = Rule(4, 0, strength=0.5, ramp_steps=300)
    >>> state, step = initial_state(rule, np.zeros(0)), 0
    >>> while not is_closed(state, rule):
    ...     step += 1
    ...     state = advance_with_price(state, np.array([-1.0, -0.1, -2.0, 1.0]), step, rule)
    >>> state.gamma.tolist()  # only two lower the loss by more than 0.5
    [1.0, 0.0, 1.0, 0.0]
    """
    assert rule.strength is not None
    state = advance(state, loss_gradient + rule.strength, step, rule)
    return decide_by_price(state, rule) if step == rule.step_limit else state
