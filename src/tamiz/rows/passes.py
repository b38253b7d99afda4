"""Read a table of any size in passes: exact statistics of its columns, and uniform samples of its rows.

Each pass is a map over blocks and a reduction. A row belongs to a sample if a seeded hash of its number is small enough, so that
samples depend neither on the blocks nor on files, partitions or workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tamiz.errors import SourceError
from tamiz.rows.sources import BlockSource

#: Values of a target or of a column of text that are counted one by one.
MAX_CLASSES = 1000
Counts = dict[Any, int] | None
_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_rows(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Hash numbers of rows to 64 bits (splitmix64).

    Examples
    --------
    >>> hashes = hash_rows(np.arange(10))
    >>> bool((hashes[4:] == hash_rows(np.arange(4, 10))).all()), len(set(hashes.tolist()))
    (True, 10)
    """
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN
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
    levels : dict of str to (dict or None)
        Number of rows of each value of the columns of text; None for more than ``MAX_CLASSES`` values.
    """

    n_rows: int
    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    classes: Counts = field(default_factory=dict)
    n_missing_targets: int = 0
    levels: dict[str, Counts] = field(default_factory=dict)

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
        return TableStatistics(
            self.n_rows + other.n_rows,
            count,
            mean,
            spread / some,
            np.fmin(self.minimum, other.minimum),
            np.fmax(self.maximum, other.maximum),
            _add_counts(self.classes, other.classes),
            self.n_missing_targets + other.n_missing_targets,
            {name: _add_counts(counts, other.levels.get(name, {})) for name, counts in self.levels.items()},
        )


def _add_counts(one: Counts, other: Counts) -> Counts:
    if one is None or other is None:
        return None
    total = Counter(one) + Counter(other)
    return dict(total) if len(total) <= MAX_CLASSES else None


def describe_block(rows: Any, targets: np.ndarray | None) -> TableStatistics:
    """Compute the statistics of one block; of a data frame only the levels of its columns of text.

    Examples
    --------
    >>> found = describe_block(np.array([[1.0, np.nan], [3.0, 5.0]]), np.array(["a", "b"]))
    >>> found.mean.tolist(), found.variance.tolist(), found.n_missing.tolist(), found.classes
    ([2.0, 5.0], [1.0, 0.0], [0, 1], {'a': 1, 'b': 1})
    """
    from tamiz.rows.kernels import column_moments  # loads numba

    n_missing, classes, levels = 0, None, {}
    if targets is not None and targets.ndim == 1:
        known = targets == targets
        if targets.dtype == object:
            known &= np.array([value is not None for value in targets], dtype=bool)
        n_missing, classes = int(len(targets) - known.sum()), _count_values(targets[known])
    if isinstance(rows, np.ndarray):
        found = np.empty((5, rows.shape[1]))
        column_moments(rows.T, found)
    else:
        found = np.empty((5, 0))
        for column in rows:
            if str(column.dtype).startswith(("String", "Categorical", "Enum")):
                levels[column.name] = _count_levels(column.cast(str).str.strip_chars().drop_nulls())
    count, mean, variance, low, high = found
    return TableStatistics(len(rows), count, mean, variance, low, high, classes, n_missing, levels)


def _count_values(values: np.ndarray) -> Counts:
    found, numbers = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), numbers.tolist())) if len(found) <= MAX_CLASSES else None


def _count_levels(column: Any) -> Counts:
    if column.head(5000).n_unique() > MAX_CLASSES:  # numbers that are spelt out, or identifiers
        return None
    found = column.value_counts()
    return dict(found.iter_rows()) if len(found) <= MAX_CLASSES else None


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
    """Rows of a table: their values (an array or a polars frame), targets and numbers, in ascending order."""

    X: Any
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
    progress: Callable[[str, int, int], None] | None = None,
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
        Called after each block with ("reading rows", bytes so far, all bytes), where the number of rows is known; what it
        raises ends the pass.

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
    for part in (share, 1.0):
        reservoir, statistics, n_bytes = Reservoir(n_rows), None, 0
        for found, rows, size in source.map_blocks(partial(_sample_block, seed=seed, share=part), columns):
            statistics = found if statistics is None else statistics.merge(found)
            reservoir.add(*rows)
            n_bytes += size
            if progress is not None and known:
                progress("reading rows", n_bytes, max(n_bytes, n_bytes * known // max(1, statistics.n_rows)))
        n_found = 0 if statistics is None else statistics.n_rows
        if known is not None and n_found != known:
            raise SourceError(f"The table had {known:,} rows and has {n_found:,} now: it changes while it is read.")
        if statistics is None or not n_found:
            raise SourceError("The table has no rows.")
        X, y, numbers = reservoir.sample()
        record = PassRecord(what, X.shape[1], statistics.n_rows, len(numbers), n_bytes)
        sample = Sample(X, y, numbers, statistics, record)
        if len(numbers) >= min(n_rows, statistics.n_rows):
            break
    return sample


class Reservoir:
    """Keep the ``n_rows`` rows with the smallest hashes of all that are added, in any order."""

    def __init__(self, n_rows: int, seed: int = 0) -> None:
        self.n_rows, self._seed, self.n_seen, self._n_kept = n_rows, seed, 0, 0
        self._parts: list[tuple[Any, ...]] = []

    def push(self, X: Any, y: np.ndarray) -> None:
        """Add the next rows of a stream."""
        rows = np.arange(self.n_seen, self.n_seen + len(X))
        self.add(X, y, rows, hash_rows(rows, self._seed))
        self.n_seen += len(X)

    def add(self, X: Any, y: np.ndarray, rows: np.ndarray, hashes: np.ndarray) -> None:
        """Add rows with their targets, numbers and hashes."""
        self._parts.append((X, y, rows, hashes))
        self._n_kept += len(rows)
        if self._n_kept > 2 * self.n_rows:  # rows that can no longer belong to the sample leave before memory fills
            self._trim()

    def _trim(self) -> None:
        stack = np.concatenate if isinstance(self._parts[0][0], np.ndarray) else join_frames
        rows, *others = zip(*self._parts, strict=True)
        joined = [stack(rows), *map(np.concatenate, others)]
        if len(joined[2]) > self.n_rows:
            chosen = np.sort(np.argpartition(joined[3], self.n_rows)[: self.n_rows])
            joined = [values[chosen] for values in joined]
        self._parts, self._n_kept = [tuple(joined)], len(joined[2])

    def targets(self) -> list[Any]:
        """List the values of the targets that are kept."""
        return sorted({value for part in self._parts for value in part[1].tolist()})

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, targets and numbers, in the order of the numbers."""
        self._trim()
        X, y, rows, _ = self._parts[0]
        order = np.argsort(rows, kind="stable")
        return (X, y, rows) if (order == np.arange(len(rows))).all() else (X[order], y[order], rows[order])


