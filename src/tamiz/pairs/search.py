"""find_pairs: which columns act together on a target."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tamiz._utils.names import pick_name
from tamiz._utils.progress import ProgressBar
from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import count_threads
from tamiz.pairs.columns import ColumnTable, read_columns
from tamiz.pairs.full import Evidence, no_evidence, search_full, search_sketch
from tamiz.pairs.result import Pair, PairSearch
from tamiz.pairs.target import PairTarget, TailFit, read_target

# Fewer rows than these cannot tell a pair from chance.
MIN_SAMPLES = 20
# Above this the full search takes minutes for each permutation.
MAX_FULL_COLUMNS = 20_000

_WORDS = ("linear", "U-shape", "cubic", "quartic")


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
    _check_integer("degree", degree, 1, 4)
    _check_integer("n_pairs", n_pairs, 1)
    if n_permutations != "auto":
        _check_integer("n_permutations", n_permutations, 0)
    table = read_columns(X, categorical=categorical, groups=groups)
    target = read_target(y, sample_weight, table.n_samples, task)
    if table.n_samples < MIN_SAMPLES:
        note = f"Pairs cannot be judged on {table.n_samples} rows: give at least {MIN_SAMPLES}."
        nothing = no_evidence(np.zeros(table.n_columns), TailFit(1.0), np.empty(0, dtype=np.int64))
        return _result(table, target, np.ones(table.n_columns, dtype=np.int64), nothing, "full", n_pairs, note)
    threads = count_threads(n_jobs)
    seed = check_random_state(random_state).randint(2**31 - 1)
    random = np.random.default_rng(seed)
    if method == "auto":
        method = "full" if table.n_columns <= MAX_FULL_COLUMNS else "sketch"
    bar = ProgressBar("find_pairs") if verbose else None

    def progress(share: float, what: str) -> None:
        if bar is not None:
            bar.update(int(1e6 * share), 1_000_000, what)

    note = ""
    try:
        if method == "sketch":
            evidence, degrees, note = search_sketch(
                table, target, degree=degree, random=random, n_threads=threads, progress=progress
            )
        else:
            basis = make_basis(table, target.weights, degree=degree, n_threads=threads)
            evidence = search_full(
                basis, target, random=random, n_permutations=n_permutations, n_threads=threads, progress=progress
            )
            degrees = basis.degrees
    finally:
        if bar is not None:
            bar.close()
    is_scale = evidence.evidence.is_scale
    if is_scale is not None and is_scale.any():
        listed = [f"{table.names[i]} and {table.names[j]}" for i, j in evidence.pairs[is_scale][:3]]
        note = (
            f"A matter of scale: {', '.join(listed)}{' and others' if is_scale.sum() > 3 else ''} act together only on the given "
            "scale of the target; on another monotone scale (or with some wrong labels) their effects add up."
        )
    if evidence.n_tests == 0:
        usable = int((degrees > 0).sum())
        note = f"There is no pair to judge: {usable} of {table.n_columns} column(s) can be searched."
    return _result(table, target, degrees, evidence, method, n_pairs, note)


def _check_integer(name: str, value: Any, least: int, most: int | None = None) -> None:
    ok = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least
    if not ok or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {limits}, got {value!r}.")


def _shape(table: ColumnTable, column: int, component: int) -> str:
    """Return what one function of a column looks like."""
    members = table.members[column]
    if len(members) > 1:
        return "group"
    return "level" if table.is_categorical[members[0]] else _WORDS[component]


def _result(
    table: ColumnTable,
    target: PairTarget,
    degrees: np.ndarray,
    evidence: Evidence,
    method: str,
    n_pairs: int,
    note: str,
) -> PairSearch:
    """Put the evidence into tables."""
    log_p = evidence.evidence.log_p
    corrected = evidence.pair_tail.log_corrected(log_p)
    order = np.argsort(log_p, kind="stable")
    raw, partners = evidence.partner_log_p.copy(), evidence.partners.copy()
    pair_log = evidence.pair_tail.log_corrected(raw)
    pair_log[partners < 0] = raw[partners < 0] = 0.0
    for place in order[::-1]:  # the strongest comes last and stays
        i, j = evidence.pairs[place]
        pair_log[[i, j]], raw[[i, j]] = corrected[place], log_p[place]
        partners[i], partners[j] = j, i
    marginal_log = evidence.marginal_tail.log_corrected(evidence.marginal_log_p)
    marginal_log[degrees == 0] = 0.0
    # Two families of tests: the better of both, corrected for having looked at two.
    best = np.exp(np.minimum(marginal_log, pair_log))
    scores = np.maximum(
        -evidence.marginal_log_p - np.log(max(1, int((degrees > 0).sum()))), -raw - np.log(max(1, evidence.n_tests))
    )
    is_scale = np.zeros(len(log_p), dtype=bool) if evidence.evidence.is_scale is None else evidence.evidence.is_scale
    pairs = []
    for place in order[:n_pairs]:
        i, j = (int(column) for column in evidence.pairs[place])
        k, m = evidence.evidence.component[place]
        pairs.append(
            Pair(
                table.names[i],
                table.names[j],
                (i, j),
                float(evidence.evidence.strength[place]),
                float(np.exp(corrected[place])),
                f"{_shape(table, i, int(k))} x {_shape(table, j, int(m))}"
                + (", a matter of scale" if is_scale[place] else ""),
            )
        )
    unused = {table.names[j]: "constant, or its values but one are too rare" for j in np.flatnonzero(degrees == 0)}
    return PairSearch(
        names=table.names,
        marginal_p_values=np.exp(marginal_log),
        pair_p_values=np.exp(pair_log),
        partners=partners,
        p_values=best * (2 - best),
        scores=scores,
        pairs=pairs,
        method=method,
        n_samples=table.n_samples,
        n_tests=evidence.n_tests,
        n_effective_tests=evidence.pair_tail.n_effective,
        n_permutations=evidence.pair_tail.n_permutations,
        fitted=[table.names[j] for j in evidence.fitted],
        unused=unused,
        note=note,
        _table=table,
        _target=target,
    )


def screening_scores(
    X: Any,
    targets: np.ndarray,
    *,
    is_classification: bool,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return how much evidence there is for each column, on its own or in its best pair.

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
    n_jobs : int or None, default=None
        Threads; None is all processors.

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
    numbers = np.arange(n_columns) if groups is None else np.asarray(groups)
    order = np.argsort(numbers, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if n_columns else []
    table = ColumnTable(
        sp.csc_array(X) if sp.issparse(X) else X,
        [str(number) for number in range(len(members))],
        members,
        np.zeros(n_columns, dtype=bool),
    )
    if n_samples < MIN_SAMPLES:
        found = _correlations(table.values, targets, weights)
        return np.array([found[columns].max() for columns in members])
    scores = np.full(len(members), -np.inf)
    parts = _split_targets(np.asarray(targets, dtype=np.float64), weights, is_classification)
    for part in parts:
        scores = np.maximum(scores, _evidence_scores(table, part, seed, count_threads(n_jobs)) - np.log(len(parts)))
    return scores


def _split_targets(targets: np.ndarray, weights: np.ndarray, is_classification: bool) -> list[PairTarget]:
    """Return the targets that are searched one after the other: one for exclusive classes, else one for each output."""
    if not is_classification:
        return [PairTarget(column, None, weights) for column in targets.T if np.ptp(column) > 0]
    if targets.shape[1] > 1 and (np.sum(targets > 0, axis=1) == 1).all():
        coded = [np.unique(targets.argmax(axis=1), return_inverse=True)]
    else:
        coded = [np.unique(column > 0, return_inverse=True) for column in targets.T]
    return [
        PairTarget(codes.astype(np.float64), classes, _within_classes(weights, codes))
        for classes, codes in coded
        if classes.size > 1
    ]


def _within_classes(weights: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return weights that add up to 1, those of each class to its share of the rows."""
    share = np.bincount(codes) / np.bincount(codes, weights=weights) / codes.size
    return weights * share[codes]


