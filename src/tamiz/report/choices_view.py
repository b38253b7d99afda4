"""Content of the part of a page that tells what was tried on inner folds, and what was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamiz.report.text import format_number, format_score
from tamiz.selection import Selection

_TITLES = {"network": "Network", "l2": "Weight decay", "n_features_to_select": "Features to keep"}
_RULES = {
    "one_se": "the simplest within one standard error of the best mean",
    "unbeaten": "the simplest that is within one standard error of the best mean, or that the best does not clearly beat",
    "best": "the best mean",
    "guarded": "the usual one unless another is better by more than the standard error of the gain",
}


def choice_tables(selection: Selection) -> list[dict[str, Any]]:
    """Return a table for each thing that the data decided, in the order in which they were decided.

    Parameters
    ----------
    selection : Selection
        Its ``choices`` hold what was tried.

    Returns
    -------
    list of dict
        Each with ``title``, ``scoring``, ``note`` and ``rows``: candidate, mean score, standard error, whether it was taken,
        and why it could not be fitted.

    Examples
    --------
    >>> import numpy as np
    >>> tried = {"candidates": ["linear", "mlp"], "mean": [0.8, None], "standard_error": [0.1, None], "chosen": "linear"}
    >>> tried |= {"scores": [[0.7, 0.9], [None, None]], "rule": "one_se", "scoring": "accuracy", "reasons": {"mlp": "no"}}
    >>> selection = Selection(support=np.array([True]), ranking=np.array([1]), choices={"network": tried})
    >>> [row["mean"] for row in choice_tables(selection)[0]["rows"]]
    ['0.800', '–']
    """
    return [_table(_TITLES.get(name, name), choice) for name, choice in selection.choices.items()]


def _table(title: str, choice: Mapping[str, Any]) -> dict[str, Any]:
    rule = choice["rule"]
    taken = _RULES.get(rule) or f"the simplest within {format_number(float(rule))} of the best mean"
    reasons = choice.get("reasons") or {}
    rows = [
        {
            "candidate": format_number(candidate) if isinstance(candidate, float) else f"{candidate}",
            "mean": "–" if mean is None else format_score(mean),
            "error": "–" if error is None else format_score(error),
            "taken": candidate == choice["chosen"],
            "reason": reasons.get(str(candidate), ""),
        }
        for candidate, mean, error in zip(choice["candidates"], choice["mean"], choice["standard_error"])
    ]
    return {
        "title": title,
        "scoring": choice["scoring"],
        "note": f"Means over {len(choice['scores'][0])} inner folds of all rows; taken: {taken}.",
        "rows": rows,
    }
