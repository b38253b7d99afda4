"""The rule of the paper, once: settings, schedule, the step, losses and history. No framework, no input or output.

``tamiz.core.step`` states the step for NumPy arrays and torch tensors, ``tamiz.core.compiled`` the same step compiled for
arrays on the CPU. The compiled modules (``compiled``, ``history``) are not imported here: they load numba.
"""

from tamiz.core._arrays import writeable_view
from tamiz.core.closing import UNDECIDED, eliminate, fill_budget, project, rank_survivors
from tamiz.core.mixing import mixed_gradient, unit
from tamiz.core.penalty import binary_penalty, count_penalty, penalty, penalty_gradient
from tamiz.core.rule import Rule, RuleNumbers
from tamiz.core.schedule import VARIANTS, ScheduleWindow, Variant, alpha, selection_schedule
from tamiz.core.state import HISTORY_COLUMNS, Phase, Slot
from tamiz.core.step import MaskState, advance, current_ranking, extrapolated_gamma, initial_state, is_closed

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
