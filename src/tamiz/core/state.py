"""Name the phases of a run, the places of the counters of a mask, and the columns of a history."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """Phase of a run, as the column ``phase`` of a history holds it.

    Examples
    --------
    >>> [phase.label for phase in Phase]
    ['warm-up', 'selection', 'closing', 'refinement']
    """

    WARM_UP = 0
    """gamma does not move; the weights are trained."""
    SELECTION = 1
    """Features are eliminated."""
    CLOSING = 2
    """Exactly M features are alive; the penalty alone lifts them to 1."""
    REFINEMENT = 3
    """gamma is binary and fixed; the weights are trained on."""

    @property
    def label(self) -> str:
        """Return the name that reports print."""
        return "warm-up" if self is Phase.WARM_UP else self.name.lower()


class Slot(IntEnum):
    """Position of a number in the array ``counters`` that belongs to a gamma; compiled code and checkpoints use it."""

    STEP = 0
    """Steps taken, warm-up included."""
    AGE = 1
    """Steps that the moments of gamma have seen."""
    OPEN = 2
    """Features that are neither eliminated nor kept yet; 0 once exactly M are left."""
    CLOSED = 3
    """1 once gamma is binary with exactly M ones."""
    FORCED = 4
    """1 if the step limit had to decide, 2 once that was reported."""
    KEPT = 5
    """Features that are kept in the end: M; with a budget 0 until the closing begins."""


N_SLOTS = len(Slot)

#: Columns of a history, one row per recorded step; ``phase`` is a :class:`Phase`.
HISTORY_COLUMNS = ("step", "phase", "loss", "n_alive", "gamma_sum", "alpha")
