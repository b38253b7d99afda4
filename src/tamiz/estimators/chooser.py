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
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy import special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from tamiz._utils.text import pick_name
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, find_network
from tamiz.estimators.training import Auto, is_auto
from tamiz.rows.rows import Rows

#: A rule by name, or the tolerance below the best score.
SelectionRule = str | float


@dataclass(frozen=True, eq=False)
class Choice:
    """Record what was tried and what was taken.

    Examples
    --------
    >>> choice = Choice([1, 2], np.array([[0.5, 0.7], [0.9, 0.9]]), 1, "best", "accuracy")
    >>> choice.chosen, choice.to_dict()["mean"]
    (2, [0.6, 0.9])
    """

    candidates: Sequence[Any]  # the simplest first
    scores: np.ndarray  # of each on each inner fold; NaN where it was not fitted
    position: int  # of the one that was taken
    rule: SelectionRule  # of choose_simplest, or "guarded"
    scoring: str
    reasons: dict[str, str] | None = None  # why a candidate was not fitted, or was left

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
    """Find the first candidate within one standard error ("one_se"), 0 ("best") or a number of the best mean score.

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


def choose_guarded(row_scores: np.ndarray, limit: float = 1.0, first_limit: float | None = None) -> int:
    """Take the first candidate, unless others are better by more than ``first_limit`` standard errors of the paired gain.

    Of these it is the first that the best of them does not beat by more than ``limit``, which ``first_limit`` is by default.
    Candidates with NaN in their scores of the held-out rows, shape (n_candidates, n_rows), are not taken.

    Examples
    --------
    >>> choose_guarded(np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    1
    >>> scores = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]])
    >>> choose_guarded(scores), choose_guarded(scores, first_limit=0.0)
    (0, 1)
    """

    def is_beyond(gains: np.ndarray, limit: float) -> np.ndarray:
        return gains.mean(axis=1) > np.nan_to_num(limit * standard_errors(gains), nan=np.inf)

    better = np.flatnonzero(is_beyond(row_scores - row_scores[0], limit if first_limit is None else first_limit))
    if not better.size:
        return 0
    best = better[row_scores[better].mean(axis=1).argmax()]
    return int(better[np.flatnonzero(~is_beyond(row_scores[best] - row_scores[better], limit))[0]])


#: Training rows and test rows.
Split = tuple[np.ndarray, np.ndarray]
#: A fitted estimator, the table and the target of held-out rows -> a score, larger is better.
Scorer = Callable[[Any, Any, Any], float]


def inner_folds(rows: Rows, task: str, cv: Any, seed: int, purpose: str) -> list[Split]:
    """Split rows of a weight above 0 into inner folds that respect classes, and their groups or their time.

    A number of folds (None is 5) is at most that of the rows, or groups, of the smallest class; all else is read by
    scikit-learn's ``check_cv``. Messages name the ``purpose``.

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
        given = check_cv(cv, rows.y, classifier=task == "classification").split(rows.source, rows.y, rows.groups)
        splits = [(rows.weighted(train), rows.weighted(test)) for train, test in given]
        if not splits or any(part.size == 0 for fold in splits for part in fold):
            raise ValueError(f"cv gives no split, or one without rows of a weight above 0; {purpose} needs both parts.")
        return splits
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
    if rows.groups is not None and rows.time is not None:
        raise ValueError("inner folds follow groups or time, not both: leave one of them out.")
    y, groups = rows.y[rows.used], None if rows.groups is None else rows.groups[rows.used]
    if rows.time is not None:
        found = _forward_folds(rows.time[rows.used], y, task, int(n_folds))
    else:
        classified, units = has_classes(y, task), np.arange(len(y)) if groups is None else groups
        classes = y.ravel() if classified else np.zeros(len(y))
        counts = {label: np.unique(units[classes == label]).size for label in np.unique(classes).tolist()}
        rare = min(counts, key=lambda label: counts[label])
        most = counts[rare] if classified or groups is not None else counts[rare] // 2
        if most < 2 and classified:
            what = "row" if groups is None else "group of rows"
            raise ValueError(
                f"Class {rare!r} has 1 {what}, but {purpose} needs at least 2 of each class, one to learn from and one to "
                "score. Leave that class out, join it with another, or give a value."
            )
        if most < 2:
            raise ValueError(
                f"{purpose} needs at least 4 rows, or 2 groups of rows, to split into folds, got {len(y)}; give a value."
            )
        kinds: Any = (StratifiedKFold, StratifiedGroupKFold) if classified else (KFold, GroupKFold)
        folds = kinds[groups is not None](min(int(n_folds), most), shuffle=True, random_state=seed)
        found = [
            (train, test)
            for train, test in folds.split(classes, classes, groups)
            if test.size and np.unique(classes[train]).size == len(counts)
        ]
    if not found:
        raise ValueError(f"{purpose} needs inner folds, and no split of the rows trains on every class; give a value.")
    return [(rows.used[train], rows.used[test]) for train, test in found]


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


