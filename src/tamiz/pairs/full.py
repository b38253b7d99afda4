"""Search all pairs, or the likely ones of very many columns, and calibrate what is found by permutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from tamiz.pairs.basis import Basis, make_basis
from tamiz.pairs.blocks import Best, search_all, split
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.evidence import ColumnTests, PairEvidence, PairJudge
from tamiz.pairs.target import PairResiduals, PairTarget, TailFit, additive_residuals, fit_tail, residuals_of

# Progress is told as (share done, what is being done).
Progress = Callable[[float, str], None]


def _silent(share: float, what: str) -> None:
    """Show no progress."""


def _part_of(progress: Progress, begin: float, end: float, what: str, share: float) -> None:
    progress(begin + (end - begin) * share, what)


# So many of the strongest pairs are always judged exactly,
MIN_JUDGED = 100
# and all that are kept and of whose strength fewer than so many are expected among all pairs without effect.
_EXPECTED_JUDGED = 50.0
# A sketch takes as many rows as can be searched with so many multiplications, and at least so many;
_SKETCH_PRODUCTS = 4e12
_SKETCH_ROWS = 64
# so many of the pairs that it finds are judged on all rows, and the strongest of so many columns are fitted first.
_SKETCH_PAIRS = 5_000
_SKETCH_FITTED = 200


@dataclass(frozen=True, eq=False)
class Evidence:
    """Hold all that a search has found, by index of the column.

    Parameters
    ----------
    marginal_log_p : ndarray of shape (n_columns,)
        Logarithm of the p value of each column on its own.
    marginal_tail, pair_tail : TailFit
        How p values of columns and of pairs are corrected.
    pairs : ndarray of int, shape (n_pairs, 2)
        The pairs that were judged exactly.
    evidence : PairEvidence
        What is known of them.
    fitted : ndarray of int
        Columns whose own effect was taken out first.
    n_tests : int
        Number of pairs that were searched.
    partners : ndarray of int, shape (n_columns,)
        Best partner of each column by the approximate evidence of the search; -1 if there is none.
    partner_log_p : ndarray of shape (n_columns,)
        Logarithm of the approximate p value of that pair, for columns none of whose pairs was judged exactly; not below that of
        the strongest of all pairs without effect.
    """

    marginal_log_p: np.ndarray
    marginal_tail: TailFit
    pairs: np.ndarray
    evidence: PairEvidence
    pair_tail: TailFit
    fitted: np.ndarray
    n_tests: int
    partners: np.ndarray
    partner_log_p: np.ndarray


def no_evidence(marginal_log_p: np.ndarray, tail: TailFit, fitted: np.ndarray) -> Evidence:
    """Return the evidence of a search without pairs."""
    none, n = np.empty((0, 2), dtype=np.int64), len(marginal_log_p)
    nothing = PairEvidence(np.empty(0), np.empty(0), none)
    return Evidence(marginal_log_p, tail, none, nothing, TailFit(1.0), fitted, 0, np.full(n, -1), np.zeros(n))


def count_pairs(degrees: np.ndarray) -> int:
    """Return the number of pairs of columns that have functions."""
    usable = int((degrees > 0).sum())
    return usable * (usable - 1) // 2


def kept_pairs(n_columns: int) -> int:
    """Return how many of the strongest pairs are kept: one for each column, within 100 and 1,000."""
    return int(np.clip(n_columns, MIN_JUDGED, 1000))


def marginal_tail(
    tests: ColumnTests, residuals: PairResiduals, random: np.random.Generator, n_permutations: Any
) -> TailFit:
    """Return how p values of single columns are corrected."""
    n_rows, n_columns = residuals.values.shape[1], tests.basis.n_columns
    count = int(np.clip(2_000_000 // max(1, n_columns), 20, 200)) if n_permutations == "auto" else n_permutations
    n_tests = int((tests.basis.degrees > 0).sum())
    if count == 0 or n_tests == 0:
        return TailFit(float(max(1, n_tests)))
    orders = np.stack([random.permutation(n_rows) for _ in range(count)])
    smallest = [tests.log_p(residuals, orders[start : start + 25]) for start in range(0, count, 25)]
    return fit_tail(np.concatenate(smallest), n_tests)


def search_full(
    basis: Basis,
    target: PairTarget,
    *,
    random: np.random.Generator,
    n_permutations: Any,
    n_threads: int = 1,
    progress: Progress = _silent,
) -> Evidence:
    """Search all pairs of a basis.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    target : PairTarget
        The target.
    random : numpy.random.Generator
        Draws the permutations.
    n_permutations : "auto" or int
        "auto" begins with 20 and goes on to 100 while the strongest pair is in doubt.
    n_threads : int, default=1
        Threads.
    progress : callable
        Called with the share that is done, and with what is being done.
    """
    tests = ColumnTests(basis, target.weights)
    alone = residuals_of(target)
    marginal = tests.log_p(alone)
    column_tail = marginal_tail(tests, alone, random, n_permutations)
    residuals, rescaled = additive_residuals(basis, target, tests.log_p, marginal)
    n_tests = count_pairs(basis.degrees)
    if n_tests == 0:
        return no_evidence(marginal, column_tail, residuals.fitted)
    blocks, judge = split(basis), PairJudge(basis, target.weights)
    n_kept = min(kept_pairs(basis.n_columns), n_tests)
    variance = residuals.scale**2

    def search(replicates: list[PairResiduals], begin: float, end: float, what: str) -> list[Best]:
        """Search with several residuals at once; they share the blocks."""
        weights = np.stack([one.values * residuals.scale for one in replicates])
        tell = partial(_part_of, progress, begin, end, what)
        return search_all(blocks, weights, variance, basis.n_columns, n_kept, n_threads, tell)

    wanted = 20 if n_permutations == "auto" else n_permutations
    best = search([residuals], 0.0, 1.0 / (wanted + 1), "pairs")[0]
    pairs = pairs_to_judge(best, n_tests, residuals.fitted)
    evidence = judge.judge(pairs, residuals)
    smallest: list[float] = []
    while len(smallest) < wanted:
        count = min(10, wanted - len(smallest))
        replicates = [residuals.replicate(random) for _ in range(count)]
        begin, end = (len(smallest) + 1) / (wanted + 1), (len(smallest) + count + 1) / (wanted + 1)
        for replicate, found in zip(replicates, search(replicates, begin, end, "permutations")):
            without_effect = judge.judge(pairs_to_judge(found, n_tests, residuals.fitted), replicate)
            smallest.append(float(without_effect.log_p.min(initial=0.0)))
        if n_permutations == "auto" and len(smallest) == wanted < 100:
            corrected = fit_tail(np.array(smallest), n_tests).log_corrected(evidence.log_p.min(initial=0.0))
            if np.log(0.01) < corrected < np.log(0.15):
                wanted += 20
    tail = fit_tail(np.array(smallest), n_tests)
    is_scale = np.zeros(len(pairs), dtype=bool)
    if rescaled is not None:
        # Two columns of the model may only seem to act together because their effects add up on another scale.
        both = np.isin(pairs, residuals.fitted).all(axis=1)
        on_best_scale = evidence.log_p.copy()
        on_best_scale[both] = np.maximum(evidence.log_p[both], judge.judge(pairs[both], rescaled).log_p)
        is_scale = (tail.log_corrected(evidence.log_p) < np.log(0.05)) & (
            tail.log_corrected(on_best_scale) > np.log(0.05)
        )
        evidence = replace(evidence, log_p=on_best_scale)
    weak = np.maximum(special.log_ndtr(-best.column_z), -np.log(n_tests))
    evidence = replace(evidence, is_scale=is_scale)
    return Evidence(marginal, column_tail, pairs, evidence, tail, residuals.fitted, n_tests, best.partner, weak)


def pairs_to_judge(best: Best, n_tests: int, fitted: np.ndarray) -> np.ndarray:
    """Return the pairs that are worth an exact judgement, as an array of shape (n_pairs, 2).

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


