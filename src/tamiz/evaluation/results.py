"""What an evaluation measured: scores with intervals, stability, held-out predictions and effects, one sentence on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import counted
from tamiz.evaluation.folds import Fold, mean_test_share
from tamiz.evaluation.intervals import Interval, corrected_interval, mean_share_reach
from tamiz.evaluation.metrics import Metric, Parts

if TYPE_CHECKING:
    from tamiz.evaluation.null import Null

#: Level below which a score counts as better than that of shuffled targets.
SIGNAL_LEVEL = 0.05
#: Kept columns do "as well" as all where they are worse by less than this (of errors: by less than this share).
MARGIN = 0.03
#: Models of other tables differ beyond what the number of rows tells: so much wider are intervals of shares of rows, and of
#: scores such as AUC that are no share but vary nearly as one (benchmarks/simulate_statistics.py).
FACTOR_OF_HITS, FACTOR_OF_SCORES = 1.2, 1.5
#: Columns that a model of a fold was trained on.
COLUMN_SETS = ("kept", "all_features", "random_features")


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Scores and predictions of one fold.

    Parameters
    ----------
    kept, all_features, random_features : tuple of float
        Parts of scores, see :class:`~tamiz.evaluation.metrics.Metric`.
    support : ndarray of bool
        Columns of the table that were kept.
    features : ndarray of int
        Columns of the encoded matrix that were kept.
    predicted : ndarray
        Predictions of the held-out rows.
    seconds : float
        Time of the selection.
    converged : bool
        Whether it ended before its step limit.
    curve : mapping of int to tuple of float
        Parts of the scores of other numbers of columns.
    outputs : mapping of str to ndarray or None
        By the names of ``COLUMN_SETS``: values of the decision function for the held-out rows (numbers: predictions).
    moments : ndarray or None
        Sums over the held-out rows for each of ``features``, see :func:`effect_of_moments`.
    """

    kept: Parts
    all_features: Parts
    random_features: Parts
    support: np.ndarray
    features: np.ndarray
    predicted: np.ndarray
    seconds: float = 0.0
    converged: bool = True
    curve: Mapping[int, Parts] = field(default_factory=dict)
    outputs: Mapping[str, np.ndarray | None] = field(default_factory=dict)
    moments: np.ndarray | None = None


