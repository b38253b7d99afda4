"""Store float64 numbers as float32 without losing what tells them apart: subtract a centre where it is needed.

Seconds since 1970 or long identifiers differ in digits that float32 does not have. Their columns are stored as the
difference to a centre; all other columns have the centre 0 and keep their values.
"""

from __future__ import annotations

import numpy as np

#: A column gets a centre if float32 would change a value by more than this part of the column's half width.
TOLERANCE = 1e-4
_CELLS_AT_ONCE = 1_000_000


def choose_centres(block: np.ndarray) -> np.ndarray:
    """Return the centre of each column: 0 if it is constant or float32 holds its values, else the middle of its range.

    Parameters
    ----------
    block : ndarray of float64, shape (n_rows, n_columns)
        Numbers; NaN is missing.

    Examples
    --------
    >>> choose_centres(np.array([[1_700_000_001.0, 50.0], [1_700_000_005.0, 0.1]])).tolist()
    [1700000003.0, 0.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = block.astype(np.float32)
        error = np.abs(rounded - block)
        error[~np.isfinite(error)] = 0.0  # missing, infinite, or beyond float32: not for a centre to repair
        worst = error.max(axis=0, initial=0.0)
        centres = np.zeros(block.shape[1])
        for column in np.flatnonzero(worst > 0):
            values = block[:, column]
            values = values[np.isfinite(values)]
            low, high = values.min(), values.max()
            if high > low and worst[column] > TOLERANCE * (high / 2 - low / 2):
                # A whole number where the range allows: differences of whole numbers are exact.
                centres[column] = np.rint(low / 2 + high / 2) if high - low >= 1 else low
    return centres


class CentredBlock:
    """Fill a float32 table block by block; the first that differ in a column decide on its centre.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the table.

    Attributes
    ----------
    numbers : ndarray of float32, shape (n_rows, n_columns)
        The numbers less the centre of their column.
    centres : ndarray of float64, shape (n_columns,)
        The centres.

    Examples
    --------
    >>> table = CentredBlock(3, 1)
    >>> table.write(0, np.array([[np.nan], [1e9 + 1]]))  # one value so far: no centre yet
    >>> table.write(2, np.array([[1e9 + 3]]))
    >>> (table.numbers.ravel() + table.centres).tolist()
    [nan, 1000000001.0, 1000000003.0]
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.numbers = np.empty((n_rows, n_columns), dtype=np.float32)
        self.centres = np.zeros(n_columns)
        self._decided = np.zeros(n_columns, dtype=bool)
        self._constant = np.full(n_columns, np.nan)  # the one value seen so far in columns that are not decided

    def _decide(self, row: int, block: np.ndarray) -> None:
        """Choose the centres of columns that were constant up to this block, and move what was written by them."""
        columns = np.flatnonzero(~self._decided)
        part = np.vstack([self._constant[columns], block[:, columns]])
        finite = np.isfinite(part)
        low = np.where(finite, part, np.inf).min(axis=0)
        high = np.where(finite, part, -np.inf).max(axis=0)
        self._decided[columns] = low < high
        self._constant[columns] = np.where(low == high, low, np.nan)
        self.centres[columns] = choose_centres(part)
        moved = columns[self.centres[columns] != 0]
        before = self.numbers[:row, moved]
        self.numbers[:row, moved] = np.where(
            np.isnan(before), np.nan, part[0, self.centres[columns] != 0] - self.centres[moved]
        )

    def write_all(self, values: np.ndarray) -> None:
        """Write a whole table of any type of numbers, some rows at a time; all of them decide on the centres."""
        step = max(1, _CELLS_AT_ONCE // max(1, values.shape[1]))
        columns = max(1, _CELLS_AT_ONCE // max(1, values.shape[0]))
        if values.dtype.itemsize > 2 and values.dtype != np.float32:
            for start in range(0, values.shape[1], columns):
                part = values[:, start : start + columns].astype(np.float64)
                self.centres[start : start + columns] = choose_centres(part)
        self._decided[:] = True
        for row in range(0, values.shape[0], step):
            self.write(row, values[row : row + step].astype(np.float64))

    def write(self, row: int, block: np.ndarray) -> None:
        """Write some rows, from ``row`` on."""
        if not self._decided.all():
            self._decide(row, block)
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinite, which raises later
            target = self.numbers[row : row + block.shape[0]]
            if self.centres.any():
                np.subtract(block, self.centres, out=target, casting="same_kind")
            else:
                target[...] = block
