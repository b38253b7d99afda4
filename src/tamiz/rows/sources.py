"""Tables that are read in blocks of rows: arrays on disk, sparse matrices, scanned files, Dask collections.

A source maps a function over its blocks, in the order of the rows, with the columns that are asked for and the target; it holds
no rows itself. Files and lazy frames are read by polars, collections by Dask, where they lie.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from tamiz._utils.extras import active_client, require
from tamiz._utils.text import suggest
from tamiz.errors import SourceError

Result = TypeVar("Result")
#: Called with the rows of a block (n, columns), their targets (n,) and the number of the first row.
BlockFunction = Callable[[Any, Any, int], Result]
#: Bytes of a block; measured on Parquet of 100 columns, blocks of 8 to 80 MB take about the same time.
BLOCK_BYTES = 32_000_000
#: Endings of files that tell the number of their rows.
_COUNTED = (".parquet", ".pq", ".ipc", ".arrow", ".feather")
#: Endings of files that do not, and of all that polars scans; a folder is searched for them.
TEXT = (".csv", ".tsv", ".ndjson", ".jsonl")
SCANNED = (*_COUNTED, *TEXT)


class BlockSource(Protocol):
    """Any table that is read in blocks.

    Attributes
    ----------
    n_columns : int
        Number of columns, without the target.
    n_rows : int or None
        Number of rows where it is known without reading them.
    names : list of str or None
        Names of the columns.
    """

    n_columns: int
    n_rows: int | None
    names: list[str] | None

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield ``function(rows, targets, start)`` for each block in the order of the rows.

        Parameters
        ----------
        function : callable
            Gets the rows of the block with the wanted columns, their targets, and the number of the first row.
        columns : sequence of int or None, default=None
            Columns to read, ascending; None reads all.
        """


def as_source(X: Any, y: Any) -> BlockSource | None:
    """Wrap a table that need not fit into memory; None for tables that are in memory as a whole.

    Parameters
    ----------
    X : object
        A :class:`BlockSource`, ``np.memmap``, an array with ``shape`` and slices (HDF5, Zarr), a path, glob or folder of Parquet,
        CSV, IPC or NDJSON files, a ``polars.LazyFrame``, a pyarrow Dataset, or a Dask array or data frame.
    y : array-like, str or Dask collection
        Target: values, or the name of a column of ``X``.

    Examples
    --------
    >>> as_source(np.zeros((3, 2)), [0, 1, 0]) is None
    True
    """
    if callable(getattr(X, "map_blocks", None)) and hasattr(X, "n_columns"):
        return X
    kind = f"{type(X).__module__}.{type(X).__name__}"
    if isinstance(X, (str, os.PathLike)):
        files = find_files(X)
        frame = scan_files(files)
        return _FrameSource(frame, y, count_rows(frame) if files[0].endswith(_COUNTED) else None, files)
    if kind.startswith("polars.lazyframe"):
        return _FrameSource(X, y)
    if kind.startswith("pyarrow._dataset"):
        frame = require("polars", "cli", "reading datasets").scan_pyarrow_dataset(X)
        return _FrameSource(frame, y, count_rows(frame))
    if kind.startswith(("dask.", "dask_expr.")):
        return _DaskSource(X, y)
    is_array = hasattr(X, "shape") and len(X.shape) == 2 and hasattr(X, "dtype") and hasattr(X, "__getitem__")
    if isinstance(X, np.memmap) or (is_array and kind.startswith(("h5py.", "zarr."))):
        return _ArraySource(X, y)
    return None


def as_frames(X: Any, target: str, n_rows: int | None = None, files: Sequence[str] = ()) -> BlockSource:
    """Read a ``polars.LazyFrame`` or a Dask data frame in blocks that are polars frames, text and target included."""
    if hasattr(X, "dask"):
        return _DaskSource(X, target, whole=True)
    return _FrameSource(X, target, n_rows, files, whole=True)


def in_blocks(X: Any, y: Any) -> BlockSource:
    """Read a matrix in memory, dense or sparse (CSR), block by block."""
    return _ArraySource(X.tocsr() if sp.issparse(X) else X, y)


