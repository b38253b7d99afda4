"""Encode a table as the matrix that a selector sees: medians for missing numbers, one column for each category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.text import list_some, quote
from tamiz.errors import TableError
from tamiz.tables.columns import drop_unusable_columns
from tamiz.tables.frames import as_table
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable

_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Feature:
    """Column of the encoded matrix: a numeric column, or one category of a column of text.

    Parameters
    ----------
    column : int
        Position of the column in the table.
    column_name : str
        Its name.
    category : str or None, default=None
        The category; None for a numeric column.
    missing : bool, default=False
        Whether it is 1 where the number is missing, else 0.
    origin : float or None, default=None
        For a column of dates the day since which days are counted, in days since 1970.
    label : str or None, default=None
        Name in lists and reports where another feature has the usual one.
    """

    column: int
    column_name: str
    category: str | None = None
    missing: bool = False
    origin: float | None = None
    label: str | None = None

    @property
    def name(self) -> str:
        """Name in lists and reports."""
        if self.label is not None:
            return self.label
        if self.missing:
            return f"{self.column_name} is missing"
        return self.column_name if self.category is None else f"{self.column_name}={self.category}"


def list_features(table: DataTable) -> list[Feature]:
    """List the features of a table: numeric columns first, then the categories of each column of text.

    A column of two categories without gaps becomes one feature, for the second category: the first is its complement.

    Parameters
    ----------
    table : DataTable
        With the columns that are to be used.
    """
    features = [Feature(int(i), table.names[int(i)], origin=table.origins.get(int(i))) for i in table.number_columns]
    for index, text in table.texts.items():
        categories = text.categories
        if len(categories) == 2 and np.all(text.codes >= 0):
            categories = categories[1:]
        features.extend(Feature(index, table.names[index], category) for category in categories)
    taken = {feature.name for feature in features if feature.category is None}
    for place, feature in enumerate(features):
        if feature.category is not None:
            label = feature.name
            while label in taken:  # a column called "t=u" beside a column t with the value u
                label += " (category)"
            taken.add(label)
            features[place] = feature if label == feature.name else replace(feature, label=label)
    return features


def collect_values(table: DataTable, features: Sequence[Feature], rows: np.ndarray | None = None) -> np.ndarray:
    """Return the values of some features, found by the names of their columns; missing numbers are NaN.

    Parameters
    ----------
    table : DataTable
        Any table with these columns.
    features : sequence of Feature
        Columns of the matrix. Categories that the table does not hold give zeros.
    rows : ndarray of int or None, default=None
        Rows of the table; None takes all.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_features)

    Raises
    ------
    TableError
        If a column is not there, or holds text where the feature is a number.
    """
    position = {name: index for index, name in enumerate(table.names)}
    lacking = list(dict.fromkeys(f.column_name for f in features if f.column_name not in position))
    if lacking:
        raise TableError(f"The table lacks {len(lacking)} column(s) that are needed: {list_some(lacking, limit=10)}.")
    place = {int(column): i for i, column in enumerate(table.number_columns)}
    wanted = [(i, position[f.column_name]) for i, f in enumerate(features) if f.category is None]
    numeric = [(i, column) for i, column in wanted if column in place]
    wrong = [table.names[column] for _, column in wanted if column not in place]
    if wrong:
        raise TableError(f"The model needs numbers in {list_some(wrong)}, but the table has text or dates there.")
    n_rows = table.n_rows if rows is None else len(rows)
    matrix = np.zeros((n_rows, len(features)))
    if numeric:
        columns = np.array([place[column] for _, column in numeric])
        numbers = table.numbers if rows is None else table.numbers[rows]
        taken = numbers[:, columns]
        values = taken.toarray() if sp.issparse(taken) else taken
        moved = [table.origins.get(column, 0.0) - (features[i].origin or 0.0) for i, column in numeric]
        matrix[:, [i for i, _ in numeric]] = values + (table.centres[columns] + moved)
    for i, feature in enumerate(features):
        if feature.category is None:
            continue
        text = table.texts.get(position[feature.column_name])
        if text is None:
            _check_is_empty(table, feature.column_name, place.get(position[feature.column_name]))
        elif feature.category in text.categories:
            codes = text.codes if rows is None else text.codes[rows]
            matrix[:, i] = codes == text.categories.index(feature.category)
    for i, feature in enumerate(features):
        if feature.missing:
            matrix[:, i] = np.isnan(matrix[:, i])
    return matrix


def _check_is_empty(table: DataTable, name: str, place: int | None) -> None:
    """Raise TableError unless a column that should hold text has no values at all, and so counts as numbers."""
    if place is None or sp.issparse(table.numbers) or not np.isnan(table.numbers[:, place]).all():
        raise TableError(
            f"The model needs text in {quote(name)}, but the table has numbers or dates there. "
            "If its numbers are names of categories, name the column in `categorical`."
        )


class TableEncoder(TransformerMixin, BaseEstimator):
    """Impute missing numbers by the median and encode text one-hot, from the fitted rows alone.

    Use it as the first step of a pipeline, on data frames (pandas, polars, pyarrow) or on tables from
    :func:`read_table`. Categories that the fitted rows do not hold give zeros.

    Parameters
    ----------
    max_categories : int, default=50
        Columns of text with more different values in the fitted data are left out.
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories (data frames only; for files see :func:`read_table`).
    features : sequence of Feature or None, default=None
        Columns of the matrix; None takes those of the fitted data. Give those of a whole table to get the same columns in
        every fold.
    impute : bool, default=True
        Whether missing numbers are replaced by medians; otherwise they stay NaN.

    Attributes
    ----------
    features_ : list of Feature
        The columns of the matrix, numeric ones first.
    medians_ : ndarray of float32, shape (n_numeric,)
        Replacement of missing numbers, one per numeric column, less its centre.
    centres_ : ndarray of float64, shape (n_numeric,)
        What is subtracted from each numeric column: 0, except for numbers that float32 cannot tell apart, such as seconds
        since 1970.
    categories_ : dict of str to list of str
        Values of each column of text in the fitted rows.
    left_out_ : dict of str to str
        Columns that are not used, and why.
    n_features_in_ : int
        Number of columns of the fitted data.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [50, None, 70, 80], "colour": ["red", "blue", "red", "green"]})
    >>> encoder = TableEncoder().fit(frame[:3])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'colour=red']
    >>> encoder.transform(frame).tolist()
    [[50.0, 1.0], [60.0, 0.0], [70.0, 1.0], [80.0, 0.0]]

    Encode and select inside the folds:

    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from tamiz import E2EFSClassifier
    >>> rng = np.random.default_rng(0)
    >>> ill = np.repeat(["no", "yes"], 40)
    >>> frame = pandas.DataFrame(rng.normal(size=(80, 5)), columns=list("abcde"))
    >>> frame["colour"] = np.where((ill == "yes") ^ (rng.random(80) < 0.1), "red", rng.choice(["blue", "green"], 80))
    >>> model = make_pipeline(TableEncoder(), E2EFSClassifier(n_features_to_select=1, random_state=0))
    >>> bool(cross_val_score(model, frame, ill, cv=4).mean() > 0.8)
    True
    >>> _ = model.fit(frame, ill)
    >>> model[0].get_feature_names_out()[model[1].get_support()].tolist()
    ['colour=red']
    """

    def __init__(
        self,
        max_categories: int = 50,
        categorical: Sequence[str] = (),
        features: Sequence[Feature] | None = None,
        impute: bool = True,
    ) -> None:
        self.max_categories = max_categories
        self.categorical = categorical
        self.features = features
        self.impute = impute

    def fit(self, X: Any, y: Any = None, *, rows: np.ndarray | None = None) -> TableEncoder:
        """Learn the columns, the medians and the categories.

        Parameters
        ----------
        X : DataTable or data frame
            The data; a data frame loses columns of no use, as a file does in :func:`read_table`.
        y : object, default=None
            Ignored.
        rows : ndarray of int or None, default=None
            Rows to learn from, without copying a part of the table; None takes all.

        Returns
        -------
        TableEncoder
            Self.
        """
        table = as_table(X, self.categorical)
        if table is not X and self.features is None:
            drop_unusable_columns(table, self.max_categories)
        features = list_features(table) if self.features is None else list(self.features)
        n_numeric = sum(feature.category is None for feature in features)
        self.medians_ = self._learn_medians(table, features[:n_numeric], rows)
        self.centres_ = table.centres[_find_places(table, features[:n_numeric])]
        self.categories_ = {
            table.names[index]: [text.categories[code] for code in np.unique(_take(text.codes, rows)) if code >= 0]
            for index, text in table.texts.items()
        }
        self.features_ = features
        self.left_out_ = {table.names[index]: reason for index, reason in sorted(table.left_out.items())}
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        return self

    @staticmethod
    def _learn_medians(table: DataTable, features: Sequence[Feature], rows: np.ndarray | None) -> np.ndarray:
        medians = np.zeros(len(features), dtype=np.float32)
        if sp.issparse(table.numbers) or not features:
            return medians
        numbers, columns = table.numbers, _find_places(table, features)
        rows = np.arange(table.n_rows) if rows is None else rows
        # Of all columns: one that is complete in these rows may have gaps in others.
        step = max(1, _CELLS_AT_ONCE // max(1, rows.size))
        for start in range(0, columns.size, step):
            medians[start : start + step] = _column_medians(numbers[np.ix_(rows, columns[start : start + step])])
        return medians

    def transform(self, X: Any, *, rows: np.ndarray | None = None) -> Any:
        """Return the encoded matrix.

        Parameters
        ----------
        X : DataTable or data frame
            The data; columns are found by their names.
        rows : ndarray of int or None, default=None
            Rows to encode; None takes all.

        Returns
        -------
        ndarray of float32, or csr matrix if the table is sparse, shape (n_rows, n_features)
            Numbers less ``centres_``.
        """
        check_is_fitted(self)
        n_numeric = self.medians_.size
        numeric, texts = self.features_[:n_numeric], self.features_[n_numeric:]
        known = tuple({feature.column_name for feature in texts})
        table = as_table(X, options=ReadOptions(categorical=self.categorical, texts=known))
        if _same_columns(table, numeric) and np.array_equal(table.centres, self.centres_):
            numbers = _take(table.numbers, rows)
            if sp.issparse(numbers):
                return numbers
        else:
            numbers = (collect_values(table, numeric, rows) - self.centres_).astype(np.float32)
        if not texts:
            # Indexing by rows has made a copy already.
            matrix = numbers.copy() if numbers is table.numbers else numbers
        else:
            matrix = np.zeros((numbers.shape[0], len(self.features_)), dtype=np.float32)
            matrix[:, :n_numeric] = numbers
            seen = [i for i, f in enumerate(texts) if f.category in self.categories_.get(f.column_name, ())]
            if table is not X:
                table.texts = {i: t.align(self.categories_.get(table.names[i], ())) for i, t in table.texts.items()}
            matrix[:, [n_numeric + i for i in seen]] = collect_values(table, [texts[i] for i in seen], rows)
        if self.impute:
            _fill_gaps(matrix[:, :n_numeric], self.medians_)
        return matrix

    def uncentre(self, matrix: Any) -> Any:
        """Return an encoded matrix with ``centres_`` added, in the unit of the data; a copy only if there are any."""
        if not self.centres_.any():
            return matrix
        centres = np.zeros(len(self.features_))
        centres[: self.centres_.size] = self.centres_
        return matrix + centres

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the matrix.

        Parameters
        ----------
        input_features : object, default=None
            Ignored; the names are those of the fitted columns.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array([feature.name for feature in self.features_], dtype=object)


def _take(values: Any, rows: np.ndarray | None) -> Any:
    return values if rows is None else values[rows]


def _same_columns(table: DataTable, features: Sequence[Feature]) -> bool:
    """Check whether the numbers of a table are these features, in this order."""
    return [feature.column for feature in features] == table.number_columns.tolist() and all(
        table.names[feature.column] == feature.column_name and table.origins.get(feature.column) == feature.origin
        for feature in features
    )


def _find_places(table: DataTable, features: Sequence[Feature]) -> np.ndarray:
    """Return where in the numbers of a table these features stand."""
    place = {table.names[int(column)]: i for i, column in enumerate(table.number_columns)}
    return np.array([place[feature.column_name] for feature in features], dtype=np.int64)


def _fill_gaps(matrix: np.ndarray, medians: np.ndarray) -> None:
    """Replace NaN by the medians, in place and in parts, for tables that fill the memory."""
    step = max(1, _CELLS_AT_ONCE // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], step):
        part = matrix[start : start + step]
        gap = np.isnan(part)
        if gap.any():
            np.copyto(part, medians, where=gap)


def _column_medians(block: np.ndarray) -> np.ndarray:
    """Return the median of each column without its gaps; 0 if a column has nothing else (it is then constant)."""
    medians = np.zeros(block.shape[1], dtype=np.float32)
    if not block.size:
        return medians
    by_column = np.ascontiguousarray(block.T)
    counts = np.sum(~np.isnan(by_column), axis=1)
    complete = np.flatnonzero(counts == block.shape[0])  # most columns as a rule, and quicker without sorting
    low, high = (block.shape[0] - 1) // 2, block.shape[0] // 2
    parted = np.partition(by_column[complete], (low, high), axis=1)
    medians[complete] = (parted[:, low] + parted[:, high]) / 2
    gaps = np.flatnonzero((counts > 0) & (counts < block.shape[0]))
    filled = np.sort(by_column[gaps], axis=1)  # NaN sorts last
    last, lines = counts[gaps] - 1, np.arange(gaps.size)
    medians[gaps] = (filled[lines, last // 2] + filled[lines, (last + 1) // 2]) / 2
    return medians
