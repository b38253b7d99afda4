"""Tables that are read in blocks of rows: arrays on disk, sparse matrices, scanned files, Dask collections.

A source maps a function over its blocks, in the order of the rows, with the columns that are asked for and the target; it holds
no rows itself. Files and lazy frames are read by polars, collections by Dask, where they lie.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from tamiz._utils.extras import require
from tamiz._utils.names import suggest
from tamiz.errors import SourceError

Result = TypeVar("Result")
#: Called with the rows of a block (n, columns), their targets (n,) and the number of the first row.
BlockFunction = Callable[[np.ndarray, np.ndarray, int], Result]
#: Bytes of a block; measured on Parquet of 100 columns, blocks of 8 to 80 MB take about the same time.
BLOCK_BYTES = 32_000_000
#: Suffixes of files that polars scans; a folder is searched for them.
SCANNED = (".parquet", ".pq", ".csv", ".tsv", ".ipc", ".arrow", ".feather", ".ndjson", ".jsonl")


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
    if isinstance(X, (str, os.PathLike)) or kind.startswith(("polars.lazyframe", "pyarrow._dataset")):
        return _FrameSource(X, y)
    if kind.startswith(("dask.", "dask_expr.")):
        return _DaskSource(X, y)
    is_array = hasattr(X, "shape") and len(X.shape) == 2 and hasattr(X, "dtype") and hasattr(X, "__getitem__")
    if isinstance(X, np.memmap) or (is_array and kind.startswith(("h5py.", "zarr."))):
        return _ArraySource(X, y)
    return None


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
        step = max(1, BLOCK_BYTES // (8 * self.n_columns))
        for start in range(0, n_rows, step):
            block = self._X[start : start + step]
            if sp.issparse(block):
                block = (block if columns is None else block[:, columns]).toarray()
            elif columns is not None:
                block = np.asarray(block)[:, columns]
            yield function(_numbers(np.asarray(block)), self._y[start : start + step], start)


class _FrameSource:
    """Files and lazy frames, scanned by polars: only the wanted columns are read."""

    def __init__(self, X: Any, y: Any) -> None:
        self._frame, is_text = _scan(X)
        schema = self._frame.collect_schema()
        self._target = y if isinstance(y, str) else None
        self._y = None if isinstance(y, str) else np.asarray(y)
        if self._target is not None and self._target not in schema:
            raise SourceError(f"There is no column {self._target!r}{suggest(self._target, list(schema))}")
        names = [name for name in schema if name != self._target]
        self.names: list[str] | None = names
        text = [name for name in names if not (schema[name].is_numeric() or str(schema[name]) == "Boolean")]
        if text:
            raise SourceError(
                f"Column {text[0]!r} holds {schema[text[0]]}, not numbers ({len(text)} such). Use tamiz.select, which encodes "
                "them, or leave them out."
            )
        self.n_columns = len(names)
        # Parquet and IPC tell the number in their footers; of text it would take a pass.
        self.n_rows: int | None = None if is_text else _count(self._frame)

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        assert self.names is not None
        names = self.names if columns is None else [self.names[column] for column in columns]
        wanted = names if self._target is None else [*names, self._target]
        start, step = 0, max(1, BLOCK_BYTES // (4 * max(1, len(wanted))))
        for batch in _batches(self._frame.select(wanted), step):
            block = batch.select(names).to_numpy()
            stop = start + len(batch)
            if self._y is not None:
                targets = self._y[start:stop]
                if len(targets) < len(batch):
                    raise SourceError(f"y has {len(self._y):,} values, and the table has more rows.")
            else:
                targets = batch[self._target].to_numpy()
            yield function(_numbers(block), targets, start)
            start = stop
        if self._y is not None and start != len(self._y):
            raise SourceError(f"y has {len(self._y):,} values, and there are {start:,} rows.")


def _batches(frame: Any, n_rows: int) -> Iterator[Any]:
    from polars.exceptions import PolarsError

    try:
        yield from frame.collect_batches(chunk_size=n_rows, maintain_order=True)
    except PolarsError as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"The table cannot be read to its end, or changes while it is read: {reason}") from None


def _count(frame: Any) -> int:
    import polars as pl

    return int(frame.select(pl.len()).collect().item())


def _scan(X: Any) -> tuple[Any, bool]:
    """Open a lazy frame; the second value tells whether it is text, of which the number of rows is not known."""
    pl = require("polars", "cli", "reading files in blocks")
    if isinstance(X, pl.LazyFrame):
        return X, True
    if not isinstance(X, (str, os.PathLike)):
        return pl.scan_pyarrow_dataset(X), False
    path = os.fspath(X)
    files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path]
    if os.path.isdir(path):
        files = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if name.lower().endswith(SCANNED)
        )
    if not files or not os.path.exists(files[0]):
        raise SourceError(f"There is no file {path}." if not glob.has_magic(path) else f"No file matches {path}.")
    suffix = os.path.splitext(files[0])[1].lower()
    scans = {
        **dict.fromkeys((".parquet", ".pq"), pl.scan_parquet),
        ".csv": pl.scan_csv,
        ".tsv": partial(pl.scan_csv, separator="\t"),
        **dict.fromkeys((".ipc", ".arrow", ".feather"), pl.scan_ipc),
        **dict.fromkeys((".ndjson", ".jsonl"), pl.scan_ndjson),
    }
    if suffix not in scans:
        raise SourceError(f"{path} cannot be read in blocks; write it as Parquet, CSV, IPC or NDJSON.")
    schemas = {file: scans[suffix](file).collect_schema() for file in files}
    for file, schema in schemas.items():
        if schema != schemas[files[0]]:
            raise SourceError(f"{file} has other columns or types than {files[0]}: write all files with one schema.")
    return scans[suffix](files), suffix not in (".parquet", ".pq", ".ipc", ".arrow", ".feather")


class _DaskSource:
    """Dask arrays and data frames: each partition is a block, and functions run where it lies."""

    def __init__(self, X: Any, y: Any) -> None:
        is_frame = hasattr(X, "columns")
        if isinstance(y, str):
            if not is_frame or y not in X.columns:
                raise SourceError(f"There is no column {y!r} in the Dask collection.")
            X, y = X[[name for name in X.columns if name != y]], X[y]
        self.names = [str(name) for name in X.columns] if is_frame else None
        self.n_columns = len(self.names) if self.names is not None else int(X.shape[1])
        rows = X.to_delayed() if is_frame else X.rechunk({1: -1}).to_delayed().ravel()
        if hasattr(y, "to_delayed"):
            targets = y.to_delayed() if not hasattr(y, "chunks") else y.to_delayed().ravel()
        else:
            targets = None
            self._y = np.asarray(y)
        if targets is not None and len(targets) != len(rows):
            raise SourceError(f"X has {len(rows)} partitions and y has {len(targets)}: repartition them alike.")
        self._rows, self._targets = list(rows), None if targets is None else list(targets)
        dask = require("dask", "dask", "Dask collections")
        lengths = dask.compute(*(dask.delayed(len)(part) for part in self._rows))
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist()
        self.n_rows = self._starts[-1]
        if targets is None and len(self._y) != self.n_rows:
            raise SourceError(f"y has {len(self._y):,} values, and there are {self.n_rows:,} rows.")

    def map_blocks(self, function: BlockFunction[Result], columns: Sequence[int] | None = None) -> Iterator[Result]:
        import dask

        pairs = zip(self._starts, self._starts[1:])
        tasks = [
            dask.delayed(_apply)(
                function,
                rows,
                self._targets[k] if self._targets is not None else self._y[start:stop],
                start,
                None if columns is None else list(columns),
            )
            for k, (rows, (start, stop)) in enumerate(zip(self._rows, pairs, strict=True))
            if stop > start
        ]
        yield from dask.compute(*tasks)


def _apply(function: Any, rows: Any, targets: Any, start: int, columns: list[int] | None) -> Any:
    """Call a function of a block on a partition, wherever it lies."""
    if hasattr(rows, "iloc"):
        rows = rows if columns is None else rows.iloc[:, columns]
        block = rows.to_numpy()
    else:
        block = np.asarray(rows) if columns is None else np.asarray(rows)[:, columns]
    if len(targets) != len(block):
        raise SourceError(f"A partition has {len(block):,} rows and {len(targets):,} targets: repartition them alike.")
    return function(_numbers(block), np.asarray(targets), start)


def _numbers(block: np.ndarray) -> np.ndarray:
    """Convert a block to float32 or float64; the type of a partition must not decide which rows are kept."""
    if block.dtype in (np.float32, np.float64):
        return block
    try:
        return block.astype(np.float64)
    except (TypeError, ValueError):
        raise SourceError(f"A block holds {block.dtype}, not numbers: encode or leave out these columns.") from None
