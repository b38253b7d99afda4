"""Read files of one matrix and its target: NPZ (arrays ``X``, ``y``, ``names``) and svmlight."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import list_some
from tamiz.errors import TableArgumentError, TableError, TableMemoryError
from tamiz.tables.formats import unreadable
from tamiz.tables.names import ReadOptions, check_memory, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, TextColumn, load_polars, pack_numbers

#: Name of the target of these files; there is no other.
TARGET = "y"
#: Vectors over all columns that names, statistics and the engine take, in numbers of 8 bytes: names are the most.
_VECTORS = 20


def _matrix_table(
    path: Path, format_name: str, numbers: Any, target: np.ndarray | None, names: list[str], options: ReadOptions
) -> DataTable:
    """Build a table from a matrix and its target, with the columns that the options name."""
    if options.columns is None and options.target not in (None, TARGET):
        raise TableArgumentError(f"The target of a {format_name} file is called {TARGET!r}; leave `target` out.")
    if options.columns is None and options.categorical:
        raise TableArgumentError(f"A {format_name} file holds numbers only: `categorical` does not apply.")
    if numbers.shape[0] == 0:
        raise TableError(f"{path.name} has no rows.")
    column: np.ndarray | TextColumn | None = None
    if target is not None:
        target = target[:, 0] if target.shape == (numbers.shape[0], 1) else target
        if target.shape != (numbers.shape[0],):
            raise TableError(f"y in {path.name} has shape {target.shape}, but X has {numbers.shape[0]:,} rows.")
        if target.dtype.kind not in "USbiuf":
            raise TableError(f"y in {path.name} holds {target.dtype}, neither classes nor numbers.")
        is_text = target.dtype.kind in "US"
        column = TextColumn.from_values(_as_texts(target)) if is_text else target.astype(np.float64)
    chosen = ReadOptions(ignore=options.ignore, roles=options.roles, columns=options.columns)
    kept = np.array(choose_columns(names, chosen)[0], dtype=np.int64)
    numbers = numbers[:, kept] if kept.size < len(names) else numbers
    if not sp.issparse(numbers):
        numbers = pack_numbers(numbers, exact=options.columns is not None)
    table = DataTable(path, format_name, names, numbers.shape[0], numbers, kept)
    table.target_column, table.target_name = column, TARGET
    return table


def _as_texts(target: np.ndarray) -> list[str]:
    texts = np.char.decode(target, "utf-8", "backslashreplace") if target.dtype.kind == "S" else target
    return [str(value).encode("utf-8", "replace").decode() for value in texts]


def _load_npz(path: Path) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Load the arrays X, y and names (None where there is none)."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {one.filename.removesuffix(".npy"): one.file_size for one in archive.infolist()}
        # X becomes float32 or float64 besides; text is read once as an array and once as Python's own.
        check_memory(3.0 * sum(found.values()), path.name)
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in ("X", "y", "names") if name in found}
    except TableError:
        raise
    except MemoryError as error:  # a header may claim more than there is
        raise TableMemoryError(f"{path.name} needs about more memory than there is: {error}.") from None
    except Exception as error:  # whatever numpy, zipfile, zlib and lzma raise for members that are damaged or encrypted
        raise unreadable(path, "NPZ", error) from None
    X = arrays.get("X")
    if X is None:
        raise TableError(
            f"{path.name} must hold arrays X and y (names is optional); it holds {list_some(list(found))}."
        )
    if X.dtype.kind not in "fiub" or X.ndim != 2:
        raise TableError(f"X in {path.name} must be a matrix of numbers; it is {X.dtype} of shape {X.shape}.")
    return X, arrays.get("y"), arrays.get("names")


def read_npz(path: Path, options: ReadOptions) -> DataTable:
    """Read the arrays of an NPZ file; pickled objects raise an error."""
    matrix, target, found = _load_npz(path)
    check_memory(4.0 * matrix.size * options.copies, f"the run on {path.name}")
    if found is not None and found.shape != (matrix.shape[1],):
        raise TableError(f"names in {path.name} has shape {found.shape}, but X has {matrix.shape[1]:,} columns.")
    names = [f"x{i}" for i in range(matrix.shape[1])] if found is None else clean_column_names([str(n) for n in found])
    return _matrix_table(path, "npz", matrix, target, names, options)


def read_svmlight(path: Path, options: ReadOptions) -> DataTable:
    """Read a sparse table; columns are called by the numbers in the file."""
    numbers, target, zero_based = _load_svmlight(path)
    with np.errstate(over="ignore"):
        short = numbers.data.astype(np.float32)
        # float32 where it tells all numbers apart that differ by 1; infinities raise later.
        if options.columns is None and not np.any((np.abs(numbers.data) > 2.0**24) & (short != numbers.data)):
            numbers = numbers.astype(np.float32)
    names = [str(index + (not zero_based)) for index in range(numbers.shape[1])]
    if options.columns is not None:  # columns without an entry in the file are not missing, they are zero
        known = set(names)
        more = [name for name in options.columns if name not in known and name.isdigit()]
        blank = sp.csr_matrix((numbers.shape[0], len(more)))
        numbers, names = sp.hstack([numbers, blank], format="csr"), [*names, *more]
    return _matrix_table(path, "svmlight", numbers, target, names, options)


def _load_svmlight(path: Path) -> tuple[Any, np.ndarray, bool]:
    """Load matrix, target, and whether columns are counted from 0."""
    from sklearn.datasets import load_svmlight_file

    # Text of a sparse file shrinks when read: "123:0.5 " is 8 bytes of text, 8 bytes in the matrix.
    check_memory(path.stat().st_size * 4.0, path.name)
    try:
        numbers, target = load_svmlight_file(str(path), dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise TableError(f"{path.name} cannot be read as svmlight: {error}.") from None
    n_rows, width = numbers.shape
    # A vector over all columns is the least that any step takes: one large number in the file must not take the memory.
    check_memory(width * 8.0 * _VECTORS, f"{path.name} (columns up to number {width - 1:,})")
    zero_based = bool((numbers.indices == 0).any())  # how columns are called depends on it
    if not zero_based:
        numbers = sp.csr_matrix((numbers.data, numbers.indices - 1, numbers.indptr), shape=(n_rows, max(1, width - 1)))
    return numbers, target, zero_based


def load_matrix(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of an NPZ or svmlight file again, and its target."""
    pl = load_polars()
    if table.format == "npz":
        numbers, target, _ = _load_npz(table.path)
        matrix = numbers[:, columns]
    else:
        numbers, target, _ = _load_svmlight(table.path)
        numbers.resize(numbers.shape[0], max(numbers.shape[1], *(column + 1 for column in columns), 1))
        matrix = numbers[:, columns].toarray()
    frame = pl.DataFrame({table.names[index]: matrix[:, i] for i, index in enumerate(columns)})
    if target is None or TARGET in frame.columns:
        return frame
    values = _as_texts(target.ravel()) if target.dtype.kind in "US" else target.ravel()
    return frame.with_columns(pl.Series(TARGET, values))
