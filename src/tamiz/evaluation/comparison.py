"""Compare several selectors on the same folds: scores by number of features, time, agreement, tests."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from tamiz.baselines import registry
from tamiz.baselines.registry import get_method
from tamiz.estimators.networks import find_network
from tamiz.estimators.training import Training
from tamiz.evaluation.folds import Fold, Prepare, count_test_rows, mean_test_share, take_columns
from tamiz.evaluation.intervals import (
    FriedmanResult,
    Interval,
    MethodRank,
    PairedTest,
    corrected_interval,
    corrected_t_tests,
    friedman_ranks,
    rank_against_best,
)
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.pools import run_in_threads
from tamiz.evaluation.stability import nogueira_stability

#: Methods of a comparison for which the user names none.
DEFAULT_METHODS = {
    "classification": ("e2efs-soft", "fisher", "relieff", "lasso", "random", "all"),
    "regression": ("e2efs-soft", "relieff", "lasso", "random", "all"),
}

#: Lines to compare with: neither ranked nor tested.
REFERENCE_METHODS = ("random", "all")


def fit_size(nested: str, m: int, m_values: Sequence[int]) -> int:
    """Return the number of features that a method is fitted for to select ``m`` of the ``m_values``.

    Parameters
    ----------
    nested : {"any", "largest", "smallest", "each"}
        What the method says of itself, see :class:`~tamiz.baselines.Method`.
    m : int
        Number of features wanted.
    m_values : sequence of int
        All numbers of features wanted.

    Examples
    --------
    >>> [fit_size(nested, 10, [5, 10, 20]) for nested in ("any", "largest", "smallest", "each")]
    [20, 20, 5, 10]
    """
    return {"any": max(m_values), "largest": max(m_values), "smallest": min(m_values), "each": m}[nested]


def pick_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of several methods as the registry spells them, none twice.

    Examples
    --------
    >>> pick_methods(["e2efs", " Fisher", "svm_rfe", "fisher"])
    ('e2efs', 'fisher', 'svm-rfe')
    """
    return tuple(dict.fromkeys(registry.canonical_name(name) for name in names))


def rank_for_targets(make: Callable[[], Any], X: Any, y: np.ndarray) -> np.ndarray:
    """Return one ranking of the features for several targets, from a selector that takes one at a time.

    The selector is fitted to each target by itself. Features are ordered by their best rank over the targets, so that the
    first one of every target comes before the second one of any; of equal best ranks, by the mean rank.

    Parameters
    ----------
    make : callable
        Returns a selector with ``fit`` and ``ranking_``, not fitted.
    X : array or sparse matrix
        Table.
    y : ndarray of shape (n_samples, n_targets)
        Targets.

    Examples
    --------
    >>> from tamiz.baselines import ReliefF
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> rank_for_targets(lambda: ReliefF(n_features_to_select=1), X, X[:, [3, 1]])[[3, 1]].tolist() in ([1, 2], [2, 1])
    True
    """
    rankings = np.array([make().fit(X, target).ranking_ for target in y.T])
    ranking = np.empty(rankings.shape[1], dtype=np.int64)
    ranking[np.lexsort((rankings.mean(axis=0), rankings.min(axis=0)))] = np.arange(1, ranking.size + 1)
    return ranking


def make_seeded(
    name: str,
    n_features_to_select: int,
    seed: int,
    *,
    task: str = "auto",
    network: str = "linear",
    **parameters: Any,
) -> Any:
    """Make a selector that is not fitted yet.

    Parameters
    ----------
    name : str
        Name of the method.
    n_features_to_select : int
        M.
    seed : int
        Its ``random_state``, if it has one.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto": E2E-FS classifies, the baselines find the task from the target.
    network : str, default="linear"
        Network of the methods that train one and do not say which.
    **parameters
        Further parameters of its class.

    Examples
    --------
    >>> make_seeded("fisher", 3, seed=0)
    FisherScore(n_features_to_select=3)
    """
    method = registry.get_method(name)
    if "network" in inspect.signature(method.load(task)).parameters and "network" not in method.options:
        parameters["network"] = network
    return registry.make_selector(name, n_features_to_select, task=task, random_state=seed, **parameters)