class HeldOut(NamedTuple):
    """One prediction per row, each by a model that had not seen the row (of the first repeat of the folds).

    Parameters
    ----------
    rows : ndarray of int
        Rows of the table that were held out, rising.
    truth, predicted : ndarray
        Target, and prediction from the kept columns.
    outputs : mapping of str to ndarray
        By the names of ``COLUMN_SETS``: values of the decision function (numbers: predictions), one column per output
        where there are more than two classes.
    """

    rows: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    outputs: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a selection over folds; a feature is a column of the table.

    Attributes
    ----------
    metric : Metric
        Metric of the scores.
    task : {"classification", "regression"}
        What the target is.
    model : str
        Name of the model whose predictions were scored.
    folds : list of FoldResult
        One record per fold.
    splits : list of (train rows, test rows)
        The same folds, without rows of weight 0.
    y : ndarray
        Target of all rows.
    names : list of str
        Names of the columns of the table.
    n_folds : int
        Folds of one repeat.
    n_kept : int
        Columns that are kept (the median over the folds, where these differ and nothing else is known).
    units : ndarray of int
        Column of the table of each column of the encoded matrix.
    n_features : int
        Columns of the table that may be kept: all but those that are dropped.
    null : Null or None
        What shuffled targets give over the same folds; None if that was not computed.
    test_score : Interval or None
        Score on rows that took no part in the folds, of the model fitted on all others; None if there are none.
    """

    metric: Metric
    task: str
    model: str
    folds: list[FoldResult]
    splits: list[Fold]
    y: np.ndarray
    names: list[str]
    n_folds: int
    n_kept: int
    units: np.ndarray
    n_features: int
    null: Null | None = None
    test_score: Interval | None = None

    def __repr__(self) -> str:
        score, kept = self.score, f"{self.n_kept} of {self.n_features} columns"
        return f"Evaluation({kept}, {self.metric.name} {score.value:.3f} ({score.low:.3f} to {score.high:.3f}))"

    def values(self, what: str) -> np.ndarray:
        """Compute one value per fold of "kept", "all_features" or "random_features"; their mean is the score."""
        return self.metric.combine([getattr(fold, what) for fold in self.folds])

    def interval(self, what: str = "kept") -> Interval:
        """Compute score and interval of "kept", "all_features" or "random_features"."""
        return self._interval([getattr(fold, what) for fold in self.folds])

    def _interval(self, parts: Sequence[Parts]) -> Interval:
        return interval_of_parts(self.metric, parts, mean_test_share(self.splits), self.n_folds)

    def difference(self, what: str) -> Interval:
        """Compute the interval of *kept* minus ``what``, paired over the folds."""
        values, (low, high) = self.values("kept") - self.values(what), self.metric.limits
        limits = (low - high, high - low) if math.isfinite(high - low) else (-math.inf, math.inf)
        found = corrected_interval(values, mean_test_share(self.splits), limits, self.n_folds)
        if self.metric.shares is None or np.isfinite(values).sum() < 2:
            return found
        # Where no row tells the two apart, so large a share could still differ unseen.
        n_rows = np.unique(np.concatenate([test for _, test in self.splits])).size
        least = 1 - 0.025 ** (1 / max(1, n_rows))
        ends = np.fmin(found.low, found.value - least), np.fmax(found.high, found.value + least)
        return Interval(found.value, *np.clip(ends, *limits).tolist())

    def curve(self) -> list[tuple[int, Interval]]:
        """Compute the score for each number of columns."""
        sizes = sorted(self.folds[0].curve)
        return [(size, self._interval([fold.curve[size] for fold in self.folds])) for size in sizes]

    @property
    def score(self) -> Interval:
        """Score of the kept columns."""
        return self.interval("kept")

    @property
    def chance(self) -> float | None:
        """Score of a prediction that knows nothing of the features, where the metric has one."""
        return None if self.metric.chance is None else self.metric.chance(self.y)

    @property
    def verdict(self) -> str:
        """Sum up in one sentence: is there anything, and by how much may the kept columns be worse than all."""
        n_kept, n_features, null = self.n_kept, self.n_features, self.null
        kept, predict = f"{n_kept:,} of {counted(n_features, 'column')}", "predicts" if n_kept == 1 else "predict"
        sign, chance, score = self.metric.sign, self.chance, self.score.value
        tested = "not compared with shuffled targets"
        if chance is not None and sign * (score - chance) <= 0:
            return f"No sign of signal: {self.metric.name} of {score:.3f} is not above chance ({chance:.3f})."
        if null is not None and null.p_value > SIGNAL_LEVEL:
            n, few = null.n_permutations, "which are too few to tell a signal from chance; take 20 or more"
            if null.is_at_floor:
                return f"None of {n} shuffled targets does as well, {few}."
            return f"No sign of signal: shuffled targets do as well (p = {null.p_value:.2f}, {n} permutations)."
        if null is not None and math.isfinite(null.p_value):
            tested = f"better than shuffled targets, {null.p_text}"
        if n_kept == n_features:
            return f"{'The only column was' if n_kept == 1 else f'All {n_features:,} columns were'} kept ({tested})."
        gap = self.difference("all_features")
        if not gap.has_ends:
            return f"{kept} kept ({tested}); how well without the others cannot be told."
        ahead, worst, best = sign * gap.value, *sorted((sign * gap.low, sign * gap.high))
        margin = MARGIN if self.metric.greater_is_better else MARGIN * abs(self.interval("all_features").value)
        if worst > 0:
            return f"{kept} {predict} better than all, by {ahead:.3f} (at least {worst:.3f}; {tested})."
        if best < 0:
            return f"{kept} {predict} worse than all, by {-ahead:.3f} (at most {-worst:.3f}; {tested})."
        if -worst <= margin:
            return f"{kept} {predict} as well as all, within {margin:.3g} (at most {-worst:.3f} worse; {tested})."
        difference = f"{ahead:+.3f}".replace("+0.000", "0.000").replace("-0.000", "0.000")
        return f"{kept} {predict} at most {-worst:.3f} worse than all (difference {difference}; {tested})."

    @property
    def fold_share(self) -> np.ndarray:
        """Share of folds that kept each column."""
        return np.mean([fold.support for fold in self.folds], axis=0)

    @property
    def stability(self) -> float:
        """Nogueira's stability of the selections of the folds."""
        return nogueira_stability([fold.support for fold in self.folds])

    @cached_property
    def held_out(self) -> HeldOut:
        """Predictions of the rows by models that had not seen them; of repeated folds the first."""
        rows, first = np.unique(np.concatenate([test for _, test in self.splits]), return_index=True)
        outputs: dict[str, np.ndarray] = {}
        for name in COLUMN_SETS:
            values: list[Any] = [fold.outputs.get(name) for fold in self.folds]
            if all(one is not None and one.shape[1:] == values[0].shape[1:] for one in values):
                outputs[name] = np.concatenate(values)[first]
        predicted = np.concatenate([fold.predicted for fold in self.folds])[first]
        return HeldOut(rows, np.asarray(self.y)[rows], predicted, outputs)

    @cached_property
    def effects(self) -> dict[int, float]:
        """Effect of each column of the encoded matrix on the held-out rows of the folds that kept it.

        For two classes the mean of the second minus that of the first, in standard deviations; for more classes that of the
        class that differs most from the rest; for numbers the correlation with the target.
        """
        sums: dict[int, np.ndarray] = {}
        for fold in self.folds:
            if fold.moments is not None:
                for feature, moments in zip(fold.features.tolist(), fold.moments, strict=True):
                    sums[feature] = sums.get(feature, 0) + moments
        found = {feature: effect_of_moments(moments, self.task) for feature, moments in sums.items()}
        return {feature: effect for feature, effect in found.items() if effect is not None}

    @property
    def effect_name(self) -> str:
        """Name of what ``effects`` measures."""
        where = "on held-out rows"
        if self.task == "regression":
            return f"correlation with the target {where}"
        labels = np.unique(self.y)
        if labels.size == 2:
            return f"mean of {labels[1]} minus mean of {labels[0]} in standard deviations, {where}"
        return f"mean of the class that differs most minus mean of the rest in standard deviations, {where}"


