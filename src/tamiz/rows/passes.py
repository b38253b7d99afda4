"""Read a table of any size in passes: exact statistics of its columns, and uniform samples of its rows.

Each pass is a map over blocks and a reduction. A row belongs to a sample if a seeded hash of its number is small enough, so that
samples depend neither on the blocks nor on files, partitions or workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tamiz.errors import SourceError
from tamiz.rows.sources import BlockSource

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_rows(start: int, n_rows: int, seed: int = 0) -> np.ndarray:
    """Hash the numbers of consecutive rows to 64 bits (splitmix64).

    Examples
    --------
    >>> both = hash_rows(0, 10)
    >>> bool((both[4:] == hash_rows(4, 6)).all()), len(set(both.tolist()))
    (True, 10)
    """
    with np.errstate(over="ignore"):
        z = (np.arange(start, start + n_rows, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
        z ^= np.uint64(seed) * _MIX_1 + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))


@dataclass
class TableStatistics:
    """Exact statistics of all columns, of any number of blocks.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    count, mean, variance, minimum, maximum : ndarray
        Number of finite or infinite values (not missing), and their moments and extremes, for each column.
    classes : dict or None
        Number of rows of each value of the target, as long as it has at most ``MAX_CLASSES`` values.
    n_missing_targets : int
        Rows without a target.
    """

    n_rows: int
    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    classes: dict[Any, int] | None = field(default_factory=dict)
    n_missing_targets: int = 0

    @property
    def n_missing(self) -> np.ndarray:
        """Number of missing values of each column."""
        return (self.n_rows - self.count).astype(int)

    def merge(self, other: TableStatistics) -> TableStatistics:
        """Combine the statistics of two sets of rows (Chan, Golub and LeVeque 1979)."""
        count = self.count + other.count
        some = np.maximum(count, 1)
        with np.errstate(invalid="ignore"):  # a column with an infinity has no mean
            delta = np.where(other.count > 0, other.mean - self.mean, 0.0) * (self.count > 0)
            mean = np.where(self.count > 0, self.mean + delta * other.count / some, other.mean)
            between = delta**2 * self.count * other.count / some
            spread = self.variance * self.count + other.variance * other.count + between
        classes = None
        if self.classes is not None and other.classes is not None:
            classes = dict(self.classes)
            for value, number in other.classes.items():
                classes[value] = classes.get(value, 0) + number
            classes = classes if len(classes) <= MAX_CLASSES else None
        return TableStatistics(
            self.n_rows + other.n_rows,
            count,
            mean,
            spread / some,
            np.fmin(self.minimum, other.minimum),
            np.fmax(self.maximum, other.maximum),
            classes,
            self.n_missing_targets + other.n_missing_targets,
        )


#: Values of a target that are counted one by one; more are numbers, not classes.
MAX_CLASSES = 1000


def describe_block(rows: np.ndarray, targets: np.ndarray) -> TableStatistics:
    """Compute the statistics of one block.

    Examples
    --------
    >>> found = describe_block(np.array([[1.0, np.nan], [3.0, 5.0]]), np.array(["a", "b"]))
    >>> found.mean.tolist(), found.variance.tolist(), found.n_missing.tolist(), found.classes
    ([2.0, 5.0], [1.0, 0.0], [0, 1], {'a': 1, 'b': 1})
    """
    from tamiz.rows.kernels import column_moments  # loads numba

    found = np.empty((5, rows.shape[1]))
    column_moments(rows.T, found)
    n_missing, classes = 0, None
    if targets.ndim == 1:
        known = targets == targets
        if targets.dtype == object:
            known &= np.array([value is not None for value in targets])
        n_missing = int(len(targets) - known.sum())
        values, numbers = np.unique(targets[known], return_counts=True)
        if len(values) <= MAX_CLASSES:
            classes = dict(zip(values.tolist(), numbers.tolist()))
    count, mean, variance, low, high = found
    return TableStatistics(len(rows), count, mean, variance, low, high, classes, n_missing)


@dataclass(frozen=True)
class PassRecord:
    """What one pass read: columns, rows of the table, rows that were kept, and bytes."""

    what: str
    n_columns: int
    n_rows: int
    n_sampled: int
    n_bytes: int


@dataclass(frozen=True)
class Sample:
    """Rows of a table: their values, targets and numbers, in ascending order."""

    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    statistics: TableStatistics
    record: PassRecord


def read_sample(
    source: BlockSource,
    n_rows: int,
    columns: Sequence[int] | None = None,
    *,
    seed: int = 0,
    what: str = "sample",
    progress: Callable[[int], None] | None = None,
) -> Sample:
    """Draw the ``n_rows`` rows with the smallest hash, with statistics of all rows, in one pass.

    Parameters
    ----------
    source : BlockSource
        The table.
    n_rows : int
        Rows to keep; all if there are no more.
    columns : sequence of int or None, default=None
        Columns to read; None reads all.
    seed : int, default=0
        Seed of the hash.
    what : str, default="sample"
        Name of the pass in its record.
    progress : callable or None, default=None
        Called with the number of rows of each block that was read; what it raises ends the pass.

    Returns
    -------
    Sample

    Examples
    --------
    >>> from tamiz.rows.sources import in_blocks
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> sample = read_sample(in_blocks(X, np.arange(10) % 2), 4)
    >>> sample.X.shape, sample.statistics.n_rows, (X[sample.rows] == sample.X).all()
    ((4, 2), 10, np.True_)
    """
    known = source.n_rows
    # With the slack hardly ever too few rows pass; if so, a second pass takes them all.
    share = 1.0 if known is None else min(1.0, (n_rows + 8 * n_rows**0.5 + 40) / max(1, known))
    sample = _read_share(source, n_rows, share, columns, seed, what, progress)
    if len(sample.rows) < min(n_rows, sample.statistics.n_rows):
        sample = _read_share(source, n_rows, 1.0, columns, seed, what, progress)
    if known is not None and sample.statistics.n_rows != known:
        raise SourceError(
            f"The table had {known:,} rows and has {sample.statistics.n_rows:,} now: it changes while it is read."
        )
    return sample


def _read_share(
    source: BlockSource,
    n_rows: int,
    share: float,
    columns: Sequence[int] | None,
    seed: int,
    what: str,
    progress: Callable[[int], None] | None,
) -> Sample:
    reservoir, statistics, n_bytes = Reservoir(n_rows), None, 0
    for found, part in source.map_blocks(partial(_sample_block, seed=seed, share=share), columns):
        statistics = found if statistics is None else statistics.merge(found)
        reservoir.add(*part)
        n_bytes += found.n_rows * len(found.mean) * part[0].itemsize
        if progress is not None:
            progress(found.n_rows)
    if statistics is None or not statistics.n_rows:
        raise SourceError("The table has no rows.")
    X, y, rows = reservoir.sample()
    return Sample(X, y, rows, statistics, PassRecord(what, X.shape[1], statistics.n_rows, len(rows), n_bytes))


class Reservoir:
    """Keep the ``n_rows`` rows with the smallest hashes of all that are added, in any order."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._n_kept = 0

    def add(self, X: np.ndarray, y: np.ndarray, rows: np.ndarray, hashes: np.ndarray) -> None:
        """Add rows with their targets, numbers and hashes."""
        self._parts.append((X, y, rows, hashes))
        self._n_kept += len(rows)
        if self._n_kept > 2 * self.n_rows:  # rows that can no longer belong to the sample leave before memory fills
            self._trim()

    def _trim(self) -> None:
        joined = [np.concatenate([part[k] for part in self._parts]) for k in range(4)]
        if len(joined[2]) > self.n_rows:
            chosen = np.sort(np.argpartition(joined[3], self.n_rows)[: self.n_rows])
            joined = [values[chosen] for values in joined]
        self._parts, self._n_kept = [tuple(joined)], len(joined[2])

    def targets(self) -> list[Any]:
        """List the values of the targets that are kept."""
        return sorted({value for part in self._parts for value in part[1].tolist()})

    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, targets and numbers, in the order of the numbers."""
        self._trim()
        X, y, rows, _ = self._parts[0]
        order = np.argsort(rows, kind="stable")
        return (X, y, rows) if (order == np.arange(len(rows))).all() else (X[order], y[order], rows[order])


def _sample_block(
    rows: np.ndarray, targets: np.ndarray, start: int, *, seed: int, share: float
) -> tuple[TableStatistics, tuple[np.ndarray, ...]]:
    """Describe a block and take its rows whose hash is in the lowest ``share`` of all hashes."""
    hashes = hash_rows(start, len(rows), seed)
    chosen = np.flatnonzero(hashes <= np.uint64(share * (2**64 - 2048))) if share < 1 else np.arange(len(rows))
    return describe_block(rows, targets), (rows[chosen], targets[chosen], start + chosen, hashes[chosen])