#: Sets of random features whose scores are averaged, in each fold.
RANDOM_DRAWS = 5
#: What a selector that cannot be fitted raises; a comparison goes on without it.
FIT_ERRORS = (ValueError, FloatingPointError, ImportError, TypeError, MemoryError)


@dataclass(frozen=True)
class Candidate:
    """Describe how a selector takes part in a comparison.

    Parameters
    ----------
    make : callable
        ``make(n_features_to_select, seed)`` returns a selector with ``fit`` and ``ranking_``.
    nested : {"any", "largest", "smallest", "each"}, default="any"
        M at which one fit serves every M, see :class:`~tamiz.baselines.Method`.
    keeps_all : bool, default=False
        Whether it keeps every feature, whatever M is.
    in_threads : bool, default=True
        Whether its fits may run in threads; if not, they run one after the other when the rest is done.
    is_reference : bool, default=False
        Whether it is a line to compare with (all features, random ones) and no competitor: it is neither ranked nor tested.
    n_draws : int, default=1
        Fits with other seeds whose scores are averaged, in each fold.
    joint : bool, default=False
        Whether it takes several targets at once; others are fitted to each target, see
        :func:`~tamiz.evaluation.comparison.rank_for_targets`.
    """

    make: Callable[[int, int], Any]
    nested: str = "any"
    keeps_all: bool = False
    in_threads: bool = True
    is_reference: bool = False
    n_draws: int = 1
    joint: bool = False

    def rank(self, n_features_to_select: int, seed: int, X: Any, y: np.ndarray) -> np.ndarray:
        """Fit a selector and return its ranking of the features."""
        if y.ndim > 1 and not self.joint:
            return rank_for_targets(lambda: self.make(n_features_to_select, seed), X, y)
        return np.asarray(self.make(n_features_to_select, seed).fit(X, y).ranking_)


def make_candidates(names: Sequence[str], task: str, network: str = "linear") -> dict[str, Candidate]:
    """Make the candidates of a comparison from the names of methods.

    All features and random ones are references; the score of random features is averaged over several draws.

    Parameters
    ----------
    names : sequence of str
        As :func:`~tamiz.baselines.registry.canonical_name` spells them.
    task : {"classification", "regression"}
        Task.
    network : {"linear", "mlp"}, default="linear"
        Network of E2E-FS.

    Raises
    ------
    ValueError
        If a method cannot be fitted for the task.

    Examples
    --------
    >>> make_candidates(["fisher", "svm-rfe"], "classification")["svm-rfe"].nested
    'smallest'
    """
    candidates = {}
    for name in names:
        info = get_method(name)
        if task not in info.tasks:
            raise ValueError(f"The method {name!r} needs classes, but the task is regression. Leave it out.")
        its_network = info.options.get("network", network) if info.trains_model else "linear"
        make = partial(make_seeded, name, task=task, network=its_network)
        kind = find_network(its_network)
        if info.trains_model:
            kind.engine(Training())  # a package that is missing is reported here, not by every fold
        in_threads = info.engine != "torch" and kind.compiled
        is_reference = info.name in REFERENCE_METHODS
        n_draws = RANDOM_DRAWS if is_reference and not info.keeps_all else 1
        joint = info.trains_model or is_reference
        candidates[name] = Candidate(make, info.nested, info.keeps_all, in_threads, is_reference, n_draws, joint)
    return candidates