#: Beginnings of the names of scikit-learn's scores that subtract predictions from targets.
_SCORES_OF_NUMBERS = (
    *("r2", "explained_variance", "max_error", "neg_max_error", "neg_mean_", "neg_median_", "neg_root_"),
    *("d2_absolute_error", "d2_pinball", "d2_tweedie"),
)


def find_scorer(estimator: Any, scoring: Any, y: np.ndarray, task: str) -> tuple[str, Scorer]:
    """Look up the name and the function of a ``scoring``.

    None is the balanced accuracy for classes, R2 for numbers, the accuracy for labels.

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
    fitted: Any = None  # the estimator, where it was fitted on all rows with these parameters already

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
    """Choose one of ascending values of M by the scores of fits on inner folds; all else of ``base`` is decided.

    ``n_jobs`` folds run at a time.
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
    data, reported = base.prepare(*rows.take(split[0])[:3]), watch if watch.progress is not None else None
    for m, fitted in base._fit_sizes(values, data, reported):
        scores[m] = scorer(fitted, X, y)
        watch(done=1)
    return [scores[m] for m in values]


#: Rows, columns and directions of the residuals that :func:`find_evidence` reads; pairs that it tests exactly.
MOST_ROWS, MOST_COLUMNS, MOST_DIRECTIONS, N_EXACT = 1_000, 2_000, 3, 200
#: Evidence that curves or products need to be tried: a p value of 0.05, corrected for all tests, and one of 0.001 from
#: ``MOST_ROWS`` rows on, where effects show clearly and a trial takes long; strong evidence asks a standard error less of
#: held-out rows.
LEAST_EVIDENCE, CLEAR_EVIDENCE, STRONG_EVIDENCE = math.log(20), math.log(1_000), math.log(10_000)
#: Folds on which they are compared, standard errors by which they must beat the simplest, and by which one fold is enough.
NETWORK_FOLDS, NETWORK_LIMIT, CLEAR_LIMIT = 2, 1.0, 3.0
#: Products are trained for so many outputs at most, and hidden layers instead for more; a mask of products is trained for so
#: many rows, hidden layers beside them for so many. Fewer than these ask a standard error less, as few held-out rows seldom
#: show what the evidence tells, and with them a gain of one is clear.
PAIR_OUTPUTS, PAIR_ROWS, DENSE_ROWS = 3, 200, 500


