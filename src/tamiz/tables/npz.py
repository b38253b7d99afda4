"""NPZ files of numpy: the arrays ``X``, ``y`` and (optional) ``names``."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tamiz._utils.text import list_some
from tamiz.errors import TableError
from tamiz.tables.centring import CentredBlock
from tamiz.tables.formats import Format, OnRows
from tamiz.tables.matrix import check_matrix_options, matrix_table
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions, clean_column_names
from tamiz.tables.table import DataTable

#: What numpy and zipfile raise for members that are damaged, encrypted (RuntimeError) or packed in an unknown way.
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    TypeError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    OverflowError,
    struct.error,
    tokenize.TokenError,
)


def _sniff(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04")


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
                    read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                        version, np.lib.format.read_array_header_2_0
                    )
                    shape, _, dtype = read(file)
                    shapes[member[: -len(".npy")]] = (shape, dtype)
    except _DAMAGE as error:
        raise _unreadable(path, error) from None
    return shapes


def _unreadable(path: Path, error: Exception) -> TableError:
    detail = str(error).splitlines()[0][:200].rstrip(".") if str(error) else type(error).__name__
    return TableError(f"{path.name} cannot be read as NPZ: {detail}.")


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    """Read the arrays; pickled objects raise an error."""
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
            block = CentredBlock(*shape)
            block.write_all(arrays["X"])
            target = arrays["y"] if "y" in shapes else None
            names = arrays["names"] if "names" in shapes else None
    except _DAMAGE as error:
        raise _unreadable(path, error) from None
    names = _column_names(path, names, shape[1])
    return matrix_table(path, "npz", block.numbers, target, names, options, block.centres)


def _column_names(path: Path, names: np.ndarray | None, n_columns: int) -> list[str]:
    if names is None:
        return [f"x{index}" for index in range(n_columns)]
    if names.shape != (n_columns,):
        raise TableError(f"names in {path.name} has shape {names.shape}, but X has {n_columns:,} columns.")
    return clean_column_names([str(name) for name in names])


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    with np.load(table.path, allow_pickle=False) as source:
        arrays = {"X": source["X"][:, columns], "names": np.array([table.names[index] for index in columns])}
        if "y" in source:
            arrays["y"] = source["y"]
    np.savez(path, **arrays)


NPZ = Format("npz", "NPZ", (".npz",), _sniff, _read, _write, binary=True)
