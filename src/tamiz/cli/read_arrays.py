"""NPZ and svmlight files into a :class:`~tamiz.cli.table.Table`: files of one matrix and its target."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.cli.errors import UserError, listed
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.table import Table, TextColumn, name_columns

#: How the target of these files is called; there is no other.
TARGET = "y"


def npz_shapes(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shape and type of each array in an NPZ file, from the headers alone: nothing large is unpacked."""
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
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise UserError(f"{path.name} cannot be read as NPZ: {error}.") from None
    return shapes


def read_npz(path: Path, budget: MemoryBudget, run_factor: float, need_target: bool) -> Table:
    """Read the arrays ``X``, ``y`` and (optional) ``names`` of an NPZ file; pickled objects are refused."""
    shapes = npz_shapes(path)
    if "X" not in shapes or (need_target and "y" not in shapes):
        raise UserError(f"{path.name} must hold arrays X and y (names is optional); it holds {listed(list(shapes))}.")
    shape, dtype = shapes["X"]
    if dtype.kind not in "fiub" or len(shape) != 2:
        raise UserError(f"X in {path.name} must be a matrix of numbers; it is {dtype} of shape {shape}.")
    size = float(np.prod(shape, dtype=np.float64))
    budget.require(size * (dtype.itemsize + 4 * run_factor), f"{path.name} ({shape[0]:,} rows, {shape[1]:,} columns)")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            with np.errstate(over="ignore"):
                numbers = np.ascontiguousarray(arrays["X"], dtype=np.float32)
            target = arrays["y"] if "y" in shapes else None
            names = arrays["names"] if "names" in shapes else None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise UserError(f"{path.name} cannot be read: {error}.") from None
    return _table(path, "npz", numbers, target, _npz_names(path, names, numbers.shape[1]))


def _npz_names(path: Path, names: np.ndarray | None, n_columns: int) -> list[str]:
    if names is None:
        return [f"x{index}" for index in range(n_columns)]
    if names.shape != (n_columns,):
        raise UserError(f"names in {path.name} has shape {names.shape}, but X has {n_columns:,} columns.")
    return name_columns([str(name) for name in names])


def read_svmlight(path: Path, budget: MemoryBudget) -> Table:
    """Read a svmlight / libsvm file as a sparse table; the columns are called by the numbers in the file."""
    from sklearn.datasets import load_svmlight_file

    # Text of a sparse file shrinks when read: "123:0.5 " is 8 bytes of text, 8 bytes in the matrix.
    budget.require(path.stat().st_size * 4.0, path.name)
    try:
        # zero_based decides how the columns are called, so it must not be guessed from one file and not
        # another.
        numbers, target = load_svmlight_file(str(path), dtype=np.float64, zero_based=_is_zero_based(path))
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path.name} cannot be read as svmlight: {error}.") from None
    if numbers.shape[0] == 0:
        raise UserError(f"{path.name} is empty.")
    if numbers.shape[1] == 0:
        raise UserError(f"{path.name} has no features: a line of svmlight reads like '1 3:0.5 7:1.2'.")
    with np.errstate(over="ignore"):
        numbers = numbers.astype(np.float32)
    start = 0 if _is_zero_based(path) else 1
    names = [str(index + start) for index in range(numbers.shape[1])]
    return _table(path, "svmlight", numbers, target, names)


def _is_zero_based(path: Path) -> bool:
    with open(path, "rb") as file:
        return any(b" 0:" in line for line in file)


def _table(path: Path, format_name: str, numbers: Any, target: np.ndarray | None, names: list[str]) -> Table:
    if target is not None and target.shape != (numbers.shape[0],):
        raise UserError(f"y in {path.name} has shape {target.shape}, but X has {numbers.shape[0]:,} rows.")
    if numbers.shape[0] == 0:
        raise UserError(f"{path.name} has no rows.")
    understood: np.ndarray | TextColumn | None = None
    if target is not None:
        if target.dtype.kind in "US":
            understood = TextColumn.of([str(value) for value in target.astype(str)])
        elif target.dtype.kind in "biuf":
            understood = target.astype(np.float64)
        else:
            raise UserError(f"y in {path.name} holds {target.dtype}, neither classes nor numbers.")
    columns = np.arange(numbers.shape[1])
    return Table(path, format_name, names, numbers.shape[0], numbers, columns, target=understood, target_name=TARGET)
