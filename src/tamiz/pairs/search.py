"""Search all pairs, or the likely ones of very many columns, and correct what is found by permutations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from math import comb
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from scipy import special
from sklearn.utils import check_random_state, check_scalar

from tamiz._utils.progress import ProgressBar
from tamiz._utils.text import counted, pick_name
from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import Best, search_all, split
from tamiz.pairs.columns import ColumnTable, members_of, read_columns
from tamiz.pairs.evidence import Judge, TailFit, fit_tail
from tamiz.pairs.result import Pair, PairSearch
from tamiz.pairs.target import PairTarget, additive_residuals, explains_more, read_target, residuals_of

# Fewer rows than these cannot tell a pair from chance.
MIN_SAMPLES = 20
# Above this the full search takes minutes for each permutation.
MAX_FULL_COLUMNS = 20_000
# Of the strongest pairs one for each column is kept, within this and 1,000; so many are always judged exactly,
MIN_JUDGED = 100
# and all that are kept and of whose strength fewer than so many are expected among all pairs without effect.
_EXPECTED_JUDGED = 50.0
# A sketch takes as many rows as can be searched with so many multiplications, and at least so many;
_SKETCH_PRODUCTS = 4e12
_SKETCH_ROWS = 64
# so many of the pairs that it finds are judged on all rows, and the strongest of so many columns are fitted first.
_SKETCH_PAIRS = 5_000
_SKETCH_FITTED = 200
_WORDS = ("linear", "U-shape", "cubic", "quartic")

# Progress is told as (share done, what is being done).
Progress = Callable[[float, str], None]


def find_pairs(
    X: Any,
    y: Any,
    *,
    task: str = "auto",
    degree: int = 2,
    categorical: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    method: str = "auto",
    n_permutations: Any = "auto",
    n_pairs: int = 100,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PairSearch:
    """Find columns that act together: pairs that say more about the target than both columns alone.

    All pairs are searched by matrix products. What each column (and an additive model of the strong columns) explains is taken
    out first, and p values are corrected for all pairs by permutations.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
        The table. Sparse tables are searched for products of ranks (degree 1), without making them dense.
    y : array-like of shape (n_samples,)
        Classes or numbers.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is; "auto" takes text, booleans and few integers for classes.
    degree : int from 1 to 4, default=2
        Degree of the polynomials of the ranks of each column. 1 finds products and exclusive ors, 2 also effects that
        turn around. The time grows with its square.
    categorical : None, "auto" or sequence, default=None
        Columns without an order: names, indices or a mask; "auto" takes text, boolean and category columns of a data frame.
    groups : array-like of shape (n_features,) or None, default=None
        Label of the group of each input; a group (for example one-hot columns) counts as one column.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Importance of the rows.
    method : {"auto", "full", "sketch"}, default="auto"
        "full" searches all pairs; "sketch" finds strong pairs among very many columns in nearly linear time; "auto" takes
        the sketch above 20,000 columns.
    n_permutations : "auto" or int, default="auto"
        Permutations for the correction. "auto" begins with 20 and goes on to 100 while the strongest pair is in doubt; 0 corrects
        for the number of tests (Bonferroni). Each costs one more search; the sketch uses none.
    n_pairs : int, default=100
        How many pairs to list at most.
    n_jobs : int or None, default=None
        Threads; None and -1 are all processors.
    random_state : int, RandomState or None, default=None
        Seed of the permutations and of the sketch.
    verbose : int, default=0
        1 shows a progress bar with the time left.

    Returns
    -------
    PairSearch

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz import find_pairs
    >>> X = np.random.default_rng(0).normal(size=(400, 30))
    >>> y = (X[:, 3] * X[:, 7] > 0).astype(int)
    >>> found = find_pairs(X, y, random_state=0)
    >>> found.significant_columns().tolist(), found.pairs[0].shape
    ([3, 7], 'linear x linear')
    >>> found.columns_to_dict()["partner"][:2]
    ['x7', 'x3']
    """
    task = pick_name(task, ["auto", "classification", "regression"], "task")
    method = pick_name(method, ["auto", "full", "sketch"], "method")
    check_scalar(degree, "degree", Integral, min_val=1, max_val=4)
    check_scalar(n_pairs, "n_pairs", Integral, min_val=1)
    if n_permutations != "auto":
        check_scalar(n_permutations, "n_permutations", Integral, min_val=0)
    table = X if isinstance(X, ColumnTable) else read_columns(X, categorical=categorical, groups=groups)
    target = read_target(y, sample_weight, table.n_samples, task)
    if method == "auto":
        method = "full" if table.n_columns <= MAX_FULL_COLUMNS else "sketch"
    random = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    with closing(ProgressBar("find_pairs")) if verbose else nullcontext() as bar:

        def progress(share: float, what: str) -> None:
            if bar is not None:
                bar.update(int(1e6 * share), 1_000_000, what)

        if table.n_samples < MIN_SAMPLES:
            method = "full"
            found = Evidence(np.zeros(table.n_columns), np.ones(table.n_columns, dtype=np.int64))
            found.note = f"Pairs cannot be judged on {table.n_samples} rows: give at least {MIN_SAMPLES}."
        elif method == "sketch":
            found = _search_sketch(table, target, random, degree=degree, n_jobs=n_jobs, progress=progress)
        else:
            found = _search_full(table, target, random, n_permutations, degree=degree, n_jobs=n_jobs, progress=progress)
    return _to_result(found, table, target, method, n_pairs)


class Evidence:
    """Evidence of columns and pairs, by index of the column.

    Parameters
    ----------
    marginal_log_p : ndarray of shape (n_columns,)
        Logarithm of the p value of each column on its own.
    degrees : ndarray of int, shape (n_columns,)
        Number of functions of each column.
    """

    def __init__(self, marginal_log_p: np.ndarray, degrees: np.ndarray) -> None:
        self.marginal_log_p, self.degrees = marginal_log_p, degrees
        n_columns, none = len(degrees), np.empty((0, 2), dtype=np.int64)
        self.n_usable = int(np.count_nonzero(degrees))
        #: How p values of columns are corrected, and which columns were taken out first.
        self.marginal_tail, self.fitted = TailFit(float(max(1, self.n_usable))), none[:, 0]
        #: Pairs that were judged exactly, what is known of them, and how their p values are corrected.
        self.pairs = none
        self.judged: tuple[np.ndarray, np.ndarray, np.ndarray] = (np.empty(0), np.empty(0), none)
        self.is_scale = np.zeros(0, dtype=bool)
        self.pair_tail = TailFit(1.0)
        #: Best partner of each column by the approximate evidence of the search, -1 if there is none, and the logarithm of the
        #: approximate p value of that pair, not below that of the strongest of all pairs without effect.
        self.partners, self.partner_log_p = np.full(n_columns, -1), np.zeros(n_columns)
        self.note = ""
        self.n_tests = comb(self.n_usable, 2)


def _search_full(
    table: ColumnTable,
    target: PairTarget,
    random: np.random.Generator,
    n_permutations: Any = 0,
    *,
    degree: int = 2,
    n_jobs: int | None = None,
    progress: Progress = lambda share, what: None,
) -> Evidence:
    """Search all pairs; "auto" begins with 20 permutations and goes on to 100 while the strongest pair is in doubt."""
    n_threads = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
    basis = make_basis(table, target.weights, degree=degree, n_threads=n_threads)
    judge, alone = Judge(basis, target.weights), residuals_of(target)
    found = Evidence(judge.columns(alone), basis.degrees)
    count = n_permutations
    if count == "auto":
        count = int(np.clip(2_000_000 // max(1, basis.n_columns), 20, 200))
    if count and found.n_usable:
        orders = np.stack([random.permutation(len(target.values)) for _ in range(count)])
        smallest_alone = [judge.columns(alone, orders[start : start + 25]) for start in range(0, count, 25)]
        found.marginal_tail = fit_tail(np.concatenate(smallest_alone), found.n_usable)
    residuals, rescale, found.fitted = additive_residuals(judge, target, found.marginal_log_p, basis.n_columns)
    n_tests = found.n_tests
    if n_tests == 0:
        return found
    blocks, n_kept = split(basis), min(int(np.clip(basis.n_columns, MIN_JUDGED, 1000)), n_tests)

    def search(replicates: list[Any], begin: float, end: float, what: str) -> list[Best]:
        """Search with several residuals at once; they share the blocks."""
        weights = np.stack([one.values * residuals.scale for one in replicates])
        tell = lambda share: progress(begin + (end - begin) * share, what)  # noqa: E731
        return search_all(blocks, weights, residuals.scale**2, basis.n_columns, n_kept, n_threads, tell)

    wanted = 20 if n_permutations == "auto" else n_permutations
    best = search([residuals], 0.0, 1.0 / (wanted + 1), "pairs")[0]
    found.pairs = pairs_to_judge(best, n_tests, found.fitted)
    log_p, strength, component = judge.pairs(found.pairs, residuals)
    smallest: list[float] = []
    while len(smallest) < wanted:
        count = min(10, wanted - len(smallest))
        replicates = [residuals.replicate(random) for _ in range(count)]
        begin, end = (len(smallest) + 1) / (wanted + 1), (len(smallest) + count + 1) / (wanted + 1)
        for replicate, best_without in zip(replicates, search(replicates, begin, end, "permutations")):
            without_effect = judge.pairs(pairs_to_judge(best_without, n_tests, found.fitted), replicate)[0]
            smallest.append(float(without_effect.min(initial=0.0)))
        if n_permutations == "auto" and len(smallest) == wanted < 100:
            corrected = fit_tail(np.array(smallest), n_tests).log_corrected(log_p.min(initial=0.0))
            if np.log(0.01) < corrected < np.log(0.15):
                wanted += 20
    tail = found.pair_tail = fit_tail(np.array(smallest), n_tests)
    found.is_scale = np.zeros(len(log_p), dtype=bool)
    strong = np.flatnonzero(tail.log_corrected(log_p) < np.log(0.05))
    if found.fitted.size > 1 and strong.size:
        # Columns may only seem to act together because effects add up on another scale.
        rescaled = rescale()
        on_best_scale = np.maximum(log_p[strong], judge.pairs(found.pairs[strong], rescaled)[0])
        for place, other in zip(strong, on_best_scale):
            first, second = map(basis.of_column, found.pairs[place])
            products = (first[:, None] * second).reshape(-1, first.shape[1]).T
            lost = tail.log_corrected(other) > np.log(0.05)
            if not lost or not explains_more(target, products, rescaled):
                log_p[place], found.is_scale[place] = other, lost
    found.judged = log_p, strength, component
    found.partners = best.partner
    found.partner_log_p = np.maximum(special.log_ndtr(-best.column_z), -np.log(n_tests))
    return found


def pairs_to_judge(best: Best, n_tests: int, fitted: np.ndarray) -> np.ndarray:
    """Choose the pairs that are worth an exact judgement, as an array of shape (n_pairs, 2).

    These are the strongest pairs, the best pair of each column where it is strong, and that of each column of the additive model,
    whose rows count so differently that the approximate evidence can be far off.

    Parameters
    ----------
    best : Best
        What the search found.
    n_tests : int
        Number of all pairs.
    fitted : ndarray of int
        Columns of the additive model.
    """
    limit = np.log(_EXPECTED_JUDGED / max(1, n_tests))
    pairs = best.pairs()
    n_strong = int((special.log_ndtr(-best.z[: len(pairs)]) < limit).sum())
    is_strong = special.log_ndtr(-best.column_z) < limit
    is_strong[fitted] = True
    columns = np.flatnonzero(is_strong & (best.partner >= 0))
    own = np.sort(np.stack([columns, best.partner[columns]], axis=1), axis=1)
    return np.unique(np.concatenate([pairs[: max(MIN_JUDGED, n_strong)], own]), axis=0).astype(np.int64)


def _search_sketch(
    table: ColumnTable,
    target: PairTarget,
    random: np.random.Generator,
    *,
    degree: int = 2,
    n_jobs: int | None = None,
    progress: Progress = lambda share, what: None,
) -> Evidence:
    """Find strong pairs among very many columns: search products of ranks on some rows, judge the best pairs on all rows.

    The rows are those with the largest residuals; their number falls with the square of the number of columns.
    """
    n_threads = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
    marginal, degrees = np.zeros(table.n_columns), np.zeros(table.n_columns, dtype=np.int64)
    alone = residuals_of(target)
    for start in range(0, table.n_columns, 1024):
        columns = np.arange(start, min(start + 1024, table.n_columns))
        part = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
        degrees[columns] = part.degrees
        marginal[columns] = Judge(part, target.weights).columns(alone)
        progress(0.2 * columns[-1] / table.n_columns, "columns")
    strong = np.sort(np.argsort(marginal, kind="stable")[:_SKETCH_FITTED])
    basis = make_basis(table, target.weights, degree=degree, columns=strong)
    judge = Judge(basis, target.weights)
    residuals, _, fitted = additive_residuals(judge, target, judge.columns(alone), table.n_columns)

    weighted = residuals.values * residuals.scale
    n_rows = int(np.clip(_SKETCH_PRODUCTS / table.n_columns**2, _SKETCH_ROWS, table.n_samples))
    rows = np.sort(np.lexsort((random.random(table.n_samples), -(weighted**2).sum(axis=0)))[:n_rows])
    weights = target.weights[rows] / target.weights[rows].sum()
    basis = make_basis(table.take(rows), weights, degree=1, n_threads=n_threads)
    n_kept, variance = max(1, min(_SKETCH_PAIRS, comb(np.count_nonzero(basis.degrees), 2))), residuals.scale[rows] ** 2
    tell = lambda share: progress(0.2 + 0.7 * share, "sketch")  # noqa: E731
    best = search_all(split(basis), weighted[None, :, rows], variance, table.n_columns, n_kept, n_threads, tell)[0]
    found = Evidence(marginal, degrees)
    found.fitted, found.pairs, n_tests = strong[fitted], best.pairs(), found.n_tests
    columns = np.unique(found.pairs)
    basis = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
    found.judged = Judge(basis, target.weights).pairs(np.searchsorted(columns, found.pairs), residuals)
    found.is_scale, found.pair_tail = np.zeros(len(found.pairs), dtype=bool), TailFit(float(max(1, n_tests)))
    progress(1.0, "judged")
    found.note = (
        f"Sketch: products of ranks were searched on {n_rows:,} of {table.n_samples:,} rows, and the {len(found.pairs):,} "
        f"strongest of {n_tests:,} pairs judged on all; weaker pairs and those of another shape can be missed. P values are "
        "corrected for the number of all pairs (Bonferroni). method='full' looks at all pairs with all rows."
    )
    return found


def _to_result(found: Evidence, table: ColumnTable, target: PairTarget, method: str, n_pairs: int) -> PairSearch:
    """Correct the p values, and make the tables of columns and pairs."""
    (log_p, strength, component), names, unused = found.judged, table.names, np.flatnonzero(found.degrees == 0)
    note, is_scale, n_tests = found.note, found.is_scale, found.n_tests if len(found.pairs) else 0
    if is_scale.any():
        listed = [f"{names[i]} and {names[j]}" for i, j in found.pairs[is_scale][:3]]
        note = (
            f"A matter of scale: {', '.join(listed)}{' and others' if is_scale.sum() > 3 else ''} act together only on the given "
            "scale of the target; on another monotone scale (or with some wrong labels) their effects add up."
        )
    if n_tests == 0:
        note = (
            note or f"There is no pair to judge: {found.n_usable} of {counted(len(names), 'column')} can be searched."
        )
    corrected = found.pair_tail.log_corrected(log_p)
    order = np.argsort(log_p, kind="stable")
    raw, partners = found.partner_log_p, found.partners
    pair_log = found.pair_tail.log_corrected(raw)
    pair_log[partners < 0] = raw[partners < 0] = 0.0
    for place in order[::-1]:  # the strongest comes last and stays
        i, j = found.pairs[place]
        pair_log[[i, j]], raw[[i, j]] = corrected[place], log_p[place]
        partners[i], partners[j] = j, i
    marginal_log = found.marginal_tail.log_corrected(found.marginal_log_p)
    marginal_log[unused] = 0.0
    # Two families of tests: the better of both, corrected for having looked at two.
    best = np.exp(np.minimum(marginal_log, pair_log))
    own, joint = -found.marginal_log_p - np.log(max(1, found.n_usable)), -raw - np.log(max(1, n_tests))

    def shape(column: int, function: int) -> str:
        members = table.members[column]
        return "group" if len(members) > 1 else "level" if table.is_categorical[members[0]] else _WORDS[function]

    pairs = []
    for place in order[:n_pairs]:
        i, j = (int(column) for column in found.pairs[place])
        words = f"{shape(i, component[place, 0])} x {shape(j, component[place, 1])}"
        words += ", a matter of scale" if is_scale[place] else ""
        p_value = float(np.exp(corrected[place]))
        pairs.append(Pair(names[i], names[j], (i, j), float(strength[place]), p_value, words))
    return PairSearch(
        names=names,
        marginal_p_values=np.exp(marginal_log),
        pair_p_values=np.exp(pair_log),
        partners=partners,
        p_values=best * (2 - best),
        scores=np.maximum(own, joint),
        pairs=pairs,
        method=method,
        n_samples=table.n_samples,
        n_tests=n_tests,
        n_effective_tests=found.pair_tail.n_effective,
        n_permutations=found.pair_tail.n_permutations,
        fitted=[names[j] for j in found.fitted],
        unused={names[j]: "constant, or its values but one are too rare" for j in unused},
        note=note,
        _table=table,
        _target=target,
    )


#: Scores of the last searches by the content of their arguments: fits for several M, and networks that are compared, screen
#: the same rows.
_RECENT: dict[str | None, np.ndarray] = {}
_MOST_RECENT = 16


def screening_scores(
    X: Any,
    targets: np.ndarray,
    *,
    is_classification: bool,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Score columns by their evidence, on their own or in their best pair.

    The score of a column is the larger of ``-log(p) - log(number of tests)`` of its own test and of the test of its best
    pair, as :func:`tamiz.find_pairs` reports it, without the correction by permutations. Below 20 rows, on which pairs cannot
    be judged, it is the largest absolute correlation with a target.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n_samples, n_columns)
        The table. A sparse one is not made dense and is searched with degree 1.
    targets : ndarray, shape (n_samples, n_outputs)
        -1 and +1 for classes and labels (one +1 in each row: classes that exclude each other), or numbers.
    is_classification : bool
        Whether the targets are classes or labels.
    sample_weight : ndarray, shape (n_samples,), or None, default=None
        Weights of the rows. Of classes only the weights within each class count: evidence compares classes with each other
        whatever their sizes, and weights that make up for these would leave it to the rows of the rare ones.
    groups : ndarray of int, shape (n_columns,), or None, default=None
        Number of the group of each column; a group has one score.
    seed : int, default=0
        Seed of the sketch, which searches tables of more than 20,000 columns.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        One score for each column or, with groups, for each group; minus infinity for one that is constant.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 12))
    >>> scores = screening_scores(X, np.sign(X[:, [4]] * X[:, [9]]), is_classification=True)
    >>> np.sort(np.argsort(scores)[-2:]).tolist()
    [4, 9]
    """
    n_samples, n_columns = X.shape
    weights = np.ones(n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weights = weights / weights.sum()
    key = joblib.hash((X, targets, weights, groups, is_classification, seed))
    if (known := _RECENT.get(key)) is not None:
        return known.copy()
    members = members_of(np.arange(n_columns) if groups is None else np.asarray(groups))
    values = sp.csc_array(X) if sp.issparse(X) else X
    table = ColumnTable(values, [str(i) for i in range(len(members))], members, np.zeros(n_columns, dtype=bool))
    if n_samples < MIN_SAMPLES:
        found = _correlations(values, targets, weights)
        return np.array([found[columns].max() for columns in members])
    parts = _split_targets(np.asarray(targets, dtype=np.float64), weights, is_classification)
    search = _search_sketch if table.n_columns > MAX_FULL_COLUMNS else _search_full
    scores = np.full(len(members), -np.inf)
    for part in parts:
        evidence = search(table, part, np.random.default_rng(seed))
        own = -evidence.marginal_log_p - np.log(max(1, evidence.n_usable))
        of_pairs = -evidence.judged[0] - np.log(max(1, evidence.n_tests))
        for side in evidence.pairs.T:
            np.maximum.at(own, side, of_pairs)
        own[evidence.degrees == 0] = -np.inf
        scores = np.maximum(scores, own - np.log(len(parts)))
    _RECENT[key] = scores.copy()
    if len(_RECENT) > _MOST_RECENT:
        _RECENT.pop(next(iter(_RECENT)), None)
    return scores


def _split_targets(targets: np.ndarray, weights: np.ndarray, is_classification: bool) -> list[PairTarget]:
    """Split targets into those searched one after the other: one for exclusive classes, else one for each output."""
    if not is_classification:
        return [PairTarget(column, None, weights) for column in targets.T if np.ptp(column) > 0]
    if targets.shape[1] > 1 and (np.sum(targets > 0, axis=1) == 1).all():
        coded = [np.unique(targets.argmax(axis=1), return_inverse=True)]
    else:
        coded = [np.unique(column > 0, return_inverse=True) for column in targets.T]
    found = []
    for classes, codes in coded:
        if classes.size > 1:  # the weights of each class add up to its share of the rows
            share = np.bincount(codes) / np.bincount(codes, weights=weights) / codes.size
            found.append(PairTarget(codes.astype(np.float64), classes, weights * share[codes]))
    return found


def _correlations(X: Any, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Largest absolute correlation of each column with a target; minus infinity for a constant column."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    centred, residuals, mean = X - weights @ X, targets - weights @ targets, weights @ X
    variance = weights @ centred**2
    inner = (weights[:, None] * centred).T @ (residuals / np.sqrt(np.maximum(weights @ residuals**2, 1e-300)))
    varies = variance > 1e-9 * np.maximum(mean**2, 1e-30)
    return np.where(varies, np.abs(inner).max(axis=1) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
