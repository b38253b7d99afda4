"""The paper as pure functions: no state, no framework. NumPy arrays or torch tensors in, the same kind out."""

from tamiz.core.closing import UNDECIDED, deaths, project, survivors_ranked
from tamiz.core.mixing import mixed_gradient, unit
from tamiz.core.penalty import binary_penalty, count_penalty, penalty, penalty_gradient
from tamiz.core.rule import Rule, State, advance, current_ranking, heading, initial_state, is_closed
from tamiz.core.schedule import VARIANTS, alpha, ranking_target, relaxation, soft_target, target

__all__ = [
    "UNDECIDED",
    "VARIANTS",
    "Rule",
    "State",
    "advance",
    "alpha",
    "binary_penalty",
    "count_penalty",
    "current_ranking",
    "deaths",
    "heading",
    "initial_state",
    "is_closed",
    "mixed_gradient",
    "penalty",
    "penalty_gradient",
    "project",
    "ranking_target",
    "relaxation",
    "soft_target",
    "survivors_ranked",
    "target",
    "unit",
]
