"""Compare several selectors on the same folds: scores by number of features, time, agreement, tests."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz._utils.extras import require
from tamiz.baselines import registry
from tamiz.baselines.registry import get_method
from tamiz.estimators.networks import find_network
from tamiz.estimators.training import Training
from tamiz.evaluation.cross_validation import Progress, split_folds
from tamiz.evaluation.folds import Fold, mean_test_share, take_columns
from tamiz.evaluation.intervals import (
    FriedmanResult,
    Interval,
    MethodRank,
    PairedTest,
    corrected_t_tests,
    friedman_ranks,
    rank_against_best,
)
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.pools import run_in_threads
from tamiz.evaluation.results import interval_of_parts
from tamiz.evaluation.stability import nogueira_stability
from tamiz.evaluation.subjects import Subject, default_judge, rank_for_targets, task_of
from tamiz.rows.rows import Part, Rows
from tamiz.tables.load import read_rows

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
        ``make(n_features_to_select, seed)`` returns a selector.
    nested : {"any", "largest", "smallest", "each"}, default="any"
        M at which one fit serves every M, see :class:`~tamiz.baselines.Method`.
    keeps_all : bool, default=False
        Whether it keeps every feature, whatever M is.
    in_threads : bool, default=True
        Whether its fits may run in threads; if not, they run one after the other when the rest is done.
    is_reference : bool, default=False
        Whether it is a line to compare with (all columns, random ones) and no competitor: it is neither ranked nor tested.
    n_draws : int, default=1
        Fits with other seeds whose scores are averaged, in each fold.
    joint : bool, default=False
        Whether it takes several targets at once; others are fitted to each target, see
        :func:`~tamiz.evaluation.subjects.rank_for_targets`.
    """

    make: Callable[[int, int], Any]
    nested: str = "any"
    keeps_all: bool = False
    in_threads: bool = True
    is_reference: bool = False
    n_draws: int = 1
    joint: bool = False

    def rank(self, n_features_to_select: int, seed: int, train: Part, rows: Rows) -> np.ndarray:
        """Fit a selector and return the ranks of the columns of the table; a column is as good as its best level."""
        made = self.make(n_features_to_select, seed)
        if hasattr(made, "copy_for") and not rows.is_plain:
            return _ranks_of_support(made, train, rows, seed)
        if train.y.ndim > 1 and not self.joint:
            ranking = rank_for_targets(lambda: self.make(n_features_to_select, seed), train.X, train.y)
        else:
            ranking = np.asarray(made.fit(train.X, train.y).ranking_)
        best = np.full(rows.n_columns, ranking.size + 1)
        np.minimum.at(best, rows.columns, ranking)
        return best.argsort(kind="stable").argsort(kind="stable") + 1


@dataclass(frozen=True)
class OwnCandidate(Candidate):
    """A selector or pipeline of the user, of which only the columns that it keeps are read."""

    def rank(self, n_features_to_select: int, seed: int, train: Part, rows: Rows) -> np.ndarray:
        """Fit the selector; kept columns rank first, all others behind every M."""
        return _ranks_of_support(self.make(n_features_to_select, seed), train, rows, seed)


