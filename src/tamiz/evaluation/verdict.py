"""One sentence on an evaluation: is there anything, and do the kept features do as well as all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamiz.evaluation.cross_validation import Evaluation

#: Level below which a score counts as better than that of shuffled targets.
SIGNAL_LEVEL = 0.05


def find_verdict(evaluation: Evaluation) -> str:
    """Return one sentence on an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        With its null, or without.

    Returns
    -------
    str
    """
    n_kept, n_features = evaluation.n_features_to_select, evaluation.n_features
    kept = f"{n_kept:,} of {n_features:,} columns"
    null = evaluation.null
    if null is not None and null.p_value > SIGNAL_LEVEL and null.p_value * (null.n_permutations + 1) <= 1:
        return (
            f"None of {null.n_permutations} shuffled targets does as well, which are too few to tell a signal from chance; "
            "take 20 or more."
        )
    if null is not None and null.p_value > SIGNAL_LEVEL:
        return f"No sign of signal: shuffled targets do as well (p = {null.p_value:.2f}, {null.n_permutations} permutations)."
    tested = (
        f"better than shuffled targets, p = {null.p_value:.3f}"
        if null is not None and math.isfinite(null.p_value)
        else "not compared with shuffled targets"
    )
    if n_kept == n_features:
        return f"All {n_features:,} columns were kept ({tested})."
    gap = evaluation.difference("all_features")
    if not gap.has_ends:
        return f"{kept} were kept ({tested}); how they compare with all cannot be told."
    ahead = evaluation.metric.sign * gap.value
    if gap.low <= 0 <= gap.high:
        return f"{kept} predict as well as all, as far as these rows can tell ({tested})."
    return f"{kept} predict {'better' if ahead > 0 else 'worse'} than all, by {abs(gap.value):.3f} ({tested})."
