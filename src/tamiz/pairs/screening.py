"""Score every column by the evidence of the pair search, for a screening: no permutations, one search for each target."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import count_threads, run_blocks
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.full import Evidence, search_full
from tamiz.pairs.search import MAX_FULL_COLUMNS, MIN_SAMPLES
from tamiz.pairs.sketch import search_sketch
from tamiz.pairs.target import PairTarget


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
        outcome = search_sketch(table, target, degree=2, random=random, n_threads=n_threads)
        evidence, degrees = outcome.evidence, outcome.degrees
    else:
        basis = make_basis(table, target.weights, n_threads=n_threads)
        evidence = search_full(basis, target, random=random, n_permutations=0, run=run_blocks(n_threads))
        degrees = basis.degrees
    return _larger_evidence(evidence, degrees)


def _larger_evidence(evidence: Evidence, degrees: np.ndarray) -> np.ndarray:
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
