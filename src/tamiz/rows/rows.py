"""Rows of a table or of arrays, with target, weights, groups and time; what is learnt from rows is learnt in each part."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from tamiz._utils.text import counted
from tamiz.errors import TableError
from tamiz.rows.targets import as_target


class Part(NamedTuple):
    """Some rows: matrix, target, weights (None without) and their numbers in the rows as they were given."""

    X: Any
    y: Any
    sample_weight: np.ndarray | None
    rows: np.ndarray


class Rows:
    """Hold rows and hand out parts of them, encoded by what the training part tells.

    Parameters
    ----------
    source : array, sparse matrix, data frame or table
        The features. A table that must be encoded comes with an ``encoder``.
    y : array-like or None, default=None
        Target.
    sample_weight : array-like or None, default=None
        Weights; rows of weight 0 are left out of every part. Numbers of rows always refer to the rows as given.
    groups : array-like or None, default=None
        Group of each row, such as the patient.
    time : array-like or None, default=None
        Time of each row: numbers, dates or ISO 8601 text such as "2024-01-31".
    encoder : transformer or None, default=None
        With ``fit(source, rows=)`` and ``transform(source, rows=)``, such as :class:`~tamiz.tables.TableEncoder`; it is
        cloned and fitted on each training part.
    columns : sequence of int or None, default=None
        For each column of the encoded matrix the number of the column of the table that it belongs to; None: its own.
    names : sequence of str or None, default=None
        Names of the columns of the table.

    Attributes
    ----------
    n_rows, n_columns : int
        Number of rows, and of columns of the table.
    used : ndarray of int
        Rows with a weight above 0.

    Examples
    --------
    >>> rows = Rows(np.arange(8).reshape(4, 2), [0, 1, 0, 1], sample_weight=[1, 1, 0, 2])
    >>> train, test = rows.fold([0, 2], [1, 3])
    >>> train.X.tolist(), test.y.tolist(), test.sample_weight.tolist()
    ([[0, 1]], [1, 1], [1.0, 2.0])
    >>> Rows(np.zeros((2, 1)), time=["1/1/2020", "1/2/2020"])
    Traceback (most recent call last):
    tamiz.errors.TableError: time must hold numbers or dates such as 2024-01-31, got '1/1/2020'.
    """

    def __init__(
        self,
        source: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        time: Any = None,
        encoder: Any = None,
        columns: Sequence[int] | np.ndarray | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if sp.issparse(source):
            source = source.tocsr()
        elif encoder is None and not hasattr(source, "shape"):
            source = np.asarray(source)
        self.source, self.encoder = source, encoder
        if encoder is None and len(source.shape) != 2:
            raise ValueError(f"X must be a table with rows and columns, got shape {source.shape}.")
        self.n_rows = int(source.shape[0])
        self.y = as_target(y)
        if self.y is not None and len(self.y) != self.n_rows:
            raise ValueError(
                f"X has {self.n_rows} rows, but y has {len(self.y)} values; both must have the same length."
            )
        self.sample_weight = self._check_values(sample_weight, "sample_weight")
        if self.sample_weight is not None:
            if self.sample_weight.dtype.kind not in "biuf":
                raise ValueError(f"sample_weight must hold numbers, got {self.sample_weight.tolist()[0]!r}.")
            weights = self.sample_weight = self.sample_weight.astype(np.float64)
            if (weights < 0).any() or not weights.any() or not np.isfinite(weights).all():
                raise ValueError("sample_weight must hold finite numbers, none negative and not all zero.")
        self.groups: np.ndarray | None = None
        labels = self._check_values(groups, "groups")
        if labels is not None:
            # Numbered by their first rows: folds must not depend on whether a file or a frame spells the groups.
            _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
            self.groups = np.argsort(np.argsort(first))[codes]
        self.time = None if time is None else read_time(self._check_values(time, "time"))
        self.used = np.arange(self.n_rows) if self.sample_weight is None else np.flatnonzero(self.sample_weight)
        if columns is None:
            columns = np.arange(source.shape[1])
        self.columns = np.asarray(columns, dtype=np.int64)
        self.n_columns = int(self.columns.max(initial=-1)) + 1
        self._names = names
        self._features = self._targets = np.arange(self.n_rows)  # where each row takes its features and target from

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns of the table; made when they are needed, a wide table has many."""
        return [f"x{j}" for j in range(self.n_columns)] if self._names is None else [str(name) for name in self._names]

    @property
    def is_plain(self) -> bool:
        """Check whether every column of the encoded matrix is a column of the table."""
        return self.n_columns == self.columns.size

    def fold(self, train: Any, test: Any) -> tuple[Part, Part]:
        """Split off the training and the test part of a fold; the encoder is fitted on the training part."""
        train, test = self.weighted(train), self.weighted(test)
        if self.encoder is None or self._encoded is not None:
            return self._part(train, None), self._part(test, None)
        encoder = copy.copy(self.encoder).fit(self.source, rows=self._features[train])
        return self._part(train, encoder), self._part(test, encoder)

    def whole(self) -> tuple[Any, Part]:
        """Encode all rows; also give the encoder that was fitted on them (None without one)."""
        encoder = None if self.encoder is None else copy.copy(self.encoder).fit(self.source, rows=self.used)
        return encoder, self._part(self.used, encoder)

    def take(self, rows: Any) -> Part:
        """Take some rows of a matrix that needs no encoder."""
        return self._part(self.weighted(rows), None)

    def reordered(self, features: np.ndarray | None, targets: np.ndarray | None) -> Rows:
        """Reorder the rows: row i has the features of row ``features[i]`` and the target of ``targets[i]``."""
        other = copy.copy(self)
        other._features = self._features if features is None else features
        other._targets = self._targets if targets is None else targets
        return other

    def weighted(self, rows: Any) -> np.ndarray:
        """Keep those of some rows that have a weight above 0."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64, copy=False)
        return rows if self.sample_weight is None else rows[self.sample_weight[rows] > 0]

    @cached_property
    def _encoded(self) -> np.ndarray | None:
        """Numbers of a table from which an encoder learns nothing, since they have no gaps; of other tables None."""
        table, numbers = self.source, getattr(self.source, "numbers", None)
        if numbers is None or table.texts or sp.issparse(numbers) or np.isnan(numbers).any():
            return None
        columns = [(column, table.origins.get(column)) for column in table.number_columns.tolist()]
        return numbers if [(one.column, one.origin) for one in self.encoder.features] == columns else None

    def _part(self, rows: np.ndarray, encoder: Any) -> Part:
        of_features, of_target = self._features[rows], self._targets[rows]
        if encoder is None:
            X = _safe_indexing(self.source if self.encoder is None else self._encoded, of_features)
        else:
            X = encoder.transform(self.source, rows=of_features)
        y = None if self.y is None else self.y[of_target]
        return Part(X, y, None if self.sample_weight is None else self.sample_weight[of_target], rows)

    def _check_values(self, values: Any, name: str) -> np.ndarray | None:
        """Check that there is one known value per row."""
        if values is None:
            return None
        array = np.asarray(values)
        if array.shape != (self.n_rows,):
            raise ValueError(f"{name} must have one value for each of the {self.n_rows} rows, got shape {array.shape}.")
        missing = sum(value is None or value != value for value in array.tolist())
        if missing:
            raise ValueError(f"{name} has no value in {counted(missing, 'row')}. Fill it in, or leave these rows out.")
        return array


def read_time(values: Any) -> np.ndarray:
    """Convert times to numbers that can be ordered; text must hold numbers or ISO 8601 dates.

    Examples
    --------
    >>> read_time(["2024-02-01", "2024-01-01"]).argsort().tolist(), read_time(["10", "9"]).tolist()
    ([1, 0], [10.0, 9.0])
    """
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]").astype(np.int64) / 1e6
    texts = [str(value) for value in array.tolist()]
    try:
        numbers = np.array([float(text) for text in texts])
        if np.isfinite(numbers).all():
            return numbers
    except ValueError:
        pass
    return np.array([_seconds(text) for text in texts])


def _seconds(text: str) -> float:
    """Seconds since 1970 of an ISO 8601 date; without a time zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return float(np.datetime64(text, "us").astype(np.int64)) / 1e6  # months and years alone
        except ValueError:
            raise TableError(f"time must hold numbers or dates such as 2024-01-31, got {text!r:.40}.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