def search_sketch(
    table: ColumnTable,
    target: PairTarget,
    *,
    degree: int,
    random: np.random.Generator,
    n_threads: int = 1,
    progress: Progress = _silent,
) -> tuple[Evidence, np.ndarray, str]:
    """Find strong pairs among very many columns: search products of ranks on some rows, judge the best pairs on all rows.

    The rows are those with the largest residuals; their number falls with the square of the number of columns.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    target : PairTarget
        The target.
    degree : int
        Degree of the polynomials with which pairs are judged.
    random : numpy.random.Generator
        Chooses among rows with equal residuals.
    n_threads : int, default=1
        Threads.
    progress : callable
        Called with the share that is done, and with what is being done.

    Returns
    -------
    tuple
        The evidence, the number of functions of each column, and what the sketch can miss.
    """
    marginal, degrees = np.zeros(table.n_columns), np.zeros(table.n_columns, dtype=np.int64)
    alone = residuals_of(target)
    for start in range(0, table.n_columns, 1024):
        columns = np.arange(start, min(start + 1024, table.n_columns))
        part = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
        degrees[columns] = part.degrees
        marginal[columns] = ColumnTests(part, target.weights).log_p(alone)
        progress(0.2 * columns[-1] / table.n_columns, "columns")
    strong = np.sort(np.argsort(marginal, kind="stable")[:_SKETCH_FITTED])
    fitted = make_basis(table, target.weights, degree=degree, columns=strong)
    tests = ColumnTests(fitted, target.weights)
    residuals, _ = additive_residuals(fitted, target, tests.log_p, n_tests=table.n_columns)

    weighted = residuals.values * residuals.scale
    n_rows = int(np.clip(_SKETCH_PRODUCTS / table.n_columns**2, _SKETCH_ROWS, table.n_samples))
    size = (weighted**2).sum(axis=0)
    rows = np.sort(np.lexsort((random.random(table.n_samples), -size))[:n_rows])
    weights = target.weights[rows] / target.weights[rows].sum()
    basis = make_basis(table.take(rows), weights, degree=1, n_threads=n_threads)
    n_tests = count_pairs(degrees)
    tell = partial(_part_of, progress, 0.2, 0.9, "sketch")
    blocks, n_kept = split(basis), max(1, min(_SKETCH_PAIRS, count_pairs(basis.degrees)))
    variance = residuals.scale[rows] ** 2
    best = search_all(blocks, weighted[None, :, rows], variance, table.n_columns, n_kept, n_threads, tell)[0]
    pairs = best.pairs()
    columns = np.unique(pairs)
    basis = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
    evidence = PairJudge(basis, target.weights).judge(np.searchsorted(columns, pairs), residuals)
    progress(1.0, "judged")
    note = (
        f"Sketch: products of ranks were searched on {n_rows:,} of {table.n_samples:,} rows, and the {len(pairs):,} strongest of "
        f"{n_tests:,} pairs judged on all; weaker pairs and those of another shape can be missed. P values are corrected for the "
        "number of all pairs (Bonferroni). method='full' looks at all pairs with all rows."
    )
    found = replace(
        no_evidence(marginal, TailFit(float(max(1, int((degrees > 0).sum())))), strong[residuals.fitted]),
        pairs=pairs,
        evidence=evidence,
        pair_tail=TailFit(float(max(1, n_tests))),
        n_tests=n_tests,
    )
    return found, degrees, note
