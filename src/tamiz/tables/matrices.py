"""Read files of one matrix and its target: NPZ (arrays ``X``, ``y``, ``names``) and svmlight."""

from __future__ import annotations

import lzma
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import list_some
from tamiz.errors import TableArgumentError, TableError
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, TextColumn, load_polars, pack_numbers

#: Name of the target of these files; there is no other.
TARGET = "y"
#: What numpy and zipfile raise for members that are damaged, encrypted (RuntimeError) or packed in an unknown way.
_DAMAGE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, ValueError, TypeError, OSError, EOFError),
    *(KeyError, RuntimeError, SyntaxError, OverflowError, struct.error, tokenize.TokenError),
)
_LAST_NUMBER = re.compile(rb"\s(\d{1,18}):\S*\s*$")
#: Vectors over all columns that names, statistics and the engine take, in numbers of 8 bytes: names are the most.
_VECTORS = 20


def check_matrix_options(format_name: str, options: ReadOptions) -> None:
    """Raise TableArgumentError for options that mean nothing for a file of one matrix."""
    if options.columns is not None:
        return
    if options.target not in (None, TARGET):
        raise TableArgumentError(f"The target of a {format_name} file is called {TARGET!r}; leave `target` out.")
    if options.categorical:
        raise TableArgumentError(f"A {format_name} file holds numbers only: `categorical` does not apply.")


def matrix_table(
    path: Path, format_name: str, numbers: Any, target: np.ndarray | None, names: list[str], options: ReadOptions
) -> DataTable:
    """Build a table from a matrix and its target, with the columns that the options name.

    Parameters
    ----------
    path : Path
        The file.
    format_name : str
        Name of its format.
    numbers : ndarray or csr matrix
        All columns of the file.
    target : ndarray or None
        The target of each row.
    names : list of str
        Names of all columns.
    options : ReadOptions
        Columns to ignore, or the columns to keep.
    """
    if target is not None and target.shape == (numbers.shape[0], 1):
        target = target[:, 0]
    if target is not None and target.shape != (numbers.shape[0],):
        raise TableError(f"y in {path.name} has shape {target.shape}, but X has {numbers.shape[0]:,} rows.")
    if numbers.shape[0] == 0:
        raise TableError(f"{path.name} has no rows.")
    column: np.ndarray | TextColumn | None = None
    if target is not None and target.dtype.kind in "US":
        try:
            texts = [str(value).encode("utf-8", "replace").decode() for value in target.astype(str)]
        except UnicodeDecodeError:
            raise TableError(f"y in {path.name} holds bytes that are no text. Save it as numbers or as text.") from None
        column = TextColumn.from_values(texts)
    elif target is not None and target.dtype.kind in "biuf":
        column = target.astype(np.float64)
    elif target is not None:
        raise TableError(f"y in {path.name} holds {target.dtype}, neither classes nor numbers.")
    kept = np.flatnonzero(
        choose_columns(names, ReadOptions(ignore=options.ignore, roles=options.roles, columns=options.columns)).wanted
    )
    if kept.size < len(names):
        numbers = numbers[:, kept]
    centres = np.zeros(kept.size)
    if not sp.issparse(numbers):
        numbers, centres = pack_numbers(numbers)
    table = DataTable(path, format_name, names, numbers.shape[0], numbers, kept, centres=centres)
    table.target_column, table.target_name = column, TARGET
    return table