def warm_up(candidates: Mapping[str, Candidate], task: str, n_classes: int = 2, sparse: bool = False) -> None:
    """Fit every candidate once on a small table, so that no fit is timed with imports and compilation.

    Parameters
    ----------
    candidates : mapping of str to Candidate
        Methods by name.
    task : {"classification", "regression"}
        Task.
    n_classes : int, default=2
        Number of classes, for code that is compiled for two or for more.
    sparse : bool, default=False
        Whether the tables of the comparison are sparse.
    """
    import scipy.sparse as sp

    generator = np.random.default_rng(0)
    n_rows = max(24, 6 * n_classes)
    X = generator.normal(size=(n_rows, 12)).astype(np.float32)  # wide enough for a screening
    y = np.resize(np.arange(n_classes), n_rows) if task == "classification" else X[:, 0].astype(np.float64)
    for one in candidates.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                one.make(1, 0).fit(sp.csr_matrix(X) if sparse else X, y)
            except FIT_ERRORS:
                continue  # reported where it fails on the table itself


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hold the scores of several methods on the same splits.

    Attributes
    ----------
    metric : Metric
        Metric of the scores.
    methods : tuple of str
        Names.
    m_values : tuple of int
        Numbers of features.
    scores : ndarray, shape (methods, values of M, splits)
        NaN where a method failed.
    seconds : ndarray, shape (methods, values of M), or None
        Mean time of one selection.
    supports : ndarray of bool, shape (methods, values of M, splits, features), or None
        Features that were kept.
    test_share : float or None
        Mean share of the rows that a split tests on; None: splits are treated as independent.
    failures : dict of str to str
        Methods that failed in some split, and their message.
    alpha : float
        Level of the tests.
    references : tuple of str
        Methods that are lines to compare with: neither ranked nor tested.
    n_test_rows : float or None
        Rows that a bound may count on where the splits do not vary, see
        :attr:`~tamiz.evaluation.metrics.Metric.count_rows`.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> found = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), np.array([[[0.9, 1.0]], [[0.5, 0.6]]]))
    >>> [rank.mean_rank for rank in found.ranks], found.intervals[0][0].high
    ([1.0, 2.0], 1.0)
    """

    metric: Metric
    methods: tuple[str, ...]
    m_values: tuple[int, ...]
    scores: np.ndarray
    seconds: np.ndarray | None = None
    supports: np.ndarray | None = None
    test_share: float | None = None
    failures: dict[str, str] = field(default_factory=dict)
    alpha: float = 0.05
    references: tuple[str, ...] = ()
    n_test_rows: float | None = None

    def __post_init__(self) -> None:
        if self.test_share is not None and not 0 < self.test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {self.test_share}")
        shape = (len(self.methods), len(self.m_values))
        for name, table in (("scores", self.scores), ("seconds", self.seconds), ("supports", self.supports)):
            if table is not None and np.shape(table)[:2] != shape:
                raise ValueError(
                    f"{name} must have {shape[0]} methods by {shape[1]} values of M, got {np.shape(table)}"
                )

    @cached_property
    def intervals(self) -> tuple[tuple[Interval, ...], ...]:
        """Mean score and corrected interval of each method for each M."""
        return tuple(
            tuple(
                corrected_interval(splits, self.test_share, limits=self.metric.limits, n_rows=self.n_test_rows)
                for splits in by_m
            )
            for by_m in self.scores
        )

    def stability(self, method: int, m: int) -> float:
        """Return Nogueira's stability over the splits, of a method and an M by their positions."""
        return math.nan if self.supports is None else nogueira_stability(self.supports[method, m])

    def agreement(self, m: int) -> np.ndarray | None:
        """Return the mean share of kept features that each two methods have in common: of the smaller set, over the splits.

        None where the features are not known.
        """
        if self.supports is None:
            return None
        kept = self.supports[:, m].astype(np.float64)
        common = np.einsum("afk,bfk->abf", kept, kept)
        sizes = kept.sum(axis=2)
        smaller = np.minimum(sizes[:, None], sizes[None])
        with np.errstate(invalid="ignore"):
            return np.mean(common / smaller, axis=2)

    @cached_property
    def competitors(self) -> tuple[str, ...]:
        """Methods that are ranked and tested: no references, and none that failed in more than half of the splits."""
        whole = np.isfinite(self.scores).all(axis=1).mean(axis=1)
        return tuple(
            name for name, share in zip(self.methods, whole, strict=True) if name not in self.references and share > 0.5
        )

    @cached_property
    def by_split(self) -> dict[str, np.ndarray]:
        """Mean over the values of M for each split, by competitor: one number per split, since its values share rows."""
        return {name: self.scores[self.methods.index(name)].mean(axis=0) for name in self.competitors}

    @cached_property
    def tests(self) -> tuple[PairedTest, ...]:
        """Corrected resampled t tests of all pairs of competitors over the splits, corrected after Holm."""
        return tuple(corrected_t_tests(self.by_split, self.test_share, self.alpha))

    @cached_property
    def friedman(self) -> FriedmanResult:
        """Mean ranks of the competitors over the splits, with Friedman's test."""
        return friedman_ranks({name: self.metric.sign * scores for name, scores in self.by_split.items()}, self.alpha)

    @cached_property
    def ranks(self) -> tuple[MethodRank, ...]:
        """Mean rank of each competitor, with its test against the best; empty if nothing can be ranked."""
        if not self.competitors:
            return ()
        return rank_against_best(self.friedman.mean_ranks, self.tests, self.metric.greater_is_better)

    @cached_property
    def smallest_visible_difference(self) -> float:
        """Typical half-width of the intervals of the differences: smaller ones cannot be told with these splits."""
        reach = [(test.high - test.low) / 2 for test in self.tests if math.isfinite(test.high - test.low)]
        return float(np.median(reach)) if reach else math.nan