def _evidence_scores(table: ColumnTable, target: PairTarget, seed: int, n_threads: int) -> np.ndarray:
    """Return the scores of all columns for one target."""
    random = np.random.default_rng(seed)
    if table.n_columns > MAX_FULL_COLUMNS:
        evidence, degrees, _ = search_sketch(table, target, degree=2, random=random, n_threads=n_threads)
    else:
        basis = make_basis(table, target.weights, n_threads=n_threads)
        evidence = search_full(basis, target, random=random, n_permutations=0, n_threads=n_threads)
        degrees = basis.degrees
    scores = -evidence.marginal_log_p - np.log(max(1, int(np.count_nonzero(degrees))))
    of_pairs = -evidence.evidence.log_p - np.log(max(1, evidence.n_tests))
    for side in evidence.pairs.T:
        np.maximum.at(scores, side, of_pairs)
    scores[degrees == 0] = -np.inf
    return scores


def _correlations(X: Any, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the largest absolute correlation of each column with a target; minus infinity for a constant column."""
    centred = targets - weights @ targets
    mean = np.asarray(X.T @ weights).ravel()
    square = X.multiply(X) if sp.issparse(X) else np.square(X, dtype=np.float64)
    variance = np.asarray(square.T @ weights).ravel() - mean**2
    inner = np.abs(np.asarray(X.T @ (weights[:, None] * centred)) / np.sqrt(np.maximum(weights @ centred**2, 1e-300)))
    varies = variance > 1e-9 * np.maximum(mean**2, 1e-30)
    return np.where(varies, inner.max(axis=1) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