def read_npz_shapes(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape and type of each array in an NPZ file, from the headers alone: nothing large is unpacked."""
    shapes = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if not member.endswith(".npy"):
                    continue
                with archive.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    headers = np.lib.format
                    read = headers.read_array_header_1_0 if version == (1, 0) else headers.read_array_header_2_0
                    shape, _, dtype = read(file)
                    shapes[member[: -len(".npy")]] = (shape, dtype)
    except _DAMAGE as error:
        raise _unreadable(path, error) from None
    return shapes


def _unreadable(path: Path, error: Exception) -> TableError:
    detail = str(error).splitlines()[0][:200].rstrip(".") if str(error) else type(error).__name__
    return TableError(f"{path.name} cannot be read as NPZ: {detail}.")


def read_npz(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read the arrays of an NPZ file; pickled objects raise an error.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Columns to ignore and so on.
    budget : MemoryBudget
        Asked before the memory is taken.
    """
    check_matrix_options("npz", options)
    shapes = read_npz_shapes(path)
    if "X" not in shapes or (options.need_target and "y" not in shapes):
        raise TableError(
            f"{path.name} must hold arrays X and y (names is optional); it holds {list_some(list(shapes))}."
        )
    shape, dtype = shapes["X"]
    if dtype.kind not in "fiub" or len(shape) != 2:
        raise TableError(f"X in {path.name} must be a matrix of numbers; it is {dtype} of shape {shape}.")
    sizes = {name: float(np.prod(shape, dtype=np.float64)) for name, (shape, _) in shapes.items()}
    need = sizes["X"] * (dtype.itemsize + 4 * options.copies)
    # Text is read once as an array and once as Python's own.
    need += sum(3 * sizes[name] * shapes[name][1].itemsize for name in ("y", "names") if name in shapes)
    budget.require(need, f"{path.name} ({shape[0]:,} rows, {shape[1]:,} columns)")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            matrix = arrays["X"]
            target = arrays["y"] if "y" in shapes else None
            found = arrays["names"] if "names" in shapes else None
    except _DAMAGE as error:
        raise _unreadable(path, error) from None
    if found is not None and found.shape != (shape[1],):
        raise TableError(f"names in {path.name} has shape {found.shape}, but X has {shape[1]:,} columns.")
    names = [f"x{i}" for i in range(shape[1])] if found is None else clean_column_names([str(name) for name in found])
    return matrix_table(path, "npz", matrix, target, names, options)


def load_npz(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of an NPZ file again, and its target."""
    with np.load(table.path, allow_pickle=False) as arrays:
        return _matrix_frame(arrays["X"][:, columns], arrays.get("y"), table, columns)


def _matrix_frame(matrix: np.ndarray, target: np.ndarray | None, table: DataTable, columns: Sequence[int]) -> Any:
    pl = load_polars()
    frame = pl.DataFrame({table.names[index]: matrix[:, i] for i, index in enumerate(columns)})
    if target is None or TARGET in frame.columns:
        return frame
    target = target.reshape(-1)
    return frame.with_columns(pl.Series(TARGET, target.astype(str).tolist() if target.dtype.kind in "US" else target))


def read_svmlight(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read a sparse table; columns are called by the numbers in the file.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Columns to ignore and so on.
    budget : MemoryBudget
        Asked before the memory is taken.
    """
    check_matrix_options("svmlight", options)
    numbers, target, zero_based = _load_matrix(path, budget)
    if numbers.shape[0] == 0:
        raise TableError(f"{path.name} is empty.")
    if numbers.shape[1] == 0:
        raise TableError(f"{path.name} has no features: a line of svmlight reads like '1 3:0.5 7:1.2'.")
    with np.errstate(over="ignore"):
        # Sparse numbers cannot be centred: a table with columns that float32 cannot tell apart stays as it is.
        numbers = numbers if _needs_centres(numbers) else numbers.astype(np.float32)
    names = [str(index + (not zero_based)) for index in range(numbers.shape[1])]
    if options.columns is not None:  # columns without an entry in the file are not missing, they are zero
        known = set(names)
        more = [name for name in options.columns if name not in known and name.isdigit()]
        blank = sp.csr_matrix((numbers.shape[0], len(more)), dtype=np.float32)
        numbers, names = sp.hstack([numbers, blank], format="csr"), [*names, *more]
    return matrix_table(path, "svmlight", numbers, target, names, options)


def _load_matrix(path: Path, budget: MemoryBudget) -> tuple[Any, np.ndarray, bool]:
    """Return matrix, target, and whether columns are counted from 0."""
    from sklearn.datasets import load_svmlight_file

    # Text of a sparse file shrinks when read: "123:0.5 " is 8 bytes of text, 8 bytes in the matrix.
    budget.require(path.stat().st_size * 4.0, path.name)
    # zero_based decides how the columns are called, so it must not be guessed from one file and not another.
    zero_based, width = False, 0
    with open(path, "rb") as file:
        for line in file:
            zero_based = zero_based or b" 0:" in line
            # Numbers rise along a line, which the reader checks: the last is the largest.
            last = _LAST_NUMBER.search(line.partition(b"#")[0])
            width = max(width, int(last[1])) if last else width
    # A vector over all columns is the least that any step takes: one large number in the file must not take the memory.
    budget.require(width * 8.0 * _VECTORS, f"{path.name} (columns up to number {width:,})")
    try:
        numbers, target = load_svmlight_file(str(path), dtype=np.float64, zero_based=zero_based)
    except (ValueError, OverflowError) as error:
        raise TableError(f"{path.name} cannot be read as svmlight: {error}.") from None
    return numbers, target, zero_based


def _needs_centres(numbers: Any) -> bool:
    """Check whether float32 would lose what tells the numbers of a column apart; columns with zeros lose nothing."""
    full = np.flatnonzero(np.bincount(numbers.indices, minlength=1) >= numbers.shape[0])
    step = max(1, 1_000_000 // numbers.shape[0])
    parts = (numbers[:, full[start : start + step]].toarray() for start in range(0, full.size, step))
    return any(pack_numbers(part)[1].any() for part in parts)


def load_svmlight(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of an svmlight file again, and its target."""
    numbers, target, _ = _load_matrix(table.path, MemoryBudget())
    width = max(columns, default=-1) + 1
    if width > numbers.shape[1]:
        numbers = sp.hstack([numbers, sp.csr_matrix((numbers.shape[0], width - numbers.shape[1]))], format="csr")
    return _matrix_frame(numbers[:, columns].toarray(), target, table, columns)
