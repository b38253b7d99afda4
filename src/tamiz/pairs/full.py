"""Search all pairs and calibrate what is found by permutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tamiz.pairs.basis import Basis
from tamiz.pairs.blocks import Best, Block, Runner, Task, search_all, split
from tamiz.pairs.evidence import ColumnTests, PairEvidence, PairJudge
from tamiz.pairs.target import PairResiduals, PairTarget, TailFit, additive_residuals, fit_tail, residuals_of

# Progress is told as (share done, what is being done).
Progress = Callable[[float, str], None]
# Makes the function that does one task, from blocks, weights, variance and the number of pairs kept.
WorkMaker = Callable[[list[Block], np.ndarray, np.ndarray, int], Callable[[Task], Any]]

# So many of the strongest pairs are always judged exactly,
MIN_JUDGED = 100
# and all that are kept and of whose strength fewer than so many are expected among all pairs without effect.
_EXPECTED_JUDGED = 50.0


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
    run: Runner,
    progress: Progress | None = None,
    make_work: WorkMaker | None = None,
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
    run : Runner
        Works on blocks: in threads or on a cluster.
    progress : callable or None, default=None
        Told of what is done.
    make_work : callable or None, default=None
        Makes the function that searches one pair of blocks; None searches in memory.
    """
    tests = ColumnTests(basis, target.weights)
    alone = residuals_of(target)
    marginal = tests.log_p(alone)
    column_tail = marginal_tail(tests, alone, random, n_permutations)
    residuals = additive_residuals(basis, target, tests.log_p, marginal)
    blocks = split(basis)
    n_tests = count_pairs(basis.degrees)
    if n_tests == 0:
        empty = PairEvidence(np.empty(0), np.empty(0), np.empty((0, 2), dtype=np.int64))
        none = np.empty((0, 2), dtype=np.int64)
        partners, weak = np.full(basis.n_columns, -1), np.zeros(basis.n_columns)
        return Evidence(marginal, column_tail, none, empty, TailFit(1.0), residuals.fitted, 0, partners, weak)
    search = _Search(basis, target, residuals, blocks, run, progress, make_work)
    first = 20 if n_permutations == "auto" else n_permutations
    best = search.run_all([residuals], 0.0, 1.0 / (first + 1), "pairs")[0]
    pairs = pairs_to_judge(best, n_tests, residuals.fitted)
    evidence = search.judge.judge(pairs, residuals)
    smallest: list[float] = []
    wanted = first
    while len(smallest) < wanted:
        count = min(10, wanted - len(smallest))
        replicates = [residuals.replicate(random) for _ in range(count)]
        begin, end = (len(smallest) + 1) / (wanted + 1), (len(smallest) + count + 1) / (wanted + 1)
        for replicate, found in zip(replicates, search.run_all(replicates, begin, end, "permutations")):
            without_effect = search.judge.judge(pairs_to_judge(found, n_tests, residuals.fitted), replicate)
            smallest.append(float(without_effect.log_p.min(initial=0.0)))
        if n_permutations == "auto" and len(smallest) == wanted < 100:
            corrected = fit_tail(np.array(smallest), n_tests).log_corrected(evidence.log_p.min(initial=0.0))
            if np.log(0.01) < corrected < np.log(0.15):
                wanted += 20
    tail = fit_tail(np.array(smallest), n_tests)
    weak = np.maximum(special.log_ndtr(-best.column_z), -np.log(n_tests))
    return Evidence(marginal, column_tail, pairs, evidence, tail, residuals.fitted, n_tests, best.partner, weak)


@dataclass(eq=False)
class _Search:
    """Keep what all replicates share."""

    basis: Basis
    target: PairTarget
    residuals: PairResiduals
    blocks: list[Block]
    run: Runner
    progress: Progress | None
    make_work: WorkMaker | None

    def __post_init__(self) -> None:
        self.judge = PairJudge(self.basis, self.target.weights)
        self.n_kept = min(kept_pairs(self.basis.n_columns), count_pairs(self.basis.degrees))

    def run_all(self, replicates: list[PairResiduals], begin: float, end: float, what: str) -> list[Best]:
        """Search with several residuals at once; they share the blocks."""
        scale = self.residuals.scale
        weights = np.stack([one.values * scale for one in replicates]).astype(np.float32)
        variance = (scale**2).astype(np.float32)

        def tell(done: int, total: int) -> None:
            if self.progress is not None:
                self.progress(begin + (end - begin) * done / total, what)

        work = None if self.make_work is None else self.make_work(self.blocks, weights, variance, self.n_kept)
        return search_all(self.blocks, weights, variance, self.basis.n_columns, self.n_kept, self.run, tell, work)


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