def default_judge(task: str, sparse: bool = False) -> Any:
    """Return the model that scores every set of features: a linear one on standardised columns.

    Examples
    --------
    >>> default_judge("regression").steps[-1][0]
    'ridge'
    """
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sparse)  # subtracting the mean would make a sparse table dense
    if task == "regression":
        return make_pipeline(scaler, Ridge())
    return make_pipeline(scaler, LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3))


@dataclass(frozen=True)
class _Task:
    """Hold what all folds of a comparison share."""

    prepare: Prepare
    y: np.ndarray
    folds: Sequence[Fold]
    m_values: Sequence[int]
    task: str
    metric: Metric
    seed: int
    sample_weight: np.ndarray | None = None


@dataclass
class _Record:
    parts: Parts | None = None
    seconds: float = math.nan
    support: np.ndarray | None = None
    failure: str | None = None


def _compare_fold(shared: _Task, number: int, candidate: Candidate, tick: Callable[[], None]) -> list[_Record]:
    """Run one method on one fold, for every M; the scores of several draws are averaged."""
    data = shared.prepare(*shared.folds[number])
    draws = [
        _compare_draw(shared, number, candidate, data, shared.seed + number + 7919 * draw, tick if draw == 0 else None)
        for draw in range(candidate.n_draws)
    ]
    for position, record in enumerate(draws[0]):
        known = [parts for parts in (draw[position].parts for draw in draws) if parts is not None]
        if known:
            record.parts = tuple(np.mean(np.array(known), axis=0).tolist())
    return draws[0]


def _compare_draw(
    shared: _Task,
    number: int,
    candidate: Candidate,
    data: tuple[Any, Any],
    seed: int,
    tick: Callable[[], None] | None,
) -> list[_Record]:
    (train, test), (train_rows, test_rows) = data, shared.folds[number]
    y_train, y_test = shared.y[train_rows], shared.y[test_rows]
    weights = shared.sample_weight
    records = []
    ranking: np.ndarray | None = None
    seconds = math.nan
    for m in shared.m_values:
        record = _Record()
        try:
            if ranking is None or candidate.nested == "each":
                started = time.perf_counter()
                ranking = candidate.rank(fit_size(candidate.nested, m, shared.m_values), seed, train, y_train)
                seconds = time.perf_counter() - started
            record.support = np.ones(ranking.size, dtype=bool) if candidate.keeps_all else ranking <= m
            columns = np.flatnonzero(record.support)
            judge = default_judge(shared.task, hasattr(train, "tocsr"))
            last = judge.steps[-1][0]
            named = {} if weights is None else {f"{last}__sample_weight": weights[train_rows]}
            judge.fit(take_columns(train, columns), y_train, **named)
            response = shared.metric.read(judge, take_columns(test, columns))
            record.parts = shared.metric.measure(
                y_test, response, y_train, None if weights is None else weights[test_rows]
            )
            record.seconds = seconds
        except FIT_ERRORS as error:
            record.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
        records.append(record)
        if tick is not None:
            tick()
    return records


