"""From a table to the matrix a selector sees: medians for missing numbers, one column for each category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.cli.table import Table


@dataclass(frozen=True)
class Feature:
    """One column of the encoded matrix: a numeric column, or one category of a column of text."""

    column: int
    column_name: str
    category: str | None = None

    @property
    def name(self) -> str:
        """How it is called in lists and reports."""
        return self.column_name if self.category is None else f"{self.column_name}={self.category}"


def layout(table: Table) -> list[Feature]:
    """All features the table can give: numeric columns first, then the categories of each column of text.

    A column of two categories without gaps becomes one feature, for the second category: the other says the
    same.
    """
    features = [Feature(int(i), table.names[int(i)]) for i in table.number_columns]
    for index, text in table.texts.items():
        categories = text.categories
        if len(categories) == 2 and np.all(text.codes >= 0):
            categories = categories[1:]
        features.extend(Feature(index, table.names[index], category) for category in categories)
    return features


class Encoder:
    """Imputes and encodes; what it knows comes from the rows it was fitted on alone.

    Categories that those rows do not hold give a column of zeros, so that every fold has the same columns and
    selections can be compared; no information crosses over, since a constant column carries none.

    Attributes
    ----------
    features : list of Feature
        The columns of the matrix.
    medians : ndarray of float32
        What a missing number is replaced with, one for each numeric column.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = list(features)
        self.n_numeric = sum(feature.category is None for feature in self.features)
        self.medians = np.zeros(self.n_numeric, dtype=np.float32)
        self.known: set[tuple[int, str]] = set()

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [feature.name for feature in self.features]

    def fit(self, table: Table, rows: np.ndarray | None = None) -> Encoder:
        """Learn the medians, and which categories there are, from some rows."""
        rows = np.arange(table.n_rows) if rows is None else rows
        self.medians = np.zeros(self.n_numeric, dtype=np.float32)
        if not sp.issparse(table.numbers):
            # The columns with gaps are few as a rule; only they are sorted.
            gaps = np.flatnonzero(_has_gap(table.numbers, rows))
            for start in range(0, gaps.size, 1024):
                block = table.numbers[np.ix_(rows, gaps[start : start + 1024])]
                self.medians[gaps[start : start + 1024]] = _medians(block)
        self.known = set()
        for index, text in table.texts.items():
            self.known.update((index, text.categories[code]) for code in np.unique(text.codes[rows]) if code >= 0)
        return self

    def transform(self, table: Table, rows: np.ndarray | None = None) -> Any:
        """The encoded matrix of some rows, float32; sparse where the table is."""
        numbers = table.numbers if rows is None else table.numbers[rows]
        if sp.issparse(numbers):
            return numbers
        n_features = len(self.features)
        if n_features == self.n_numeric:
            matrix = numbers.copy() if rows is None else numbers
        else:
            matrix = np.zeros((numbers.shape[0], n_features), dtype=np.float32)
            matrix[:, : self.n_numeric] = numbers
        self._impute(matrix)
        for position in range(self.n_numeric, n_features):
            feature = self.features[position]
            text = table.texts[feature.column]
            if feature.category in text.categories and (feature.column, feature.category) in self.known:
                codes = text.codes if rows is None else text.codes[rows]
                matrix[:, position] = codes == text.categories.index(feature.category)
        return matrix

    def _impute(self, matrix: np.ndarray) -> None:
        step = max(1, 4_000_000 // max(1, matrix.shape[1]))
        for start in range(0, matrix.shape[0], step):
            piece = matrix[start : start + step, : self.n_numeric]
            gap = np.isnan(piece)
            if gap.any():
                np.copyto(piece, self.medians, where=gap)


def _has_gap(numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """For each column whether a number is missing in these rows; in pieces, for tables that fill the memory."""
    found = np.zeros(numbers.shape[1], dtype=bool)
    step = max(1, 4_000_000 // max(1, numbers.shape[1]))
    for start in range(0, rows.size, step):
        found |= np.isnan(numbers[rows[start : start + step]]).any(axis=0)
    return found


def _medians(block: np.ndarray) -> np.ndarray:
    """The median of each column without its gaps; 0 where a column has nothing else (it is then constant)."""
    filled = np.sort(block, axis=0)  # NaN sorts last
    counts = np.sum(~np.isnan(block), axis=0)
    last = np.maximum(counts - 1, 0)
    columns = np.arange(block.shape[1])
    middle = (filled[last // 2, columns] + filled[(last + 1) // 2, columns]) / 2
    return np.where(counts > 0, middle, 0.0).astype(np.float32)
