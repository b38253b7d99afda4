"""Find strong pairs among very many columns in nearly linear time, by matching signs on a few random rows.

The idea is that of the xyz algorithm (Thanei, Meinshausen and Shah 2018, *The xyz algorithm for fast interaction search in
high-dimensional data*). Write s for the signs of the functions of a column and t for the sign of the residual. Two columns act
together if s_i s_j = t on many rows, that is, if s_j agrees with t s_i. On m random rows they agree everywhere with probability
g^m, where g is the share of rows on which they agree; columns that have nothing to do with each other do so with probability
2^-m. So all columns are put into buckets by their m signs, and only columns in the same bucket are compared, on all
rows. That costs a time proportional to the number of columns, and is repeated with other rows. Rows are drawn in proportion to
the size of their residual. What is found is judged exactly, as in the full search.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from tamiz.pairs.basis import Basis, make_basis
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.evidence import ColumnTests, PairEvidence, PairJudge
from tamiz.pairs.full import Evidence, Progress, count_pairs
from tamiz.pairs.target import PairTarget, TailFit, additive_residuals, residuals_of

# Repetitions for each residual; 1,000 find a pair that agrees on three quarters of the rows with a probability of 95 %.
N_REPETITIONS = 1000
# Agreement that a pair needs on all rows to be judged exactly, in standard deviations.
_SMALLEST_Z = 5.0
_MOST_CANDIDATES = 20_000
_MOST_FITTED = 200


@dataclass(frozen=True, eq=False)
class SketchOutcome:
    """Hold the evidence that a sketch found.

    Parameters
    ----------
    evidence : Evidence
        As in the full search; p values are corrected for the number of all pairs.
    degrees : ndarray of int
        Number of functions of each column.
    note : str
        What the sketch can miss.
    """

    evidence: Evidence
    degrees: np.ndarray
    note: str


@njit(cache=True, nogil=True)
def _count_bits(word):  # pragma: no cover - compiled
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _match(bits, owner, sign_bits, n_rows, rows, smallest, found_i, found_j, found_z):  # pragma: no cover - compiled
    """Compare all planes of signs that agree, or disagree, with each other on all of some rows; return how many were kept."""
    n_planes = bits.shape[0]
    n_bits = rows.shape[0]
    n_keys = 1 << (n_bits - 1)
    every = (1 << n_bits) - 1
    flip = np.int64(0)
    for b in range(n_bits):
        flip |= np.int64((sign_bits[rows[b] >> 6] >> np.uint64(rows[b] & 63)) & np.uint64(1)) << b
    keys = np.empty(n_planes, dtype=np.int64)
    head = np.full(n_keys, -1, dtype=np.int64)
    following = np.empty(n_planes, dtype=np.int64)
    for p in range(n_planes):
        key = np.int64(0)
        for b in range(n_bits):
            key |= np.int64((bits[p, rows[b] >> 6] >> np.uint64(rows[b] & 63)) & np.uint64(1)) << b
        keys[p] = key
    count = 0
    for p in range(n_planes):
        # A key and its complement share a bucket, so that agreement and disagreement are both found.
        key = keys[p]
        if key >= n_keys:
            key = every ^ key
        q = head[key]
        while q >= 0:
            if owner[q] != owner[p] and count < found_i.shape[0]:
                differing = 0
                for word in range(bits.shape[1]):
                    differing += _count_bits(bits[p, word] ^ bits[q, word] ^ sign_bits[word])
                z = abs(n_rows - 2.0 * differing) / np.sqrt(n_rows)
                if z > smallest:
                    found_i[count], found_j[count], found_z[count] = owner[p], owner[q], z
                    count += 1
            q = following[q]
        other = keys[p] ^ flip
        if other >= n_keys:
            other = every ^ other
        following[p] = head[other]
        head[other] = p
    return count


def pack_signs(signs: np.ndarray) -> np.ndarray:
    """Pack booleans of shape (n_planes, n_rows) into words of 64 bits; what is left over is 0.

    Examples
    --------
    >>> pack_signs(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    n_words = -(-signs.shape[1] // 64)
    packed = np.zeros((len(signs), 8 * n_words), dtype=np.uint8)
    short = np.packbits(signs, axis=1, bitorder="little")
    packed[:, : short.shape[1]] = short
    return packed.view(np.dtype("<u8")).astype(np.uint64)


def unpack_signs(bits: np.ndarray, n_rows: int) -> np.ndarray:
    """Undo :func:`pack_signs`."""
    octets = np.ascontiguousarray(bits).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little", count=n_rows).astype(bool)


def _read_planes(
    table: ColumnTable, target: PairTarget, degree: int, n_threads: int, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return packed signs of all functions, the column of each, degrees, and log p values of the columns alone."""
    residuals = residuals_of(target)
    planes, owners = [], []
    degrees = np.zeros(table.n_columns, dtype=np.int64)
    log_p = np.zeros(table.n_columns)
    for start in range(0, table.n_columns, 1024):
        columns = np.arange(start, min(start + 1024, table.n_columns))
        basis = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
        degrees[columns] = basis.degrees
        log_p[columns] = ColumnTests(basis, target.weights).log_p(residuals)
        functions = basis.functions
        if basis.shift is not None:
            functions = functions.toarray() + basis.shift[:, None]
        signs = functions > np.median(functions, axis=1, keepdims=True)
        # Signs that hardly vary agree with each other everywhere: they would fill one bucket.
        useful = np.abs(signs.mean(axis=1) - 0.5) <= 0.3
        planes.append(pack_signs(signs[useful]))
        owners.append(np.repeat(columns, basis.degrees)[useful])
        if progress is not None:
            progress(0.3 * columns[-1] / table.n_columns, "signs")
    return np.concatenate(planes), np.concatenate(owners), degrees, log_p


def _draw_rows(size: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return rows in proportion to a size, each once if all are equal."""
    if np.ptp(size) < 0.01 * size.mean():
        return np.arange(len(size))
    count = 2 * len(size)
    steps = (np.arange(count) + random.random()) / count
    return np.searchsorted(np.cumsum(size) / size.sum(), steps).clip(0, len(size) - 1)


def _candidates(
    bits: np.ndarray,
    owner: np.ndarray,
    residuals: np.ndarray,
    n_samples: int,
    random: np.random.Generator,
    n_threads: int,
    progress: Progress | None,
) -> np.ndarray:
    """Return the pairs that agree best with any of the residuals, shape (n_pairs, 2)."""
    n_bits = int(np.clip(np.ceil(np.log2(max(2, len(bits)))) + 1, 4, 24))
    best: dict[tuple[int, int], float] = {}
    for number, residual in enumerate(residuals):
        rows = _draw_rows(np.abs(residual), random)
        if len(rows) == n_samples:
            drawn = bits
        else:
            drawn = np.concatenate(
                [pack_signs(unpack_signs(bits[s : s + 4096], n_samples)[:, rows]) for s in range(0, len(bits), 4096)]
            )
        sign_bits = pack_signs((residual[rows] > 0)[None])[0]

        def repetition(
            picked: np.ndarray, drawn: np.ndarray = drawn, sign_bits: np.ndarray = sign_bits, n_rows: int = len(rows)
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            i, j = np.empty(_MOST_CANDIDATES, dtype=np.int64), np.empty(_MOST_CANDIDATES, dtype=np.int64)
            z = np.empty(_MOST_CANDIDATES)
            # Rows that were drawn several times say no more than once.
            smallest = _SMALLEST_Z * np.sqrt(n_rows / n_samples)
            count = _match(drawn, owner, sign_bits, n_rows, picked, smallest, i, j, z)
            return i[:count], j[:count], z[:count]

        # Drawn beforehand, so that the number of threads does not change the result.
        picks = [np.sort(random.choice(len(rows), n_bits, replace=False)) for _ in range(N_REPETITIONS)]
        with ThreadPoolExecutor(n_threads) as pool:
            for done, (i, j, z) in enumerate(pool.map(repetition, picks), 1):
                for first, second, value in zip(np.minimum(i, j).tolist(), np.maximum(i, j).tolist(), z.tolist()):
                    best[first, second] = max(value, best.get((first, second), 0.0))
                if len(best) > 4 * _MOST_CANDIDATES:
                    best = dict(sorted(best.items(), key=lambda entry: -entry[1])[:_MOST_CANDIDATES])
                if progress is not None:
                    progress(0.3 + 0.6 * (number + done / N_REPETITIONS) / len(residuals), "sketch")
    strongest = sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_CANDIDATES]
    return np.array([pair for pair, _ in strongest], dtype=np.int64).reshape(-1, 2)


def search_sketch(
    table: ColumnTable,
    target: PairTarget,
    *,
    degree: int,
    random: np.random.Generator,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> SketchOutcome:
    """Find strong pairs without looking at all of them.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    target : PairTarget
        The target.
    degree : int
        Degree of the polynomials.
    random : numpy.random.Generator
        Draws the rows.
    n_threads : int, default=1
        Threads.
    progress : callable or None, default=None
        Told of what is done.
    """
    bits, owner, degrees, marginal = _read_planes(table, target, degree, n_threads, progress)
    strong = np.sort(np.argsort(marginal, kind="stable")[:_MOST_FITTED])
    strong_basis = make_basis(table, target.weights, degree=degree, columns=strong)
    tests = ColumnTests(strong_basis, target.weights)
    residuals = additive_residuals(strong_basis, target, tests.log_p, n_tests=table.n_columns)
    weighted = residuals.values * residuals.scale
    pairs = _candidates(bits, owner, weighted, table.n_samples, random, n_threads, progress)
    columns = np.unique(pairs)
    basis: Basis = make_basis(table, target.weights, degree=degree, columns=columns, n_threads=n_threads)
    if len(pairs):
        evidence = PairJudge(basis, target.weights).judge(np.searchsorted(columns, pairs), residuals)
    else:
        evidence = PairEvidence(np.empty(0), np.empty(0), np.empty((0, 2), dtype=np.int64))
    if progress is not None:
        progress(1.0, "judged")
    n_tests = count_pairs(degrees)
    n_bits = int(np.clip(np.ceil(np.log2(max(2, len(bits)))) + 1, 4, 24))
    sure = (1 - 0.05 ** (1 / N_REPETITIONS)) ** (1 / n_bits)
    note = (
        f"Sketch: not all of the {n_tests:,} pairs were looked at. A pair whose signs agree with those of the target on "
        f"{sure:.0%} of the rows is found with a probability of 95 %; weaker ones, and columns with rare values, can be missed. "
        "P values are corrected for the number of all pairs (Bonferroni). method='full' looks at all."
    )
    whole = Evidence(
        marginal,
        TailFit(float(max(1, int((degrees > 0).sum())))),
        pairs,
        evidence,
        TailFit(float(max(1, n_tests))),
        strong[residuals.fitted],
        n_tests,
        np.full(table.n_columns, -1),
        np.zeros(table.n_columns),
    )
    return SketchOutcome(whole, degrees, note)