def compare_methods(
    prepare: Prepare,
    y: np.ndarray,
    candidates: Mapping[str, Candidate],
    m_values: Sequence[int],
    folds: Sequence[Fold],
    *,
    task: str,
    n_features: int,
    scoring: str | Metric | None = None,
    sample_weight: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run every method on the same folds, scored by the same model; a method that fails does not stop the others.

    Parameters
    ----------
    prepare, y, folds, task
        As in :func:`~tamiz.evaluation.cross_validation.evaluate_selection`.
    candidates : mapping of str to Candidate
        Methods by name.
    m_values : sequence of int
        Numbers of features to keep.
    n_features : int
        Number of features of the table.
    scoring : str, Metric or None, default=None
        Metric, see :func:`~tamiz.evaluation.metrics.get_metric`.
    sample_weight : ndarray or None, default=None
        Weights of the rows for the model that scores and for the score; the selectors do not use them.
    seed : int, default=0
        Seed of the methods.
    n_jobs : int, default=1
        Folds that run in parallel.
    tick : callable, default=no-op
        Called once for every method, fold and M.

    Returns
    -------
    Comparison
    """
    metric = get_metric(scoring, task)
    shared = _Task(prepare, y, folds, m_values, task, metric, seed, sample_weight)
    jobs: list[tuple[str, int]] = []
    results: list[list[_Record]] = []
    for in_threads in (True, False):
        some = [
            (name, i) for name, one in candidates.items() for i in range(len(folds)) if one.in_threads == in_threads
        ]
        work = (lambda tick, name=name, i=i: _compare_fold(shared, i, candidates[name], tick) for name, i in some)
        jobs += some
        results += run_in_threads(work, n_jobs if in_threads else 1, tick)
    return _collect(shared, candidates, n_features, jobs, results)


def _collect(
    shared: _Task,
    candidates: Mapping[str, Candidate],
    n_features: int,
    jobs: Sequence[tuple[str, int]],
    results: Sequence[Sequence[_Record]],
) -> Comparison:
    """Put the records of all folds into tables."""
    shape = (len(candidates), len(shared.m_values), len(shared.folds))
    seconds = np.full(shape, np.nan)
    supports = np.zeros((*shape, n_features), dtype=bool)
    n_parts = max((len(record.parts) for records in results for record in records if record.parts), default=1)
    parts = np.full((*shape, n_parts), np.nan)
    failures: dict[str, str] = {}
    order = list(candidates)
    for (name, number), records in zip(jobs, results, strict=True):
        for position, record in enumerate(records):
            place = (order.index(name), position, number)
            seconds[place] = record.seconds
            if record.failure is not None:
                failures.setdefault(name, record.failure)
            elif record.support is not None and record.parts is not None:
                supports[place], parts[place] = record.support, record.parts
    scores = np.array([[shared.metric.combine(splits) for splits in by_m] for by_m in parts])
    known = np.isfinite(seconds)
    mean_seconds = np.where(known, seconds, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    mean_seconds[~known.any(axis=2)] = np.nan
    return Comparison(
        metric=shared.metric,
        methods=tuple(order),
        m_values=tuple(shared.m_values),
        scores=scores,
        seconds=mean_seconds,
        supports=supports,
        test_share=mean_test_share(shared.folds),
        failures=failures,
        references=tuple(name for name, one in candidates.items() if one.is_reference),
        n_test_rows=count_test_rows(shared.metric, shared.y, shared.folds),
    )
