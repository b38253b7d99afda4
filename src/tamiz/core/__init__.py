"""The rule of the paper, once: settings, schedule, the step, losses and history. No framework, no input or output.

``tamiz.core.step`` states the step for NumPy arrays and torch tensors, ``tamiz.core.compiled`` the same step compiled for
arrays on the CPU. The compiled modules (``compiled``, ``history``) are not imported here: they load numba.
"""

from tamiz.core.rule import (
    HISTORY_COLUMNS,
    VARIANTS,
    Phase,
    Rule,
    RuleNumbers,
    ScheduleWindow,
    Slot,
    Variant,
    alpha,
    selection_schedule,
)
from tamiz.core.step import (
    UNDECIDED,
    MaskState,
    advance,
    binary_penalty,
    count_penalty,
    current_ranking,
    eliminate,
    extrapolated_gamma,
    fill_budget,
    initial_state,
    is_closed,
    mixed_gradient,
    penalty,
    penalty_gradient,
    project,
    rank_survivors,
    unit,
    writeable_view,
)

__all__ = [
    "HISTORY_COLUMNS",
    "UNDECIDED",
    "VARIANTS",
    "MaskState",
    "Phase",
    "Rule",
    "RuleNumbers",
    "ScheduleWindow",
    "Slot",
    "Variant",
    "advance",
    "alpha",
    "binary_penalty",
    "count_penalty",
    "current_ranking",
    "eliminate",
    "extrapolated_gamma",
    "fill_budget",
    "initial_state",
    "is_closed",
    "mixed_gradient",
    "penalty",
    "penalty_gradient",
    "project",
    "rank_survivors",
    "selection_schedule",
    "unit",
    "writeable_view",
]
