"""Encode a table as the matrix that a selector sees: medians for missing numbers, one column for each category."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.extras import require
from tamiz._utils.text import list_some, quote
from tamiz._utils.validation import Encoded
from tamiz.errors import TableError
from tamiz.rows.passes import Reservoir
from tamiz.tables.columns import drop_unusable_columns
from tamiz.tables.names import ReadOptions, find_columns, positions_of
from tamiz.tables.table import DataTable, as_table, column_names, columns_of_frame, load_polars

_CELLS_AT_ONCE = 4_000_000
#: Rows of a stream that are kept.
_SAMPLE_ROWS = 100_000


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


def collect_values(
    table: DataTable, features: Sequence[Feature], rows: np.ndarray | None = None, dtype: Any = np.float64
) -> Any:
    """Collect the values of some features, found by the names of their columns; missing numbers are NaN.

    Parameters
    ----------
    table : DataTable
        Any table with these columns.
    features : sequence of Feature
        Columns of the matrix. Categories that the table does not hold give zeros.
    rows : ndarray of int or None, default=None
        Rows of the table; None takes all.
    dtype : dtype, default=float64
        Type of the matrix.

    Returns
    -------
    ndarray of shape (n_rows, n_features), or csr matrix if the table is sparse
        A copy.

    Raises
    ------
    TableError
        If a column is not there, or holds text where the feature is a number.
    """
    position = positions_of((feature.column_name for feature in features), table.names)
    place = {int(column): i for i, column in enumerate(table.number_columns)}
    numeric = [(i, position[f.column_name], f) for i, f in enumerate(features) if f.category is None]
    wrong = [f.column_name for _, column, f in numeric if column not in place]
    if wrong:
        raise TableError(f"The model needs numbers in {list_some(wrong)}, but the table has text or dates there.")
    numbers, columns = table.numbers, np.array([place[column] for _, column, _ in numeric], dtype=np.int64)
    if not np.array_equal(columns, np.arange(numbers.shape[1])):
        numbers = numbers[:, columns] if rows is None else numbers[np.ix_(rows, columns)]
    elif rows is not None:
        numbers = numbers[rows]
    if sp.issparse(numbers):
        return numbers.astype(dtype)
    moved = np.array([table.origins.get(column, 0.0) - (feature.origin or 0.0) for _, column, feature in numeric])
    numbers = numbers + moved if moved.any() else numbers
    if len(numeric) == len(features):
        matrix = numbers.astype(dtype, copy=numbers is table.numbers)
    else:
        matrix = np.zeros((numbers.shape[0], len(features)), dtype=dtype)
        matrix[:, [i for i, _, _ in numeric]] = numbers
    for i, feature in enumerate(features):
        if feature.missing:
            matrix[:, i] = np.isnan(matrix[:, i])
        elif feature.category is not None:
            text, known = table.texts.get(position[feature.column_name]), place.get(position[feature.column_name])
            # A column without any value counts as numbers.
            if text is None and (known is None or not np.isnan(table.numbers[:, known]).all()):
                raise TableError(
                    f"The model needs text in {quote(feature.column_name)}, but the table has numbers or dates there. "
                    "If its numbers are names of categories, name the column in `categorical`."
                )
            if text is not None and feature.category in text.categories:
                codes = text.codes if rows is None else text.codes[rows]
                matrix[:, i] = codes == text.categories.index(feature.category)
    return matrix


class TableEncoder(TransformerMixin, BaseEstimator):
    """Impute missing numbers by the median and encode text one-hot, from the fitted rows alone.

    Use it as the first step of a pipeline, on data frames (pandas, polars, pyarrow) or on tables from
    :func:`read_table`. Categories that the fitted rows do not hold give zeros. An estimator of tamiz behind it counts and keeps
    columns of the table, with all of their levels.

    On 100,000 rows of 40 numbers with gaps, ten categories of ten levels and two dates, ``fit_transform`` takes 0.45 s and
    95 MB; scikit-learn's ``ColumnTransformer`` of ``SimpleImputer``, ``OneHotEncoder`` and a function for the dates takes
    0.43 s and 227 MB, and has to be told which column is what (``benchmarks/tables.py``).

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
    medians_ : ndarray, shape (n_numeric,)
        Replacement of missing numbers, one per numeric column.
    dtype_ : dtype
        Type of the matrix: float32, or float64 for numbers that float32 cannot tell apart, such as seconds since 1970.
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
    >>> model[1].selection_.names  # one column, all of its levels
    ['colour']
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
        self.__dict__.pop("_stream", None)  # a stream before this
        table = as_table(X, ReadOptions(categorical=self.categorical))
        if table is not X and self.features is None:
            drop_unusable_columns(table, self.max_categories)
        self.features_ = list_features(table) if self.features is None else list(self.features)
        self.dtype_ = table.numbers.dtype
        numeric = [feature for feature in self.features_ if feature.category is None]
        self.medians_ = np.zeros(len(numeric), dtype=self.dtype_)
        step = max(1, _CELLS_AT_ONCE // max(1, table.n_rows if rows is None else len(rows)))
        # Of all columns: one that is complete in these rows may have gaps in others.
        for start in range(0, 0 if sp.issparse(table.numbers) else len(numeric), step):
            values = collect_values(table, numeric[start : start + step], rows, self.dtype_)
            self.medians_[start : start + step] = _column_medians(values)
        self.categories_ = {}
        for index, text in table.texts.items():
            codes = np.unique(text.codes if rows is None else text.codes[rows])
            self.categories_[table.names[index]] = [text.categories[code] for code in codes if code >= 0]
        self.left_out_ = {table.names[index]: reason for index, reason in sorted(table.left_out.items())}
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn from the next rows of a stream.

        Everything is learnt from a uniform sample of at most 100,000 rows of all batches: shorter streams give the same as
        :meth:`fit` on all rows, whatever the batches.

        Parameters
        ----------
        X : data frame
            The next rows, with the same columns as before.
        y : object, default=None
            Ignored.

        Returns
        -------
        TableEncoder
            Self.
        """
        names, stream = column_names(X), self.__dict__.get("_stream") or Reservoir(_SAMPLE_ROWS)
        batch = columns_of_frame(X, range(len(names)), names)
        stream.push(batch, np.zeros(batch.height))
        self.fit(stream.sample()[0])
        self._stream = stream
        return self

    def transform(self, X: Any, *, rows: np.ndarray | None = None) -> Any:
        """Encode a table as a matrix.

        Parameters
        ----------
        X : DataTable or data frame
            The data; columns are found by their names.
        rows : ndarray of int or None, default=None
            Rows to encode, as a plain array whatever ``set_output`` says; None takes all.

        Returns
        -------
        ndarray of ``dtype_``, or csr matrix if the table is sparse, shape (n_rows, n_features)
        """
        check_is_fitted(self)
        table = X
        if not isinstance(X, DataTable):
            texts = {f.column_name for f in self.features_ if f.category is not None}
            known = [str(name) for name in self.feature_names_in_]
            named = texts & {known[i] for i in find_columns(self.categorical, known)}
            columns = list(dict.fromkeys(feature.column_name for feature in self.features_))
            table = as_table(X, ReadOptions(columns=columns, categorical=sorted(named), texts=sorted(texts)))
            table.texts = {i: text.align(self.categories_.get(table.names[i], ())) for i, text in table.texts.items()}
        matrix = collect_values(table, self.features_, rows, self.dtype_)
        if sp.issparse(matrix):
            return matrix
        seen = {(name, category) for name, categories in self.categories_.items() for category in categories}
        matrix[:, [f.category is not None and (f.column_name, f.category) not in seen for f in self.features_]] = 0
        if self.impute:
            numbers = matrix[:, : self.medians_.size]
            np.copyto(numbers, self.medians_, where=np.isnan(numbers))
        if rows is not None:
            return matrix
        # The estimator behind it counts columns of the table: see encoded_columns.
        names, column_of = self.get_feature_names_out().tolist(), [f.column_name for f in self.features_]
        container = _get_output_config("transform", estimator=self)["dense"]
        if container == "pandas":
            frame = require("pandas", "pandas", "This output").DataFrame(matrix, getattr(X, "index", None), names)
            frame.attrs["column_of"] = column_of
            return frame
        output = matrix.view(Encoded) if container == "default" else load_polars().DataFrame(matrix, schema=names)
        output.column_of, output.feature_names = column_of, names
        return output

    def restricted(self, features: np.ndarray) -> TableEncoder:
        """Copy the fitted encoder for some of its features, in rising order; only their columns are read."""
        check_is_fitted(self)
        part = copy.copy(self)
        part.features_ = [self.features_[i] for i in features]
        part.medians_ = self.medians_[features[features < self.medians_.size]]
        return part

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns of the matrix.

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


def _column_medians(block: np.ndarray) -> np.ndarray:
    """Compute the median of each column without its gaps; 0 if a column has nothing else (it is then constant)."""
    if not np.isnan(block).any():
        return np.median(block, axis=0)
    filled, last = np.sort(block, axis=0), np.sum(~np.isnan(block), axis=0) - 1  # NaN sorts last
    places = np.arange(block.shape[1])
    middle = (filled[last // 2, places] + filled[(last + 1) // 2, places]) / 2
    return np.where(last < 0, 0, middle)
