"""Compare several selectors on the same folds: scores by number of features, time, agreement, tests."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz._utils.extras import require
from tamiz.baselines import registry
from tamiz.estimators.networks import find_network
from tamiz.estimators.training import Training
from tamiz.evaluation.cross_validation import Progress, split_folds
from tamiz.evaluation.folds import mean_test_share, take_columns
from tamiz.evaluation.intervals import Interval, MethodRank, PairedTest, corrected_t_tests, friedman_ranks
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.pools import run_parallel
from tamiz.evaluation.results import interval_of_parts, nogueira_stability
from tamiz.evaluation.subjects import Subject, default_judge, fit_model, rank_for_targets, task_of
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
    """Find the number of features that a method is fitted for to select ``m`` of the ``m_values``.

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
    """Spell the names of several methods as the registry does, none twice.

    Examples
    --------
    >>> pick_methods(["e2efs", " Fisher", "svm_rfe", "fisher"])
    ('e2efs', 'fisher', 'svm-rfe')
    """
    return tuple(dict.fromkeys(registry.canonical_name(name) for name in names))


#: Sets of random features whose scores are averaged, in each fold.
RANDOM_DRAWS = 5
#: What a selector that cannot be fitted raises; a comparison goes on without it.
FIT_ERRORS = (ValueError, FloatingPointError, ImportError, TypeError, MemoryError)


