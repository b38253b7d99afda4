"""Svmlight (libsvm) files: sparse rows such as ``1 3:0.5 7:1.2``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.errors import TableError
from tamiz.tables.centring import choose_centres
from tamiz.tables.formats import Format, OnRows
from tamiz.tables.matrix import check_matrix_options, matrix_table
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable

_ROW = re.compile(rb"[-+.\deE,]+( \d+:\S+)+\s*(#.*)?")


_LAST_NUMBER = re.compile(rb"\s(\d{1,18}):\S*\s*$")
#: Vectors over all columns that names, statistics and the engine take, in numbers of 8 bytes: names are the most.
_VECTORS = 20


def _sniff(head: bytes) -> bool:
    return _ROW.fullmatch(head.partition(b"\n")[0].strip()) is not None


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    """Read a sparse table; columns are called by the numbers in the file."""
    from sklearn.datasets import load_svmlight_file

    check_matrix_options("svmlight", options)
    # Text of a sparse file shrinks when read: "123:0.5 " is 8 bytes of text, 8 bytes in the matrix.
    budget.require(path.stat().st_size * 4.0, path.name)
    # zero_based decides how the columns are called, so it must not be guessed from one file and not another.
    zero_based, width = _scan(path)
    # A vector over all columns is the least that any step takes: one large number in the file must not take the memory.
    budget.require(width * 8.0 * _VECTORS, f"{path.name} (columns up to number {width:,})")
    try:
        numbers, target = load_svmlight_file(str(path), dtype=np.float64, zero_based=zero_based)
    except (ValueError, OverflowError) as error:
        raise TableError(f"{path.name} cannot be read as svmlight: {error}.") from None
    if numbers.shape[0] == 0:
        raise TableError(f"{path.name} is empty.")
    if numbers.shape[1] == 0:
        raise TableError(f"{path.name} has no features: a line of svmlight reads like '1 3:0.5 7:1.2'.")
    with np.errstate(over="ignore"):
        # Sparse numbers cannot be centred: a table with columns that float32 cannot tell apart stays as it is.
        numbers = numbers if _needs_centres(numbers) else numbers.astype(np.float32)
    names = [str(index + (not zero_based)) for index in range(numbers.shape[1])]
    if options.columns is not None:
        numbers, names = _add_columns(numbers, names, options.columns)
    return matrix_table(path, "svmlight", numbers, target, names, options)


def _needs_centres(numbers: Any) -> bool:
    """Check whether float32 would lose what tells the numbers of a column apart; columns with zeros lose nothing."""
    full = np.flatnonzero(np.bincount(numbers.indices, minlength=1) >= numbers.shape[0])
    step = max(1, 1_000_000 // numbers.shape[0])
    return any(
        choose_centres(numbers[:, full[start : start + step]].toarray()).any() for start in range(0, full.size, step)
    )


def _scan(path: Path) -> tuple[bool, int]:
    """Return whether columns are counted from 0, and the largest number of a column."""
    zero_based, width = False, 0
    with open(path, "rb") as file:
        for line in file:
            zero_based = zero_based or b" 0:" in line
            # Numbers rise along a line, which the reader checks: the last is the largest.
            last = _LAST_NUMBER.search(line.partition(b"#")[0])
            width = max(width, int(last[1])) if last else width
    return zero_based, width


def _add_columns(numbers: Any, names: list[str], columns: Sequence[str]) -> tuple[Any, list[str]]:
    """Add the named columns that have no entry in the file: they are not missing, they are zero."""
    import scipy.sparse as sp

    known = set(names)
    more = [name for name in columns if name not in known and name.isdigit()]
    if not more:
        return numbers, names
    blank = sp.csr_matrix((numbers.shape[0], len(more)), dtype=np.float32)
    return sp.hstack([numbers, blank], format="csr"), [*names, *more]


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    """Write the entries of some columns under their numbers, so that the model of the whole file reads the result too."""
    wanted = {table.names[index].encode() for index in columns}
    with open(table.path, "rb") as source, open(path, "wb") as file:  # a note may be in any encoding
        for line in source:
            words = line.partition(b"#")[0].split()
            if words:
                kept = [word for word in words[1:] if word.partition(b":")[0] in wanted]
                file.write(b" ".join([words[0], *kept]) + b"\n")


SVMLIGHT = Format("svmlight", "svmlight", (".svm", ".svmlight", ".libsvm"), _sniff, _read, _write)
