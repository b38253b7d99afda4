"""Rules that choose among candidates by their scores on held-out rows, and the record of a choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

#: A rule by name, or the tolerance below the best score.
SelectionRule = str | float


@dataclass(frozen=True, eq=False)
class Choice:
    """Record what was tried and what was taken.

    Parameters
    ----------
    candidates : sequence
        Values that were tried, the simplest first.
    scores : ndarray, shape (n_candidates, n_splits)
        Score of each on each inner fold; NaN where a candidate could not be fitted.
    position : int
        Which candidate was taken.
    rule : str or float
        How: a rule of :func:`choose_simplest`, "unbeaten" (:func:`choose_unbeaten`) or "guarded" (:func:`choose_guarded`).
    scoring : str
        What the scores are.
    reasons : dict of str to str
        Why a candidate could not be fitted, by its text.

    Examples
    --------
    >>> choice = Choice([1, 2], np.array([[0.5, 0.7], [0.9, 0.9]]), 1, "best", "accuracy")
    >>> choice.chosen, choice.to_dict()["mean"]
    (2, [0.6, 0.9])
    """

    candidates: Sequence[Any]
    scores: np.ndarray
    position: int
    rule: SelectionRule
    scoring: str
    reasons: dict[str, str] | None = None

    @property
    def chosen(self) -> Any:
        """Return the candidate that was taken."""
        return self.candidates[self.position]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, ready for JSON; None stands for a score that there is not."""
        mean, error = self.scores.mean(axis=1), standard_errors(self.scores)
        return {
            "candidates": list(self.candidates),
            "mean": _plain(mean),
            "standard_error": _plain(error),
            "scores": [_plain(row) for row in self.scores],
            "chosen": self.chosen,
            "rule": self.rule,
            "scoring": self.scoring,
            "reasons": dict(self.reasons or {}),
        }


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(value) else round(float(value), 12) for value in values]


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean of each row; NaN for a single split.

    Examples
    --------
    >>> standard_errors(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist()
    [0.5, 0.0]
    """
    n_splits = scores.shape[1]
    if n_splits < 2:
        return np.full(scores.shape[0], np.nan)
    return scores.std(axis=1, ddof=1) / math.sqrt(n_splits)


def choose_simplest(scores: np.ndarray, rule: SelectionRule = "one_se") -> int:
    """Return the first candidate whose mean score is near enough to the best.

    Parameters
    ----------
    scores : ndarray, shape (n_candidates, n_splits)
        Scores on held-out folds, the simplest candidate first; candidates with NaN are never taken.
    rule : {"one_se", "best"} or float, default="one_se"
        "one_se": within one standard error of the best mean, "best": the best mean, a number: within that much of it.

    Examples
    --------
    >>> scores = np.array([[0.70, 0.74], [0.79, 0.81], [0.76, 0.88]])
    >>> choose_simplest(scores), choose_simplest(scores, "best"), choose_simplest(scores, 0.2)
    (1, 2, 0)
    """
    mean = scores.mean(axis=1)
    if np.isnan(mean).all():
        raise ValueError("no candidate has a score on every fold; use other folds (cv) or another scoring")
    best = int(np.nanargmax(mean))
    if rule == "best":
        return best
    slack = float(np.nan_to_num(standard_errors(scores)[best])) if rule == "one_se" else float(rule)
    # A tolerance of 0.1 takes in 0.8 beside 0.9, whatever their last binary digit.
    return int(np.flatnonzero(mean >= mean[best] - slack - 1e-12)[0])


def choose_unbeaten(scores: np.ndarray) -> int:
    """Return the first candidate that is within one standard error of the best, or that the best does not clearly beat.

    Clearly: by more than the one-sided 5 % limit of the corrected t test of paired scores (Nadeau and Bengio 2003), which
    allows for training rows that the folds share. Of few rows the best of several candidates is often the luckiest one, and
    its standard error is then small by the same luck.

    Parameters
    ----------
    scores : ndarray, shape (n_candidates, n_splits)
        Scores on the folds of a cross-validation, the simplest candidate first; candidates with NaN are never taken.

    Examples
    --------
    >>> scores = np.array([[0.7, 0.9, 0.8], [0.9, 0.9, 0.9]])
    >>> choose_simplest(scores), choose_unbeaten(scores)
    (1, 0)
    """
    simplest = choose_simplest(scores)
    n_splits = scores.shape[1]
    if n_splits < 2:
        return simplest
    gains = scores[int(np.nanargmax(scores.mean(axis=1)))] - scores
    # Each fold tests one part of the rows and trains on the n_splits - 1 others.
    errors = gains.std(axis=1, ddof=1) * math.sqrt(1 / n_splits + 1 / (n_splits - 1))
    unbeaten = gains.mean(axis=1) <= stdtrit(n_splits - 1, 0.95) * errors
    return min(simplest, int(np.flatnonzero(unbeaten)[0]))


def choose_guarded(row_scores: np.ndarray) -> int:
    """Return the first candidate, unless others are better by more than the standard error of the paired gain.

    Of these it is the first that the best of them does not beat by more than the standard error of that gain.

    Parameters
    ----------
    row_scores : ndarray, shape (n_candidates, n_rows)
        A score of each held-out row under each candidate.

    Examples
    --------
    >>> choose_guarded(np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    1
    >>> choose_guarded(np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]]))
    0
    """
    better = np.flatnonzero(_gains_beyond_error(row_scores - row_scores[0]))
    if not better.size:
        return 0
    best = better[row_scores[better].mean(axis=1).argmax()]
    beaten = _gains_beyond_error(row_scores[best] - row_scores[better])
    return int(better[np.flatnonzero(~beaten)[0]])


def _gains_beyond_error(gains: np.ndarray) -> np.ndarray:
    """Return which mean gains are larger than their standard error."""
    return gains.mean(axis=1) > np.nan_to_num(standard_errors(gains), nan=np.inf)
