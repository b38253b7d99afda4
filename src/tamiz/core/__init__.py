"""The rule of the paper, once: settings, schedule, the step, losses and history. No framework, no input or output.

``tamiz.core.step`` states the step for NumPy arrays, ``tamiz.core.compiled`` the same step compiled for
arrays on the CPU. The compiled modules (``compiled``, ``history``) are not imported here: they load numba.
"""

from tamiz.core.rule import HISTORY_COLUMNS, VARIANTS, Rule, Slot, Variant, alpha, selection_schedule
from tamiz.core.step import (
    MaskState,
    advance,
    binary_penalty,
    current_ranking,
    fill_budget,
    initial_state,
    is_closed,
    penalty,
    writeable_view,
)

__all__ = [
    "HISTORY_COLUMNS",
    "VARIANTS",
    "MaskState",
    "Rule",
    "Slot",
    "Variant",
    "advance",
    "alpha",
    "binary_penalty",
    "current_ranking",
    "fill_budget",
    "initial_state",
    "is_closed",
    "penalty",
    "selection_schedule",
    "writeable_view",
]