def _ranks_of_support(selector: Any, train: Part, rows: Rows, seed: int) -> np.ndarray:
    return np.where(Subject(selector, rows).fit(train, seed).support, 1, rows.n_columns + 1)


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
    parts : ndarray, shape (methods, values of M, splits, parts), or None
        What the scores were made of, see :class:`~tamiz.evaluation.metrics.Metric`.
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
    n_folds : int or None
        Splits of one repeat, whose number gives the degrees of freedom; None: all splits are of one.
    names : tuple of str
        Names of the columns of the table.
    judge : str
        Model that scored what each method kept.

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
    n_folds: int | None = None
    parts: np.ndarray | None = None
    names: tuple[str, ...] = ()
    judge: str = ""

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
        parts = self.scores[..., None] if self.parts is None else self.parts
        metric = self.metric if self.parts is not None else replace(self.metric, combine_parts=None)
        n_folds = self.n_folds or self.scores.shape[2]
        return tuple(
            tuple(interval_of_parts(metric, splits, self.test_share, n_folds) for splits in by_m) for by_m in parts
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
        return tuple(corrected_t_tests(self.by_split, self.test_share, self.alpha, self.n_folds))

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

    def to_frame(self) -> Any:
        """Return one row per method and M as a polars data frame: score, ends of its interval, seconds, stability."""
        polars = require("polars", "cli", "Comparison.to_frame")
        records = [
            {
                "method": name,
                "k": m,
                "score": interval.value,
                "low": interval.low,
                "high": interval.high,
                "seconds": math.nan if self.seconds is None else float(self.seconds[i, j]),
                "stability": self.stability(i, j),
            }
            for i, name in enumerate(self.methods)
            for j, (m, interval) in enumerate(zip(self.m_values, self.intervals[i], strict=True))
        ]
        return polars.DataFrame(records)


@dataclass
class _Record:
    parts: Parts | None = None
    seconds: float = math.nan
    support: np.ndarray | None = None
    failure: str | None = None


def compare(
    selectors: Mapping[str, Any] | Iterable[str],
    X: Any,
    y: Any = None,
    k: int | Sequence[int] = (5, 10, 20),
    *,
    groups: Any = None,
    time: Any = None,
    cv: Any = 5,
    repeats: int = 1,
    scoring: str | Metric | None = None,
    sample_weight: Any = None,
    network: str = "linear",
    n_jobs: int = 1,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare selectors on the same folds; what each keeps is scored by the same linear model.

    All columns and random ones are added as lines to compare with. A method that fails does not stop the others; its message
    is in ``failures``.

    Parameters
    ----------
    selectors : mapping of str to selector, or iterable of str
        Selectors or pipelines with one, by the names they get; or names of methods of :mod:`tamiz.baselines`. A selector with
        a parameter ``n_features_to_select`` or ``k`` is fitted for each number of columns, others once.
    X, y, groups, time, cv, repeats, scoring, sample_weight, n_jobs, random_state, progress
        As in :func:`~tamiz.evaluation.evaluate`.
    k : int or sequence of int, default=(5, 10, 20)
        Numbers of columns to keep.
    network : str, default="linear"
        Network of the variants of E2E-FS that are given by name.

    Returns
    -------
    Comparison
        ``to_frame()``, ``ranks``, ``tests``; ``judge`` names the model.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.feature_selection import SelectKBest
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare({"fisher": "fisher", "mine": SelectKBest()}, X, y, k=[2, 4])
    >>> found.methods, found.m_values, found.judge
    (('fisher', 'mine', 'random', 'all'), (2, 4), 'LogisticRegression')
    """
    rows = read_rows(X, y, sample_weight=sample_weight, groups=groups, time=time)
    sizes = sorted({int(m) for m in np.atleast_1d(k)})
    if not sizes or sizes[0] < 1 or sizes[-1] > rows.n_columns:
        raise ValueError(f"k must hold numbers from 1 to the {rows.n_columns} columns, got {k!r}.")
    given = dict(selectors) if isinstance(selectors, Mapping) else {name: name for name in selectors}
    if not given:
        raise ValueError("There is nothing to compare: name at least one selector.")
    first = next((one for one in given.values() if not isinstance(one, str)), None)
    task = task_of(first, rows.y)
    chosen: dict[str, Candidate] = {}
    for name, one in {**given, **{name: name for name in REFERENCE_METHODS if name not in given}}.items():
        if isinstance(one, str):
            chosen[name] = make_candidates(pick_methods([one]), task, network)[registry.canonical_name(one)]
        else:
            Subject(one, rows, task)  # tells what is wrong with it before anything is fitted
            chosen[name] = _own_candidate(one)
    folds, n_folds = split_folds(rows, task, cv, repeats, random_state)
    total, done = len(chosen) * len(sizes) * len(folds), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("comparing", done, total)

    return compare_methods(
        rows,
        chosen,
        sizes,
        folds,
        get_metric(scoring, task),
        n_folds=n_folds,
        seed=random_state,
        n_jobs=n_jobs,
        tick=tick,
    )


def _own_candidate(selector: Any) -> Candidate:
    """Return the candidate of a user's selector, fitted for each M if it has a parameter for it."""
    names = selector.get_params()
    wanted = [n for n in names if n.rpartition("__")[2] in ("n_features_to_select", "k")]
    name = min(wanted, key=lambda n: n.count("__")) if wanted else None

    def make(m: int, seed: int) -> Any:
        return clone(selector) if name is None else clone(selector).set_params(**{name: m})

    return OwnCandidate(make, nested="largest" if name is None else "each", joint=True)


def compare_methods(
    rows: Rows,
    candidates: Mapping[str, Candidate],
    m_values: Sequence[int],
    folds: Sequence[Fold],
    metric: Metric,
    *,
    n_folds: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run every method on the same folds, scored by the same model; a method that fails does not stop the others.

    Parameters
    ----------
    rows : Rows
        The rows; weights go to the model that scores and to the score, not to the selectors.
    candidates : mapping of str to Candidate
        Methods by name.
    m_values : sequence of int
        Numbers of columns to keep.
    folds : sequence of (train rows, test rows)
        From :func:`~tamiz.evaluation.cross_validation.split_folds`.
    metric : Metric
        Metric of the scores.
    n_folds : int or None, default=None
        Folds of one repeat; None: all are of one.
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
    task = "regression" if "classification" not in metric.tasks else "classification"
    if metric.tasks == ("classification", "regression"):
        task = task_of(None, rows.y)
    classes = np.unique(rows.y[rows.used]) if task == "classification" else None

    def run(name: str, number: int, step: Callable[[], None]) -> list[_Record]:
        """Run one method on one fold, for every M; the scores of several draws are averaged."""
        one, (train, test) = candidates[name], rows.fold(*folds[number])
        draws = [
            [_score_kept(one, rows, train, test, m, ranked, task, metric, classes) for m, ranked in ranks]
            for ranks in (
                _rank_sizes(one, rows, train, m_values, seed + number + 7919 * draw, step if draw == 0 else None)
                for draw in range(one.n_draws)
            )
        ]
        for position, record in enumerate(draws[0]):
            known = [parts for parts in (draw[position].parts for draw in draws) if parts is not None]
            if known:
                record.parts = tuple(np.mean(np.array(known), axis=0).tolist())
        return draws[0]

    shape = (len(candidates), len(m_values), len(folds))
    found = np.empty(shape, dtype=object)
    for in_threads in (True, False):
        jobs = [
            (i, name, f)
            for i, (name, one) in enumerate(candidates.items())
            if one.in_threads == in_threads
            for f in range(len(folds))
        ]
        work = (lambda step, name=name, f=f: run(name, f, step) for _, name, f in jobs)
        for (i, _, f), records in zip(jobs, run_in_threads(work, n_jobs if in_threads else 1, tick), strict=True):
            found[i, :, f] = records
    n_parts = max((len(record.parts) for record in found.flat if record.parts), default=1)
    parts, seconds = np.full((*shape, n_parts), np.nan), np.full(shape, np.nan)
    supports = np.zeros((*shape, rows.n_columns), dtype=bool)
    failures: dict[str, str] = {}
    for place in np.ndindex(shape):
        record: _Record = found[place]  # type: ignore[assignment]
        seconds[place] = record.seconds
        if record.failure is not None:
            failures.setdefault(list(candidates)[place[0]], record.failure)
        elif record.parts is not None:
            supports[place], parts[place] = record.support, record.parts
    known = np.isfinite(seconds)
    mean_seconds = np.where(known, seconds, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    mean_seconds[~known.any(axis=2)] = np.nan
    return Comparison(
        metric=metric,
        methods=tuple(candidates),
        m_values=tuple(m_values),
        scores=np.array([[metric.combine(splits) for splits in by_m] for by_m in parts]),
        seconds=mean_seconds,
        supports=supports,
        test_share=mean_test_share(folds),
        failures=failures,
        references=tuple(name for name, one in candidates.items() if one.is_reference),
        n_folds=n_folds,
        parts=parts,
        names=tuple(rows.names),
        judge=type(default_judge(task).steps[-1][1]).__name__,
    )


def _rank_sizes(
    one: Candidate, rows: Rows, train: Part, m_values: Sequence[int], seed: int, tick: Callable[[], None] | None
) -> list[tuple[int, Any]]:
    """Rank the columns for each M: (M, (ranks, seconds) or the error that a fit raised)."""
    found: list[tuple[int, Any]] = []
    ranked: Any = None
    for m in m_values:
        if ranked is None or one.nested == "each":
            started = time.perf_counter()
            try:
                ranks = one.rank(fit_size(one.nested, m, m_values), seed, train, rows)
                ranked = ranks, time.perf_counter() - started
            except FIT_ERRORS as error:
                ranked = error
        found.append((m, ranked))
        if tick is not None:
            tick()
    return found


def _score_kept(
    one: Candidate, rows: Rows, train: Part, test: Part, m: int, ranked: Any, task: str, metric: Metric, classes: Any
) -> _Record:
    """Score the columns that a method keeps with a linear model."""
    record = _Record()
    try:
        if isinstance(ranked, Exception):
            raise ranked
        ranks, record.seconds = ranked
        record.support = np.ones(rows.n_columns, dtype=bool) if one.keeps_all else ranks <= m
        columns = np.flatnonzero(record.support[rows.columns])
        if not columns.size:
            raise ValueError("it keeps no column")
        judge = default_judge(task, hasattr(train.X, "tocsr"))
        last = judge.steps[-1][0]
        named = {} if train.sample_weight is None else {f"{last}__sample_weight": train.sample_weight}
        judge.fit(take_columns(train.X, columns), train.y, **named)
        response = metric.read(judge, take_columns(test.X, columns))
        record.parts = metric.measure(test.y, response, train.y, test.sample_weight, classes)
    except FIT_ERRORS as error:
        record.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
    return record