class Candidate:
    """A method or a selector of the user as it takes part in a comparison.

    All features and random ones are references, which are neither ranked nor tested; the score of random features is averaged
    over several draws. A selector of the user is fitted for each M if it has a parameter for it, else once.

    Parameters
    ----------
    selector : str or estimator
        Name of a method, or a selector or pipeline with one.
    rows : Rows
        The rows of the comparison.
    task : {"classification", "regression"}
        Task.
    network : str, default="linear"
        Network of E2E-FS by name.

    Raises
    ------
    ValueError
        If a method cannot be fitted for the task, or an estimator selects nothing.
    """

    def __init__(self, selector: Any, rows: Rows, task: str, network: str = "linear") -> None:
        self.rows, self.is_own = rows, not isinstance(selector, str)
        self.keeps_all, self.is_reference, self.joint, self.n_draws = False, False, True, 1
        if self.is_own:
            self.in_threads = Subject(selector, rows, task).in_threads
            wanted = [n for n in selector.get_params() if n.rpartition("__")[2] in ("n_features_to_select", "k")]
            name = min(wanted, key=lambda n: n.count("__")) if wanted else None
            self.nested = "largest" if name is None else "each"
            self.make: Callable[..., Any] = lambda m, seed: clone(selector).set_params(**({name: m} if name else {}))
            return
        info = registry.get_method(selector)
        if task not in info.tasks:
            raise ValueError(f"The method {selector!r} needs classes, but the task is regression. Leave it out.")
        network = info.options.get("network", network) if info.trains_model else "linear"
        kind = find_network(network)
        if info.trains_model:
            kind.engine(Training())  # a package that is missing is reported here, not by every fold
        self.make = lambda m, seed: registry.make_selector(selector, m, task=task, random_state=seed, network=network)
        self.nested, self.keeps_all = info.nested, info.keeps_all
        self.in_threads = info.engine != "torch" and kind.compiled
        self.is_reference = info.name in REFERENCE_METHODS
        self.joint = info.trains_model or self.is_reference
        self.n_draws = RANDOM_DRAWS if self.is_reference and not self.keeps_all else 1

    def rank(self, m: int, seed: int, train: Part) -> np.ndarray:
        """Fit a selector; rank the columns of the table, each by its best level. Of own selectors kept columns rank first."""
        made, rows = self.make(m, seed), self.rows
        if self.is_own or (hasattr(made, "copy_for") and not rows.is_plain):
            return np.where(Subject(made, rows).fit(train, seed).support, 1, rows.n_columns + 1)
        if train.y.ndim > 1 and not self.joint:
            ranking = rank_for_targets(lambda: self.make(m, seed), train.X, train.y)
        else:
            ranking = np.asarray(made.fit(train.X, train.y).ranking_)
        best = np.full(rows.n_columns, ranking.size + 1)
        np.minimum.at(best, rows.columns, ranking)
        return best.argsort(kind="stable").argsort(kind="stable") + 1


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several methods on the same splits.

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

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.m_values))
        return f"Comparison({', '.join(self.methods)}; M = {sizes}; {self.metric.name} on {self.scores.shape[2]} folds)"

    @cached_property
    def intervals(self) -> tuple[tuple[Interval, ...], ...]:
        """Mean score and corrected interval of each method for each M."""
        metric, parts = self.metric, self.parts
        if parts is None:
            metric, parts = replace(metric, combine_parts=None), self.scores[..., None]
        share, n_folds = self.test_share, self.n_folds or self.scores.shape[2]
        return tuple(tuple(interval_of_parts(metric, splits, share, n_folds) for splits in by_m) for by_m in parts)

    def stability(self, method: int, m: int) -> float:
        """Compute Nogueira's stability over the splits, of a method and an M by their positions."""
        return math.nan if self.supports is None else nogueira_stability(self.supports[method, m])

    def agreement(self, m: int) -> np.ndarray | None:
        """Compute the mean share of kept features that each two methods have in common: of the smaller set, over the splits.

        None where the features are not known.
        """
        if self.supports is None:
            return None
        kept = self.supports[:, m].astype(np.float64)
        sizes = kept.sum(axis=2)
        with np.errstate(invalid="ignore"):
            return np.mean(np.einsum("afk,bfk->abf", kept, kept) / np.minimum(sizes[:, None], sizes[None]), axis=2)

    @cached_property
    def competitors(self) -> tuple[str, ...]:
        """Methods that are ranked and tested: no references, and none that failed in more than half of the splits."""
        scored = np.isfinite(self.scores).all(axis=1).mean(axis=1) > 0.5
        return tuple(name for name, fine in zip(self.methods, scored) if fine and name not in self.references)

    @cached_property
    def by_split(self) -> dict[str, np.ndarray]:
        """Mean over the values of M for each split, by competitor: one number per split, since its values share rows."""
        return {name: self.scores[self.methods.index(name)].mean(axis=0) for name in self.competitors}

    @cached_property
    def tests(self) -> tuple[PairedTest, ...]:
        """Corrected resampled t tests of all pairs of competitors over the splits, corrected after Holm."""
        return tuple(corrected_t_tests(self.by_split, self.test_share, self.alpha, self.n_folds))

    @cached_property
    def friedman(self) -> tuple[dict[str, float], float, float]:
        """Mean ranks of the competitors over the splits, p value of Friedman's test, and Nemenyi's critical difference."""
        return friedman_ranks({name: self.metric.sign * scores for name, scores in self.by_split.items()}, self.alpha)

    @cached_property
    def ranks(self) -> tuple[MethodRank, ...]:
        """Mean rank of each competitor, with its test against that of the best mean rank; empty if none can be ranked."""
        ranks = (
            {name: rank for name, rank in self.friedman[0].items() if not math.isnan(rank)} if self.competitors else {}
        )
        best = min(ranks, key=lambda name: ranks[name], default=None)
        found = {name: MethodRank(name, rank) for name, rank in ranks.items()}
        for test in self.tests:
            if best in (test.first, test.second):
                other = test.second if test.first == best else test.first
                ahead = self.metric.sign * (test.difference if test.first == best else -test.difference)
                found[other] = MethodRank(other, ranks[other], test.p_value, test.significant and ahead > 0)
        return tuple(found.values())

    @cached_property
    def smallest_visible_difference(self) -> float:
        """Typical half-width of the intervals of the differences: smaller ones cannot be told with these splits."""
        reach = [(test.high - test.low) / 2 for test in self.tests if math.isfinite(test.high - test.low)]
        return float(np.median(reach)) if reach else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Collect scores, ranks and tests, for JSON."""
        return {
            "metric": self.metric.name,
            "judge": self.judge,
            "higher_is_better": self.metric.greater_is_better,
            "results": [
                {
                    "method": name,
                    "k": m,
                    "score": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "seconds": math.nan if self.seconds is None else float(self.seconds[i, j]),
                    "stability": self.stability(i, j),
                    "folds": self.scores[i, j].tolist(),
                }
                for i, name in enumerate(self.methods)
                for j, (m, interval) in enumerate(zip(self.m_values, self.intervals[i], strict=True))
            ],
            "references": list(self.references),
            "ranks": self.ranks,
            "tests": self.tests,
            "test": "corrected resampled t test over folds (mean over k in each), p after Holm, interval of each pair",
            "smallest_visible_difference": self.smallest_visible_difference,
            "friedman_p_value": self.friedman[1] if self.competitors else None,
            "failures": self.failures,
        }

    def to_frame(self) -> Any:
        """Make a polars data frame of one row per method and M: score, ends of its interval, seconds, stability."""
        polars = require("polars", "cli", "Comparison.to_frame")
        return polars.DataFrame(self.to_dict()["results"]).drop("folds")


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
        As in :func:`~tamiz.evaluate`.
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
    selectors = [selectors] if isinstance(selectors, str) else selectors
    given = dict(selectors) if isinstance(selectors, Mapping) else {name: name for name in selectors}
    if not given:
        raise ValueError("There is nothing to compare: name at least one selector.")
    sizes = sorted({m for m in np.atleast_1d(k).tolist() if isinstance(m, int)})
    if len(sizes) < np.unique(k).size or not sizes or sizes[0] < 1 or sizes[-1] > rows.n_columns:
        raise ValueError(f"k must hold whole numbers from 1 to the {rows.n_columns} columns, got {k!r}.")
    first = next((one for one in given.values() if not isinstance(one, str)), None)
    task = task_of(first, rows.y)
    named = {**given, **{name: name for name in REFERENCE_METHODS if name not in given}}
    chosen = {
        name: Candidate(registry.canonical_name(one) if isinstance(one, str) else one, rows, task, network)
        for name, one in named.items()
    }
    folds, n_folds = split_folds(rows, task, cv, repeats, random_state)
    metric = get_metric(scoring, task)
    classes = np.unique(rows.y[rows.used]) if task == "classification" else None

    def run(name: str, number: int) -> list[tuple[Parts, float, np.ndarray] | str]:
        """Run one method on one fold: for each M its parts, seconds and columns, or the message of a failure."""
        one, (train, test) = chosen[name], rows.fold(*folds[number])
        found: list[tuple[Parts, float, np.ndarray] | str] = []
        ranked: dict[int, tuple[np.ndarray, float]] = {}
        for m in sizes:
            try:
                parts, supports = [], []
                for draw in range(one.n_draws):
                    if draw not in ranked or one.nested == "each":
                        started = clock.perf_counter()
                        ranks = one.rank(fit_size(one.nested, m, sizes), random_state + number + 7919 * draw, train)
                        ranked[draw] = ranks, clock.perf_counter() - started
                    supports.append(np.full(rows.n_columns, True) if one.keeps_all else ranked[draw][0] <= m)
                    columns = np.flatnonzero(supports[-1][rows.columns])
                    if not columns.size:
                        raise ValueError("it keeps no column")
                    judge = default_judge(task, hasattr(train.X, "tocsr"))
                    fit_model(judge, take_columns(train.X, columns), train)
                    response = metric.read(judge, take_columns(test.X, columns))
                    parts.append(metric.measure(test.y, response, train.y, test.sample_weight, classes))
                found.append((tuple(np.mean(parts, axis=0).tolist()), ranked[0][1], supports[0]))
            except FIT_ERRORS as error:
                found.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
        return found

    jobs = [(name, f) for name in chosen for f in range(len(folds))]
    jobs.sort(key=lambda job: not chosen[job[0]].in_threads)  # those of torch run one after the other, at the end
    n_threads = sum(chosen[name].in_threads for name, _ in jobs)
    tell = progress or (lambda *_: None)
    found = run_parallel(run, jobs[:n_threads], n_jobs, lambda n: tell("comparing", n, len(jobs)))
    found += run_parallel(run, jobs[n_threads:], 1, lambda n: tell("comparing", n_threads + n, len(jobs)))
    shape, places = (len(chosen), len(sizes), len(folds)), {name: i for i, name in enumerate(chosen)}
    n_parts = max((len(one[0]) for records in found for one in records if not isinstance(one, str)), default=1)
    parts, seconds = np.full((*shape, n_parts), np.nan), np.full(shape, np.nan)
    supports = np.zeros((*shape, rows.n_columns), dtype=bool)
    failures: dict[str, str] = {}
    for (name, f), records in zip(jobs, found, strict=True):
        for j, record in enumerate(records):
            if isinstance(record, str):
                failures.setdefault(name, record)
            else:
                place = places[name], j, f
                parts[place], seconds[place], supports[place] = record
    return Comparison(
        metric=metric,
        methods=tuple(chosen),
        m_values=tuple(sizes),
        scores=np.array([[metric.combine(splits) for splits in by_m] for by_m in parts]),
        seconds=np.ma.masked_invalid(seconds).mean(axis=2).filled(np.nan),
        supports=supports,
        test_share=mean_test_share(folds),
        failures=failures,
        references=tuple(name for name, one in chosen.items() if one.is_reference),
        n_folds=n_folds,
        parts=parts,
        names=tuple(rows.names),
        judge=type(default_judge(task).steps[-1][1]).__name__,
    )