class _ArraySource:
    def __init__(self, X: Any, y: Any) -> None:
        if isinstance(y, str):
            raise SourceError(f"An array has no column {y!r}: give the values of the target as y.")
        self._X, self._y = X, np.asarray(y)
        if len(self._y) != X.shape[0]:
            raise SourceError(f"y has {len(self._y):,} values, and there are {X.shape[0]:,} rows.")
        self.n_columns = int(X.shape[1])
        self.n_rows: int | None = int(X.shape[0])
        self.names: list[str] | None = None

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        n_rows = self._X.shape[0]
        step = max(1, BLOCK_BYTES // (32 * self.n_columns))  # 8 MB: rows that lie together are read column by column
        for start in range(0, n_rows, step):
            block = self._X[start : start + step]
            block = block.toarray() if sp.issparse(block) else np.asarray(block)
            block = block if columns is None else block[:, columns]
            yield function(_numbers(block), self._y[start : start + step], start)


class _FrameSource:
    """Files and lazy frames, scanned by polars: only the wanted columns are read.

    With ``whole``, blocks are frames of all columns, with text and the target among them. While a Dask client is active, its
    workers read the blocks of tables whose number of rows is known.
    """

    def __init__(
        self, frame: Any, y: Any, n_rows: int | None = None, files: Sequence[str] = (), *, whole: bool = False
    ) -> None:
        self._frame, self._whole, self.n_rows = frame, whole, n_rows
        self._stamps = {file: _stamp(file) for file in files}
        schema = frame.collect_schema()
        self._target = y if isinstance(y, str) else None
        self._y = None if isinstance(y, str) or y is None else np.asarray(y)
        if self._target is not None and self._target not in schema:
            raise SourceError(f"There is no column {self._target!r}{suggest(self._target, list(schema))}")
        names = [name for name in schema if whole or name != self._target]
        text = [name for name in names if not (whole or schema[name].is_numeric() or str(schema[name]) == "Boolean")]
        if text:
            raise SourceError(
                f"Column {text[0]!r} holds {schema[text[0]]}, not numbers ({len(text)} such). Use tamiz.select, which encodes "
                "them, or leave them out."
            )
        self.names: list[str] | None = names
        self.n_columns = len(names)

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        assert self.names is not None
        for file, stamp in self._stamps.items():
            if _stamp(file) != stamp:
                raise SourceError(f"{file} has changed since it was opened: a table must not change while it is read.")
        names = self.names if columns is None else [self.names[column] for column in columns]
        wanted = list(dict.fromkeys(names if self._target is None else [*names, self._target]))
        frame, step = self._frame.select(wanted), max(1, BLOCK_BYTES // (4 * max(1, len(wanted))))
        target, whole, client, start = self._target, self._whole, active_client(), 0

        def call(batch: Any, start: int, targets: Any = None) -> Result:
            rows = batch.select(names)
            targets = targets if target is None else batch[target].to_numpy()
            return function(rows if whole else _numbers(rows.to_numpy()), targets, start)

        if client is not None and self.n_rows is not None and self._y is None:
            # Slices of half a block and more are read without what is before them.
            starts = range(0, self.n_rows, step)
            for future in client.map(lambda at: call(frame.slice(at, step).collect(), at), starts, pure=False):
                yield future.result()
            return
        for batch in _batches(frame, step):
            targets = None if self._y is None else self._y[start : start + len(batch)]
            if targets is not None and len(targets) < len(batch):
                raise SourceError(f"y has {len(targets) + start:,} values, and the table has more rows.")
            yield call(batch, start, targets)
            start += len(batch)
        if self._y is not None and start != len(self._y):
            raise SourceError(f"y has {len(self._y):,} values, and there are {start:,} rows.")


def _stamp(file: str) -> tuple[int, int] | None:
    return (os.stat(file).st_mtime_ns, os.stat(file).st_size) if os.path.exists(file) else None


def _batches(frame: Any, n_rows: int) -> Iterator[Any]:
    from polars.exceptions import PolarsError

    try:
        yield from frame.collect_batches(chunk_size=n_rows, maintain_order=True)
    except PolarsError as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"The table cannot be read to its end, or changes while it is read: {reason}") from None


def count_rows(frame: Any) -> int:
    """Count the rows of a lazy frame; Parquet and IPC files tell the number in their footers."""
    import polars as pl

    return int(frame.select(pl.len()).collect().item())


def find_files(path: str | os.PathLike[str]) -> list[str]:
    """List the files of a path, a pattern or a folder, sorted; raise if there are none.

    Examples
    --------
    >>> find_files("no-such-folder/*.parquet")
    Traceback (most recent call last):
    tamiz.errors.SourceError: No file matches no-such-folder/*.parquet.
    """
    path = os.fspath(path)
    pattern = os.path.join(path, "**") if os.path.isdir(path) else path
    if not glob.has_magic(pattern) or os.path.isfile(path):
        if not os.path.exists(path) and "://" not in path:
            raise SourceError(f"There is no file {path}.")
        return [path]
    files = sorted(file for file in glob.glob(pattern, recursive=True) if file.lower().endswith(SCANNED))
    if not files:
        raise SourceError(f"No file matches {path}." if pattern == path else f"There is no table in the folder {path}.")
    return files


def scan_files(files: Sequence[str]) -> Any:
    """Open files of one ending and one schema as one lazy frame."""
    pl = require("polars", "cli", "reading files in blocks")
    suffix = os.path.splitext(files[0])[1].lower()
    if suffix not in SCANNED:
        raise SourceError(f"{files[0]} cannot be read in blocks; write it as Parquet, CSV, IPC or NDJSON.")
    parquet, tsv = dict.fromkeys((".parquet", ".pq"), pl.scan_parquet), partial(pl.scan_csv, separator="\t")
    text = {".csv": pl.scan_csv, ".tsv": tsv, **dict.fromkeys((".ndjson", ".jsonl"), pl.scan_ndjson)}
    scan = {**parquet, **text}.get(suffix, pl.scan_ipc)
    try:
        schemas = {file: scan(file).collect_schema() for file in files}
    except pl.exceptions.PolarsError as error:
        raise SourceError(f"{files[0]} cannot be read: {str(error).splitlines()[0]}") from None
    first = schemas[files[0]]
    for file, schema in schemas.items():
        if schema != first:
            other = next((name for name in {**first, **schema} if first.get(name) != schema.get(name)), "their order")
            raise SourceError(
                f"{file} has other columns or types than {files[0]} (first: {other}): write all files with one schema."
            )
    return scan(list(files))


class _DaskSource:
    """Dask arrays and data frames: each partition is a block, and functions run where it lies."""

    def __init__(self, X: Any, y: Any, *, whole: bool = False) -> None:
        dask, is_frame = require("dask", "dask", "Dask collections"), hasattr(X, "columns")
        if isinstance(y, str):
            if not is_frame or y not in X.columns:
                raise SourceError(f"There is no column {y!r} in the Dask collection.")
            X, y = (X if whole else X[[name for name in X.columns if name != y]]), X[y]
        self._whole = whole
        self.names = [str(name) for name in X.columns] if is_frame else None
        self.n_columns = len(self.names) if self.names is not None else int(X.shape[1])
        self._rows = list(X.to_delayed() if is_frame else X.rechunk({1: -1}).to_delayed().ravel())
        lengths = dask.compute(*(dask.delayed(len)(part) for part in self._rows))
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist()
        self.n_rows: int | None = self._starts[-1]
        if hasattr(y, "to_delayed"):
            self._targets = list(np.ravel(y.to_delayed()))
            if len(self._targets) != len(self._rows):
                raise SourceError(
                    f"X has {len(self._rows)} partitions and y has {len(self._targets)}: repartition them alike."
                )
            return
        y = np.asarray(y)
        if len(y) != self.n_rows:
            raise SourceError(f"y has {len(y):,} values, and there are {self.n_rows:,} rows.")
        self._targets = [y[start:stop] for start, stop in itertools.pairwise(self._starts)]

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        import dask

        call = dask.delayed(_call_on_partition)
        tasks = [
            call(function, rows, targets, start, slice(None) if columns is None else list(columns), self._whole)
            for rows, targets, start, stop in zip(self._rows, self._targets, self._starts, self._starts[1:])
            if stop > start
        ]
        yield from dask.compute(*tasks)


def _call_on_partition(function: Any, rows: Any, targets: Any, start: int, columns: Any, whole: bool) -> Any:
    if len(targets) != len(rows):
        raise SourceError(f"A partition has {len(rows):,} rows and {len(targets):,} targets: repartition them alike.")
    rows = rows.iloc[:, columns] if hasattr(rows, "iloc") else np.asarray(rows)[:, columns]
    rows = require("polars", "cli", "Dask data frames").from_pandas(rows) if whole else _numbers(np.asarray(rows))
    return function(rows, np.asarray(targets), start)


def _numbers(block: np.ndarray) -> np.ndarray:
    """Convert a block to float32 or float64; the type of a partition must not decide which rows are kept."""
    if block.dtype in (np.float32, np.float64):
        return block
    try:
        return block.astype(np.float64)
    except (TypeError, ValueError):
        raise SourceError(f"A block holds {block.dtype}, not numbers: encode or leave out these columns.") from None