def nogueira_stability(supports: Any) -> float:
    """Compute the stability of several selections after Nogueira, Sechidis and Brown (JMLR 18, 2018).

    1 means equal selections, 0 what random selections of the same sizes give on average. The sizes may differ. If every
    selection keeps all features, or none, the stability is not defined and NaN is returned.

    Parameters
    ----------
    supports : array-like of bool, shape (n_selections, n_features)
        One selection per row.

    Examples
    --------
    >>> nogueira_stability([[1, 1, 0, 0], [1, 1, 0, 0]])
    1.0
    """
    chosen = np.asarray(supports, dtype=bool)
    if chosen.ndim != 2 or chosen.shape[0] < 2:
        raise ValueError(f"Stability needs at least two selections, one per row; got shape {chosen.shape}.")
    share, density = chosen.mean(axis=0), float(chosen.mean())
    variance = len(chosen) / (len(chosen) - 1) * share * (1 - share)
    return math.nan if density in (0.0, 1.0) else float(1 - variance.mean() / (density * (1 - density)))


def interval_of_parts(metric: Metric, parts: Any, test_share: float | None, n_folds: int) -> Interval:
    """Compute score and interval from the parts of all folds; without a ``test_share`` rows alone make it.

    Of metrics that are shares of rows the interval is that of the number of rows, somewhat widened, with what the folds vary
    beyond it.
    """
    table = np.asarray(parts, dtype=np.float64)
    values = metric.combine(table)
    known = np.isfinite(values)
    if metric.shares is None or table.shape[1] < 2 or not known.any():
        return corrected_interval(values, test_share, metric.limits, n_folds)
    by_fold = table[known, 1:].reshape(-1, table.shape[1] // 2, 2)
    hits, n_rows = by_fold.sum(axis=0).T * (n_folds / len(table))
    factor = 1.0 if test_share is None else FACTOR_OF_HITS if metric.counts_hits else FACTOR_OF_SCORES
    down, up = mean_share_reach(hits, n_rows)
    likely = (hits + 1) / (n_rows + 2)
    used = by_fold[:, :, 1] > 0
    of_folds = np.sum(used * likely * (1 - likely) / np.maximum(by_fold[:, :, 1], 1e-9), axis=1) / used.sum(axis=1) ** 2
    return corrected_interval(
        values, test_share, metric.limits, n_folds, (factor * down, factor * up), float(of_folds.mean())
    )


def model_output(model: Any, X: Any, task: str) -> np.ndarray | None:
    """Compute the values of a model's decision function (numbers: its predictions); None if it has none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> model_output(Ridge().fit([[0.0], [1.0]], [1.0, 1.0]), [[5.0]], "regression").tolist()
    [1.0]
    """
    if task == "regression":
        return np.asarray(model.predict(X), dtype=np.float64)
    decide = getattr(model, "decision_function", None)
    return None if decide is None else np.asarray(decide(X), dtype=np.float64)


def measure_moments(X: Any, y: np.ndarray, task: str, classes: np.ndarray) -> np.ndarray:
    """Sum up rows for :func:`effect_of_moments`: one row of sums for each column of X; missing values are left out."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    known = np.isfinite(X)
    X = np.where(known, X, 0.0)
    if task == "classification":
        members = (np.asarray(y)[:, None] == classes[None]).astype(np.float64)
        return np.stack([known.T @ members, X.T @ members, (X**2).T @ members], axis=1)
    target = np.asarray(y, dtype=np.float64)
    sums = [known.sum(axis=0), X.sum(axis=0), (X**2).sum(axis=0), known.T @ target, known.T @ target**2, X.T @ target]
    return np.stack(sums, axis=1)


def effect_of_moments(moments: np.ndarray, task: str) -> float | None:
    """Compute the effect of a column from its sums over rows.

    Parameters
    ----------
    moments : ndarray
        For classes, shape (3, n_classes): number of rows, sum and sum of squares in each class; for numbers, shape (6,):
        number of rows, sums of x, x², y, y², xy.
    task : {"classification", "regression"}
        Task.

    Examples
    --------
    >>> x, y = np.array([[1.0], [2.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    >>> effect_of_moments(measure_moments(x, y, "classification", np.array([0, 1]))[0], "classification")
    6.0
    >>> round(effect_of_moments(measure_moments(x, y, "regression", y)[0], "regression"), 3)
    0.949
    """
    if task == "regression":
        n, x, xx, t, tt, xt = moments
        if n < 3:
            return None
        spread = (xx - x * x / n) * (tt - t * t / n)
        return float((xt - x * t / n) / math.sqrt(spread)) if spread > 1e-24 else None
    n, s, q = moments[:, ::-1]
    rest = n.sum() - n
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, other = s / n, (s.sum() - s) / rest
        within = (q.sum() - n * mean**2 - rest * other**2) / n.sum()
        found = (mean - other) / np.sqrt(within)
    found = found[within > 1e-12 * max(1.0, q.sum() / n.sum())]
    return None if not found.size else float(found[0] if n.size == 2 else found[np.abs(found).argmax()])
