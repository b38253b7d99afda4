"""Choose network and M by inner cross-validation; prefer the simplest candidate."""

from __future__ import annotations

import math
import numbers
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from tamiz._utils.names import pick_name
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, find_network
from tamiz.estimators.training import Auto, is_auto
from tamiz.rows.rows import Rows

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
        How: a rule of :func:`choose_simplest`, or "guarded" (:func:`choose_guarded`).
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
        """The candidate that was taken."""
        return self.candidates[self.position]

    def to_dict(self) -> dict[str, Any]:
        """List the record as plain values, ready for JSON; None stands for a score that there is not."""

        def plain(values: np.ndarray) -> list[float | None]:
            return [None if math.isnan(value) else round(float(value), 12) for value in values]

        scores = {"mean": plain(self.scores.mean(axis=1)), "standard_error": plain(standard_errors(self.scores))}
        taken = {"chosen": self.chosen, "rule": self.rule, "scoring": self.scoring, "reasons": self.reasons or {}}
        return {"candidates": list(self.candidates), **scores, "scores": [plain(row) for row in self.scores], **taken}


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Compute the standard error of the mean of each row; NaN for a single split.

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
    """Find the first candidate whose mean score is near enough to the best.

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


def choose_guarded(row_scores: np.ndarray, limit: float = 1.0) -> int:
    """Take the first candidate, unless others are better by more than ``limit`` standard errors of the paired gain.

    Of these it is the first that the best of them does not beat by more than that.

    Parameters
    ----------
    row_scores : ndarray, shape (n_candidates, n_rows)
        A score of each held-out row under each candidate; candidates with NaN are not taken.
    limit : float, default=1.0
        Standard errors that a gain must exceed.

    Examples
    --------
    >>> choose_guarded(np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    1
    >>> choose_guarded(np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]]))
    0
    """

    def is_beyond(gains: np.ndarray) -> np.ndarray:
        return gains.mean(axis=1) > limit * np.nan_to_num(standard_errors(gains), nan=np.inf)

    better = np.flatnonzero(is_beyond(row_scores - row_scores[0]))
    if not better.size:
        return 0
    best = better[row_scores[better].mean(axis=1).argmax()]
    return int(better[np.flatnonzero(~is_beyond(row_scores[best] - row_scores[better]))[0]])


#: Training rows and test rows.
Split = tuple[np.ndarray, np.ndarray]
#: A fitted estimator, the table and the target of held-out rows -> a score, larger is better.
Scorer = Callable[[Any, Any, Any], float]


def inner_folds(rows: Rows, task: str, cv: Any, seed: int, purpose: str) -> list[Split]:
    """Split the rows of a fit into inner folds that respect their groups or their time.

    Parameters
    ----------
    rows : Rows
        The rows; those of weight 0 are in no part of a split.
    task : {"classification", "regression"}
        Classes are stratified.
    cv : int, splitter, iterable of splits or None
        A number of folds, shuffled by ``seed`` (at most the rows, or groups, of the smallest class); None is 5; else as in
        scikit-learn's ``check_cv``, for the rows as given.
    seed : int
        Seed of the shuffle.
    purpose : str
        The parameter that needs the folds, for messages.

    Examples
    --------
    >>> splits = inner_folds(Rows(np.zeros((4, 1)), [0, 0, 1, 1]), "classification", 5, 0, "l2='auto'")
    >>> len(splits), sorted(np.concatenate([test for _, test in splits]).tolist())
    (2, [0, 1, 2, 3])
    >>> rows = Rows(np.zeros((6, 1)), np.arange(6.0), time=[3, 1, 2, 6, 5, 4])
    >>> [(train.tolist(), test.tolist()) for train, test in inner_folds(rows, "regression", 2, 0, "l2='auto'")]
    [([1, 2], [0, 5]), ([0, 1, 2, 5], [3, 4])]
    """
    n_folds = 5 if cv is None else cv
    if not isinstance(n_folds, numbers.Integral):
        folds = check_cv(cv, rows.y, classifier=task == "classification").split(rows.source, rows.y, rows.groups)
        splits = [(rows.weighted(train), rows.weighted(test)) for train, test in folds]
        if not splits or any(part.size == 0 for fold in splits for part in fold):
            raise ValueError(f"cv gives no split, or one without rows of a weight above 0; {purpose} needs both parts.")
        return splits
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
    if rows.groups is not None and rows.time is not None:
        raise ValueError("inner folds follow groups or time, not both: leave one of them out.")
    y, counted = rows.y[rows.used], rows.used
    groups = None if rows.groups is None else rows.groups[counted]
    if rows.time is not None:
        found = _forward_folds(rows.time[counted], y, task, int(n_folds))
    elif not has_classes(y, task):
        units = y.shape[0] if groups is None else 2 * np.unique(groups).size
        if units < 4:
            raise ValueError(
                f"{purpose} needs at least 4 rows, or 2 groups of rows, to split into folds, got {y.shape[0]}; give a value."
            )
        n_folds = min(int(n_folds), units // 2)
        kind: Any = KFold if groups is None else GroupKFold
        found = list(kind(n_folds, shuffle=True, random_state=seed).split(y, groups=groups))
    else:
        label, count = smallest_class(y, groups)
        if count < 2:
            what = "row" if groups is None else "group of rows"
            raise ValueError(
                f"Class {label!r} has 1 {what}, but {purpose} needs at least 2 of each class, one to learn from and one to "
                "score. Leave that class out, join it with another, or give a value."
            )
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        folds = kind(min(int(n_folds), count), shuffle=True, random_state=seed)
        found = list(folds.split(np.zeros(y.shape[0]), y.ravel(), groups))
        if groups is not None:
            found = [fold for fold in found if fold[1].size and np.unique(y[fold[0]]).size == np.unique(y).size]
    if not found:
        raise ValueError(f"{purpose} needs inner folds, and no split of the rows trains on every class; give a value.")
    return [(counted[train], counted[test]) for train, test in found]


def _forward_folds(time: np.ndarray, y: np.ndarray, task: str, n_folds: int) -> list[Split]:
    """Split rows in time: every fold trains on all that came before its test rows; rows of one time stay together."""
    _, moment = np.unique(time, return_inverse=True)
    counts = np.bincount(moment)
    # Part of a moment by the rows before it, so that the parts hold about as many rows.
    part = np.minimum((np.cumsum(counts) - counts) * (n_folds + 1) // time.size, n_folds)[moment]
    folds = [(np.flatnonzero(part < i), np.flatnonzero(part == i)) for i in range(1, n_folds + 1)]
    least = 2 if has_classes(y, task) else 1
    return [
        fold for fold in folds if fold[1].size and len(fold[0]) >= 2 and len(np.unique(y[fold[0]], axis=0)) >= least
    ]


def has_classes(y: np.ndarray, task: str) -> bool:
    """Check whether the target holds one class per row (not labels of an indicator table, not numbers).

    Examples
    --------
    >>> has_classes(np.array([0, 1]), "classification"), has_classes(np.eye(2), "classification")
    (True, False)
    """
    return task == "classification" and (y.ndim == 1 or y.shape[1] == 1)


def smallest_class(y: np.ndarray, groups: np.ndarray | None = None) -> tuple[Any, int]:
    """Find the class with the fewest rows, or groups of rows, and how many it has.

    Examples
    --------
    >>> smallest_class(np.array(["a", "b", "b"])), smallest_class(np.array([0, 0, 1, 1]), np.array([1, 2, 3, 3]))
    (('a', 1), (1, 1))
    """
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if groups is not None:
        counts = np.array([np.unique(groups[codes == code]).size for code in range(labels.size)])
    place = int(counts.argmin())
    return labels[place].item() if hasattr(labels[place], "item") else labels[place], int(counts[place])


#: Beginnings of the names of scikit-learn's scores that subtract predictions from targets.
_SCORES_OF_NUMBERS = (
    *("r2", "explained_variance", "max_error", "neg_max_error", "neg_mean_", "neg_median_", "neg_root_"),
    *("d2_absolute_error", "d2_pinball", "d2_tweedie"),
)


def find_scorer(estimator: Any, scoring: Any, y: np.ndarray, task: str) -> tuple[str, Scorer]:
    """Look up the name and the function of a ``scoring``.

    Parameters
    ----------
    estimator : estimator
        What is scored.
    scoring : str, callable or None
        As in scikit-learn; None is the balanced accuracy for classes, R2 for numbers, the accuracy for labels.
    y : ndarray
        The target.
    task : {"classification", "regression"}
        What it holds.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> find_scorer(DummyClassifier(), "acuracy", np.array([0, 1]), "classification")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown scoring 'acuracy'. Did you mean 'accuracy'? ...
    """
    if scoring is None:
        if has_classes(y, task):
            return "balanced_accuracy", lambda model, X, y: float(row_scores(model.predict(X), y, task).mean())
        return ("r2" if task == "regression" else "accuracy"), check_scoring(estimator)
    if isinstance(scoring, str):
        scoring = pick_name(scoring, get_scorer_names(), "scoring")
        if scoring.startswith(_SCORES_OF_NUMBERS) and np.asarray(y).dtype.kind not in "iufb":
            raise ValueError(
                f"scoring={scoring!r} is for numbers, but y holds classes; use balanced_accuracy or accuracy."
            )
    elif not callable(scoring):
        raise TypeError(f"scoring must be a name of scikit-learn, a callable or None, got {scoring!r}.")
    return str(getattr(scoring, "__name__", scoring)), check_scoring(estimator, scoring)


def row_scores(predicted: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    """Score each held-out row; the mean is the score of all.

    For classes it is 1 for a hit, weighted so that every class counts the same; for labels the share that is right; for
    numbers minus the squared error in units of the variance of the target, the mean over outputs.

    Parameters
    ----------
    predicted, y : ndarray, shape (n_rows,) or (n_rows, n_outputs)
        Predictions and truth.
    task : {"classification", "regression"}
        What they hold.

    Examples
    --------
    >>> row_scores(np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1]), "classification").round(2).tolist()
    [0.67, 0.67, 0.67, 0.0]
    """
    if has_classes(y, task):
        y = y.ravel()
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        return (predicted == y) * (y.size / (counts.size * counts[codes]))
    truth, guess = (np.asarray(values, dtype=np.float64).reshape(y.shape[0], -1) for values in (y, predicted))
    if task == "classification":
        return (truth == guess).mean(axis=1)
    # A split into units of the largest number first: squares of numbers like 1e200 would overflow.
    unit = np.maximum(np.abs(truth).max(axis=0), np.finfo(float).tiny)
    variance = (truth / unit).var(axis=0)
    return -(((truth - guess) / unit) ** 2 / np.where(variance > 0, variance, 1.0)).mean(axis=1)


#: The largest M that is tried by itself.
MOST_FEATURES = 500
_QUIET = threading.Lock()


@dataclass
class Choices:
    """What was chosen: parameters for the final fit, and the record of each choice."""

    parameters: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)

    def records(self) -> dict[str, dict[str, Any]]:
        """List the choices as plain values, for ``Selection.choices``."""
        return {name: choice.to_dict() for name, choice in self.choices.items()}


class Watch:
    """Report inner fits to a callback, which may raise to end the search; engines call it with what they report."""

    def __init__(self, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.progress = progress
        self.start("", 0)

    def start(self, what: str, total: int) -> None:
        """Begin to count the fits of a choice."""
        self.what, self.done, self.total = what, 0, total

    def __call__(self, *_: Any, done: int = 0) -> None:
        """Report, and count fits that are done."""
        self.done += done
        if self.progress is not None:
            self.progress(self.what, self.done, self.total)


def round_numbers(n_features: int, least: int = 1, most: int = MOST_FEATURES) -> list[int]:
    """List values of M to try: 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, ... from ``least`` up to all or ``most``.

    Examples
    --------
    >>> round_numbers(30), round_numbers(2000, least=40)
    ([1, 2, 3, 5, 7, 10, 15, 20, 30], [40, 50, 70, 100, 150, 200, 300, 400, 500])
    """
    if least > n_features:
        raise ValueError(f"The least M is {least}, but there are {n_features} columns.")
    end = min(n_features, max(most, least))
    tens = [digits * 10**power for power in range(int(math.log10(end)) + 1) for digits in (10, 15, 20, 30, 40, 50, 70)]
    return sorted({least, *(value for value in (1, 2, 3, 5, 7, *tens) if least < value < end), end})


def choose_n_features(
    base: Any,
    values: Sequence[int],
    rows: Rows,
    splits: Sequence[Split],
    rule: SelectionRule = "one_se",
    watch: Watch | None = None,
    n_jobs: int | None = None,
) -> Choice:
    """Choose M by the scores of fits with each value on inner folds.

    Parameters
    ----------
    base : estimator
        With everything but M decided; its ``scoring`` is used.
    values : sequence of int
        Values of M, ascending.
    rows : Rows
        The rows of the fit.
    splits : sequence of (train rows, test rows)
        The inner folds.
    rule : {"one_se", "best"} or float, default="one_se"
        See :func:`choose_simplest`.
    watch : Watch or None, default=None
        Reports the inner fits.
    n_jobs : int or None, default=None
        Folds that run at a time, as in joblib.
    """
    name, scorer = find_scorer(base, base.scoring, rows.y, base._task)
    watch = Watch() if watch is None else watch
    watch.start("n_features_to_select", len(values) * len(splits))
    jobs = (delayed(_score_path)(base, values, rows, split, scorer, watch) for split in splits)
    prefer = "threads" if find_network(base.network).compiled else "processes"
    scores = np.array(Parallel(n_jobs=n_jobs, prefer=prefer)(jobs)).T
    return Choice(list(values), scores, choose_simplest(scores, rule), rule, name)


def _score_path(
    base: Any, values: Sequence[int], rows: Rows, split: Split, scorer: Scorer, watch: Watch
) -> list[float]:
    """Score each M on the held-out rows of a split; the table is normalised once for all of them."""
    X, y = rows.take(split[1])[:2]
    scores = {}
    data = clone(base).set_params(n_features_to_select=None)._check(*rows.take(split[0])[:3])
    for m, fitted in base._fit_sizes(values, data, watch if watch.progress is not None else None):
        scores[m] = scorer(fitted, X, y)
        watch(done=1)
    return [scores[m] for m in values]


#: Standard errors by which a network must beat the simplest one on held-out rows. Linear tables with 100 rows are left falsely in
#: .04 of 120; a ring and a product are found in .87 and .93 of 30.
NETWORK_LIMIT = 1.5


def choose_network(base: Any, rows: Rows, splits: Sequence[Split], watch: Watch) -> Choice:
    """Choose the simplest network that no other beats clearly on the rows that were held out, row by row.

    The simplest comes first. A later one is left as soon as it is not better on the folds so far.
    """
    names = [name for name in AUTOMATIC_NETWORKS if name in NETWORKS]
    order = np.concatenate([test for _, test in splits])
    by_row, reasons = np.full((len(names), order.size), np.nan), {}
    ends = np.cumsum([len(test) for _, test in splits])
    watch.start("network", len(names) * len(splits))
    for place, name in enumerate(names):
        candidate = clone(base).set_params(network=name)
        try:
            # A network that fails on a fold says so by its score; its warnings would only repeat that. The lock is there
            # because the filters of warnings belong to the whole process.
            with _QUIET, warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                for (train, test), end in zip(splits, ends, strict=True):
                    model = candidate.fit_prepared(candidate.prepare(*rows.take(train)[:3]), progress=watch)
                    X, y = rows.take(test)[:2]
                    by_row[place, end - len(test) : end] = row_scores(model.predict(X), y, base._task)
                    watch(done=1)
                    if end < ends[-1] and by_row[place, :end].mean() <= by_row[0, :end].mean() and place:
                        reasons[name] = f"left after {end} of {ends[-1]} held-out rows: no better than {names[0]}"
                        break
        except (MemoryError, ValueError) as error:
            if place == 0:
                raise
            reasons[name] = str(error)
    by_fold = np.array([[part.mean() for part in np.split(scores, ends[:-1])] for scores in by_row])
    scoring = "balanced_accuracy" if has_classes(rows.y, base._task) else base._task
    return Choice(names, by_fold, choose_guarded(by_row, NETWORK_LIMIT), "guarded", scoring, reasons)


def choose(
    estimator: Any,
    rows: Rows,
    counts: tuple[int, int],
    seed: int,
    *,
    values: Sequence[int] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Choices:
    """Choose network and M of an estimator by inner cross-validation; prefer the simplest candidate.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters; it is not changed.
    rows : Rows
        The rows of its fit.
    counts : (int, int)
        The least and the largest M that are possible.
    seed : int
        Seed of the inner fits and folds.
    values : sequence of int or None, default=None
        Values of M of a path, which is chosen from elsewhere; None: M is that of the estimator.
    progress : callable or None, default=None
        Called with the parameter that is chosen, the inner fits that are done and their number; what it raises ends the
        search.

    Returns
    -------
    Choices
    """
    chosen, watch = Choices(), Watch(progress)
    auto = estimator.n_features_to_select if isinstance(estimator.n_features_to_select, Auto) else Auto()
    auto.check()
    base = clone(estimator).set_params(random_state=seed, verbose=0)
    automatic = is_auto(base.n_features_to_select)
    if values is None and automatic:
        values = round_numbers(counts[1], max(counts[0], auto.minimum))
    if values is not None:  # one M for the network, in the middle of the path
        base.set_params(n_features_to_select=values[len(values) // 2])
    if is_auto(base.network):
        splits = inner_folds(rows, base._task, base.cv, seed, "network='auto'")
        choice = chosen.choices["network"] = choose_network(base, rows, splits, watch)
        chosen.parameters["network"] = choice.chosen
    if automatic:
        assert values is not None
        base.set_params(**chosen.parameters)
        splits = inner_folds(rows, base._task, base.cv, seed, "n_features_to_select='auto'")
        choice = chosen.choices["n_features_to_select"] = choose_n_features(
            base, values, rows, splits, auto.rule, watch
        )
        chosen.parameters["n_features_to_select"] = int(choice.chosen)
    return chosen


def cv_results(choice: Choice) -> dict[str, np.ndarray]:
    """Arrange the scores of a choice of M in the form of scikit-learn's ``RFECV.cv_results_``.

    Examples
    --------
    >>> found = cv_results(Choice([1, 2], np.array([[0.5, 0.7], [0.9, 0.9]]), 1, "best", "accuracy"))
    >>> sorted(found), found["n_features"].tolist()
    (['mean_test_score', 'n_features', 'split0_test_score', 'split1_test_score', 'std_test_score'], [1, 2])
    """
    splits = {f"split{number}_test_score": scores for number, scores in enumerate(choice.scores.T)}
    return {
        "n_features": np.array(choice.candidates),
        "mean_test_score": choice.scores.mean(axis=1),
        "std_test_score": choice.scores.std(axis=1),
        **splits,
    }
