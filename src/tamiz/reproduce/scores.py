"""Headline scores of a run: one number per method and data set, from which the page of all results is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class HeadlineScore:
    """Hold the score of one method on one data set.

    Parameters
    ----------
    dataset : str
        Name of the data set as tables show it.
    measure : str
        What is measured, such as "balanced accuracy"; more is better.
    basis : str
        Over what the value is a mean. Only scores of the same basis are compared.
    method : str
        Name of the method in the registry.
    title : str
        Name of the method as tables show it.
    value : float
        Score.
    detail : str, default=""
        Tells rows of one method apart, such as the learner.
    recipe : str or None, default=None
        Recipe of the networks; None if no network was trained, or if there is only one recipe.
    published : float or None, default=None
        Published number of the same row.

    Examples
    --------
    >>> HeadlineScore("COLON", "accuracy", "3 splits", "fisher", "Fisher", 0.8, "Naive").label
    'Fisher, Naive'
    """

    dataset: str
    measure: str
    basis: str
    method: str
    title: str
    value: float
    detail: str = ""
    recipe: str | None = None
    published: float | None = None

    @property
    def label(self) -> str:
        """Title of the method, with the detail."""
        return f"{self.title}, {self.detail}" if self.detail else self.title


def scores_to_json(scores: Iterable[HeadlineScore]) -> list[dict[str, Any]]:
    """Return scores as records for JSON; those without a value (every cell of the row failed) are left out.

    Examples
    --------
    >>> scores_to_json([HeadlineScore("a", "accuracy", "3 splits", "fisher", "Fisher", float("nan"))])
    []
    """
    return [asdict(score) for score in scores if math.isfinite(score.value)]


def scores_from_json(records: Iterable[Mapping[str, Any]]) -> list[HeadlineScore]:
    """Return the scores of the records that :func:`scores_to_json` made.

    Examples
    --------
    >>> score = HeadlineScore("a", "accuracy", "3 splits", "fisher", "Fisher", 0.5, published=0.6)
    >>> scores_from_json(scores_to_json([score])) == [score]
    True
    """
    return [HeadlineScore(**record) for record in records]