def join_frames(parts: Sequence[Any]) -> Any:
    """Stack polars frames of the same columns; types of numbers may differ, and a part without values has no type.

    Examples
    --------
    >>> import polars as pl
    >>> join_frames([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [None]}), pl.DataFrame({"a": [2.5]})])["a"].to_list()
    [1.0, None, 2.5]
    >>> join_frames([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": ["x"]})])
    Traceback (most recent call last):
    tamiz.errors.SourceError: Parts of the table have other columns or types: 'a' is Int64 and String.
    """
    import polars as pl

    kinds: dict[str, Any] = {}
    for name, kind in ((name, kind) for part in parts for name, kind in part.schema.items() if kind != pl.Null):
        if (kinds.setdefault(name, kind) == pl.String) != (kind == pl.String):  # would become text
            raise SourceError(f"Parts of the table have other columns or types: {name!r} is {kinds[name]} and {kind}.")
    try:
        return pl.concat(parts, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise SourceError(f"Parts of the table have other columns or types: {str(error).splitlines()[0]}") from None


def _sample_block(
    rows: Any, targets: np.ndarray | None, start: int, *, seed: int, share: float
) -> tuple[TableStatistics, tuple[Any, ...], int]:
    """Describe a block and take its rows whose hash is in the lowest ``share`` of all hashes; tell its bytes."""
    numbers = np.arange(start, start + len(rows))
    hashes = hash_rows(numbers, seed)
    chosen = np.flatnonzero(hashes <= np.uint64(share * (2**64 - 2048))) if share < 1 else np.arange(len(rows))
    size = rows.nbytes if isinstance(rows, np.ndarray) else int(rows.estimated_size())
    kept = np.zeros(chosen.size) if targets is None else targets[chosen]
    return describe_block(rows, targets), (rows[chosen], kept, numbers[chosen], hashes[chosen]), size