def _slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the slopes of the columns of y over those of x, which are centred."""
    return np.einsum("ij,ij->j", x, y) / np.maximum(np.einsum("ij,ij->j", x, x), 1e-9)


def find_evidence(values: Any, residuals: np.ndarray, seed: int, *, equal_variances: bool) -> tuple[float, float]:
    """Test whether residuals of a linear model depend on curves of single columns, and on products of two.

    The part of the square of each column that is no line, and products of two columns, are correlated with the leading
    directions of the residuals. Of many rows a sample is read, of many columns those that have most to do with the residuals.

    With ``equal_variances`` all rows vary alike without an effect, else as their residuals do (White 1980). Returns
    ``-log(p) - log(number of tests)`` of the strongest curve and the strongest product.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> for residuals in (X[:, [3]] ** 2 - 1, X[:, [3]] * X[:, [4]], np.random.default_rng(1).normal(size=(200, 1))):
    ...     print([evidence > LEAST_EVIDENCE for evidence in find_evidence(X, residuals, 0, equal_variances=False)])
    [True, False]
    [False, True]
    [False, False]
    """
    if len(residuals) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(len(residuals), MOST_ROWS, replace=False))
        values, residuals = values[rows], residuals[rows]
    left, sizes, _ = np.linalg.svd(residuals - residuals.mean(axis=0), full_matrices=False)
    left = left[:, :MOST_DIRECTIONS][:, sizes[:MOST_DIRECTIONS] > 1e-9].astype(np.float32)
    n_rows, n_columns = values.shape
    if n_columns > MOST_COLUMNS:
        squares = values.multiply(values) if sp.issparse(values) else np.square(values)
        pull = np.abs(np.hstack([values.T @ left, squares.T @ left])).max(axis=1, initial=0.0)
        values = values[:, np.sort(np.argsort(-pull, kind="stable")[:MOST_COLUMNS])]
    values = values.toarray() if sp.issparse(values) else values
    columns = np.clip((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9), -3, 3).astype(np.float32)
    columns -= columns.mean(axis=0)
    curves = np.square(columns)
    curves -= curves.mean(axis=0) + columns * _slope(columns, curves)
    found = np.full(2, -np.inf)
    for direction in left.T:
        strength = np.abs((columns.T * direction) @ columns)
        np.fill_diagonal(strength, 0.0)
        first = np.argsort(-strength.max(axis=1), kind="stable")[:N_EXACT]
        pair = columns[:, first], columns[:, strength[first].argmax(axis=1)]
        products = pair[0] * pair[1]
        products -= products.mean(axis=0)
        # Levels of one category multiply to a line.
        for line in (pair[0], pair[1] - pair[0] * _slope(pair[0], pair[1])):
            products -= line * _slope(line, products)
        row_variance = np.full(n_rows, 1 / n_rows) if equal_variances else np.square(direction)
        n_pairs = max(1, len(strength) * (len(strength) - 1) // 2)
        for place, (functions, n_tests) in enumerate(((curves, n_columns), (products, n_pairs))):
            error = np.sqrt(row_variance @ np.square(functions))
            z = np.abs(direction @ functions) / np.maximum(error, 1e-3)
            log_p = special.log_ndtr(-z.max(initial=0.0)) + math.log(2 * n_tests * left.shape[1])
            found[place] = max(found[place], -log_p)
    return float(found[0]), float(found[1])


def _find_idle(curves: float, products: float, n_outputs: int, n_rows: int) -> dict[str, str]:
    """Say why networks are not tried, given the evidence of :func:`find_evidence`.

    Examples
    --------
    >>> _find_idle(0.0, 9.0, 1, 300)["mlp"], sorted(_find_idle(9.0, 0.0, 1, 300))
    ('not tried: fewer than 500 rows', ['mlp', 'mlp of pair search', 'pairs'])
    """
    reasons, evidence = {}, {"additive": curves, "pair search": max(curves, products)}
    needed = LEAST_EVIDENCE if n_rows < MOST_ROWS else CLEAR_EVIDENCE
    # The pair search has curves as well: of few rows it alone is tried where there are products.
    least = {"additive": PAIR_ROWS if products >= needed else 0, "pair search": 0, "pairs": PAIR_ROWS}
    for name in list(AUTOMATIC_NETWORKS)[1:]:
        if evidence.get(name, products) < needed:
            reasons[name] = f"not tried: no sign of {'curves' if name == 'additive' else 'columns that act together'}"
        elif n_outputs > PAIR_OUTPUTS and name.startswith("pair"):
            reasons[name] = f"not tried: {n_outputs} outputs"
        elif n_outputs <= PAIR_OUTPUTS and n_rows < least.get(name, DENSE_ROWS):
            reasons[name] = f"not tried: fewer than {least.get(name, DENSE_ROWS)} rows"
    return reasons


def choose_network(base: Any, rows: Rows, splits: Sequence[Split], watch: Watch) -> tuple[Choice, Any]:
    """Choose the simplest network that no other beats clearly on rows that were held out, row by row.

    The residuals of the simplest network say which others are tried, on two of the folds. The second is read by those that may
    still be taken and were better than all others that are simpler, unless one was clear already. With few rows none is tried
    on a fold behind one that is clear and sees what the residuals show. Returns also the simplest, fitted on all rows.
    """
    names, splits = list(AUTOMATIC_NETWORKS), splits[-NETWORK_FOLDS:]
    watch.start("network", 1 + len(names) * len(splits))
    X, y, weight = rows.take(rows.used)[:3]
    simplest = clone(base).set_params(network=AUTOMATIC_NETWORKS[names[0]])
    data = simplest.prepare(X, y, weight)
    simplest = simplest.fit_prepared(data, progress=watch)
    watch(done=1)
    truth, n_outputs = data.target.values, data.loss.decision(data.target.values[:1]).shape[1]
    if numeric := base._task == "regression":
        guess = (simplest._scores(X) - data.target.mean) / data.target.scale
    else:
        guess = 2 * simplest.predict_proba(X)[:, -truth.shape[1] :] - 1
    residuals = (truth - guess) * data.sample_weight[:, None]
    evidence = find_evidence(data.table.values, residuals, base.random_state, equal_variances=numeric)
    reasons, few = _find_idle(*evidence, n_outputs, len(y)), len(y) < DENSE_ROWS and n_outputs <= PAIR_OUTPUTS
    limit, clear_limit = NETWORK_LIMIT - few - (max(evidence) > STRONG_EVIDENCE), NETWORK_LIMIT if few else CLEAR_LIMIT
    running, folds = [place for place, name in enumerate(names) if name not in reasons], list[np.ndarray]()
    # A network that fails on a fold says so by its score; its warnings would only repeat that. The lock is there because the
    # filters of warnings belong to the whole process.
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for train, test in splits:
            if len(running) == 1 or (folds and choose_guarded(np.hstack(folds), clear_limit)):
                break
            folds.append(np.full((len(names), len(test)), np.nan))
            X, y = rows.take(test)[:2]
            best, tried, running = -math.inf, running, [0]
            for place in tried:
                is_sought = names[place] == "pair search" and evidence[1] >= LEAST_EVIDENCE
                if few and not is_sought and choose_guarded(np.hstack(folds), NETWORK_LIMIT):
                    reasons[names[place]] = f"not tried: a simpler one was better than {names[0]}"
                    continue
                model = clone(base).set_params(network=AUTOMATIC_NETWORKS[names[place]])
                try:
                    if place == 0 or sp.issparse(X):  # networks differ in whether they make a sparse table dense
                        data = model.prepare(*rows.take(train)[:3])
                    model = model.fit_prepared(data, progress=watch)
                except (MemoryError, ValueError) as error:
                    if place == 0:
                        raise
                    reasons[names[place]] = str(error)
                    continue
                folds[-1][place] = row_scores(model.predict(X), y, base._task)
                watch(done=1)
                scores = np.hstack(folds)
                if choose_guarded(scores[[0, place]], limit - 1) and (mean := scores[place].mean()) > best:
                    best, running = mean, [*running, place]
                elif place:
                    reasons[names[place]] = "no better than simpler ones"
    folds = folds or [np.full((len(names), 1), np.nan)]
    # Of numbers, rows score minus their squared error in units of the variance: R2 - 1.
    by_fold = np.column_stack([scores.mean(axis=1) + numeric for scores in folds])
    scoring = "balanced_accuracy" if has_classes(rows.y, base._task) else "r2" if numeric else "accuracy"
    position = choose_guarded(np.hstack(folds), NETWORK_LIMIT, limit)
    return Choice(names, by_fold, position, "guarded", scoring, reasons), simplest


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

    ``counts`` are the least and the largest M that are possible, ``values`` those of a path, which is chosen from elsewhere.
    ``progress`` is called with the parameter that is chosen, the inner fits that are done and their number; what it raises
    ends the search.
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
        choice, simplest = choose_network(base, rows, splits, watch)
        chosen.choices["network"], chosen.parameters["network"] = choice, AUTOMATIC_NETWORKS[choice.chosen]
        if choice.position == 0 and values is None:
            chosen.fitted = simplest
    if automatic:
        assert values is not None
        base.set_params(**chosen.parameters)
        splits = inner_folds(rows, base._task, base.cv, seed, "n_features_to_select='auto'")
        choice = choose_n_features(base, values, rows, splits, auto.rule, watch)
        chosen.choices["n_features_to_select"] = choice
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
    found = {"mean_test_score": choice.scores.mean(axis=1), "std_test_score": choice.scores.std(axis=1)}
    splits = {f"split{number}_test_score": scores for number, scores in enumerate(choice.scores.T)}
    return {"n_features": np.array(choice.candidates), **found, **splits}
