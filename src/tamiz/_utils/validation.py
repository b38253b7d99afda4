"""Check input data, parameters and the number of features, with messages that say what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _get_feature_names, validate_data

from tamiz._utils.text import counted, list_some

_TEXT_ADVICE = "Encode them first (tamiz.TableEncoder does), or drop them."
_DATE_ADVICE = "Turn them into numbers (tamiz.TableEncoder takes days since the first), or leave them out."


def resolve_n_features_to_select(value: Any, n_features: int, name: str = "n_features_to_select") -> int:
    """Find the number M that ``n_features_to_select`` means for ``n_features`` columns.

    Parameters
    ----------
    value : int, float or None
        An integer is M itself, a float in (0, 1) a fraction of the features (at least one), None half of them.
    n_features : int
        Number of columns.
    name : str, default="n_features_to_select"
        Name of the argument, for messages.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is neither, or not in the range from 1 to ``n_features``.

    Examples
    --------
    >>> resolve_n_features_to_select(10, 200), resolve_n_features_to_select(0.25, 200), resolve_n_features_to_select(None, 7)
    (10, 50, 3)
    """
    if value is None:
        return max(1, n_features // 2)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(
            f"{name} must be an integer, a fraction in (0, 1) or None (half of the features), got {value!r}."
            + (" Estimators of this package also take 'auto'." if isinstance(value, str) else "")
        )
    if isinstance(value, Integral):
        if int(value) < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
        if int(value) > n_features:
            raise ValueError(
                f"{name}={value} is more than the {counted(n_features, 'feature')}; ask for at most {n_features:,}."
            )
        return int(value)
    if not 0.0 < float(value) < 1.0:
        raise ValueError(
            f"{name}={value!r} is a fraction out of range: give a number in (0, 1), "
            f"or an integer from 1 to {n_features}."
        )
    return max(1, int(n_features * float(value)))


def check_finite(X: Any, names: np.ndarray | None = None, allow_nan: bool = False) -> None:
    """Raise ValueError if the table holds NaN or infinity; the message names the first such column.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Table to check.
    names : ndarray of str or None, default=None
        Names of the columns.
    allow_nan : bool, default=False
        Whether NaN stands for a missing value.

    Examples
    --------
    >>> check_finite(np.array([[1.0, np.nan]]), np.array(["age", "dose"], dtype=object))
    Traceback (most recent call last):
    ValueError: Input X contains NaN in column 'dose'. Impute it ...
    """
    values = X.data if sp.issparse(X) else X
    # A sum is finite only if all entries are, and costs one pass without temporaries; should the sum of finite
    # entries overflow, the slower check below decides.
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    columns = X.tocoo().col[bad] if sp.issparse(X) else bad.nonzero()[1]
    column, found = int(columns.min()), values[bad]
    where = f"column {column}" if names is None else f"column {str(names[column])!r}"
    if np.isnan(found[columns == column]).any():
        raise ValueError(
            f"Input X contains NaN in {where}. Impute it (tamiz.TableEncoder, SimpleImputer, or "
            'missing="indicator" of the estimators of tamiz) or drop the column.'
        )
    raise ValueError(f"Input X contains infinity in {where}. Clip or drop it.")


def _column_names(X: Any) -> list[Any]:
    """List the names of the columns of a data frame; none for anything else."""
    if hasattr(X, "column_names"):  # pyarrow: its `columns` are values
        return list(X.column_names)
    return list(getattr(X, "columns", []))


def collect_lazy(X: Any) -> Any:
    """Collect a lazy data frame (polars); anything else stays as it is."""
    if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):
        return X.collect()
    return X


def _check_columns(X: Any) -> None:
    """Raise ValueError for dates, which numpy would take as numbers of some unit, for text, and for names that occur twice."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        raise ValueError(f"X holds {X.dtype}. {_DATE_ADVICE}")
    names = _column_names(X)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Two columns are called {str(twice[0])!r}. Rename one of them: names must be unique.")
    dates, texts = [], []
    for name in names:
        values = np.asarray(X[name])
        if values.dtype.kind in "Mm":
            dates.append(name)
        elif values.dtype.kind in "OUST":
            try:
                values.astype(np.float64)
            except (TypeError, ValueError):
                texts.append(name)
    if dates:
        raise ValueError(f"Dates or times in {list_some(dates)}. {_DATE_ADVICE}")
    if texts:
        raise ValueError(
            f"could not convert string to float: there is text, or objects, in {list_some(texts)}. {_TEXT_ADVICE}"
        )


def check_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    accept_sparse: Any = False,
    allow_nan: bool = False,
    dtype: Any = (np.float64, np.float32),
    min_samples: int = 1,
) -> Any:
    """Check the feature table and return it as an array or sparse matrix; set or compare ``feature_names_in_``.

    Parameters
    ----------
    estimator : estimator
        Estimator whose ``n_features_in_`` and ``feature_names_in_`` are set (``reset=True``) or compared with.
    X : array-like, sparse matrix or data frame
        Table to check.
    reset : bool
        True in ``fit``, False in ``predict`` and ``transform``.
    accept_sparse : bool or list of str, default=False
        As in scikit-learn.
    allow_nan : bool, default=False
        Whether NaN stands for a missing value.
    dtype : dtype or tuple of dtype, default=(float64, float32)
        Accepted types; others are converted to the first.
    min_samples : int, default=1
        Least number of rows.

    Returns
    -------
    ndarray or sparse matrix
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind in "Mm":
        X = collect_lazy(X)
        _check_columns(X)
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=accept_sparse,
            dtype=list(dtype) if isinstance(dtype, tuple) else dtype,
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
    except ValueError as error:
        if not str(error).startswith("could not convert string"):
            raise
        raise ValueError(f"{error}: X holds text. {_TEXT_ADVICE}") from None
    check_finite(checked, _get_feature_names(X), allow_nan=allow_nan)
    return checked


class Encoded(np.ndarray):
    """Matrix of features that knows their names and the columns of the table that each of them belongs to."""

    def __array_finalize__(self, other: Any) -> None:
        self.feature_names, self.column_of = (getattr(other, name, None) for name in ("feature_names", "column_of"))


def encoded_columns(X: Any) -> tuple[list[str], list[str]] | None:
    """Find the names of the features of an encoded table, and the column that each belongs to; None for other tables.

    An encoder attaches them to its output: to an :class:`Encoded` array, to ``attrs`` of a pandas frame, or to a polars frame.
    """
    columns = X.attrs.get("column_of") if hasattr(X, "attrs") else getattr(X, "column_of", None)
    if columns is None or len(columns) != X.shape[1]:
        return None
    return [str(name) for name in getattr(X, "feature_names", None) or X.columns], list(columns)


def check_kept_columns(estimator: Any, X: Any, kept: np.ndarray, allow_nan: bool = False) -> np.ndarray | None:
    """Take the values of a data frame that holds the kept columns alone, in their order; None for any other table.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``feature_names_in_`` if it was fitted on names.
    X : object
        What is to be predicted.
    kept : ndarray of int
        Positions of the kept columns.
    allow_nan : bool, default=False
        Whether missing values may be among the numbers.
    """
    names = getattr(estimator, "feature_names_in_", None)
    X = collect_lazy(X)
    given = _column_names(X)
    if names is None or kept.size == len(names) or len(given) != kept.size or set(given) != set(names[kept]):
        return None
    _check_columns(X)
    ordered = X.select(list(names[kept])) if hasattr(X, "select") else X[list(names[kept])]
    checked = check_array(ordered, dtype=[np.float64, np.float32], ensure_all_finite=False)
    check_finite(checked, names[kept], allow_nan)
    return checked


def check_target_length(X: Any, y: Any) -> None:
    """Raise ValueError if the target is None, a single value or of another length than the table."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    if len(shape) == 0:
        raise ValueError(f"y must have one entry for each row of X, got a single value: {y!r}.")
    n_rows, n_targets = X.shape[0], shape[0]
    if n_rows != n_targets:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} rows of X, {n_targets} entries of y.")


def check_numeric_target(y: Any, *, multi_output: bool = False) -> np.ndarray:
    """Check a numeric target and return it as float64.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Target to check.
    multi_output : bool, default=False
        Whether a single column stays two-dimensional.

    Returns
    -------
    ndarray of float64
    """
    if any(isinstance(value, str) for value in np.ravel(y)[:1].tolist()):
        raise ValueError("y holds text, but regression needs numbers; for classes take a classifier.")
    y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y", allow_nd=False)
    if not np.isfinite(y).all():
        kind = "NaN" if np.isnan(y).any() else "infinity"
        row = int(np.argmax(~np.isfinite(y.reshape(y.shape[0], -1)).all(axis=1)))
        raise ValueError(f"Input y contains {kind} (first in row {row}). Drop those rows or fix the target.")
    if y.ndim == 2 and y.shape[1] == 1 and not multi_output:
        y = y.ravel()
    return y


class NameOf(StrOptions):
    """Accept the names that a function gives at the time of the check, so that what is registered later counts too.

    Parameters
    ----------
    names : callable
        Returns the names.

    Examples
    --------
    >>> NameOf(lambda: ["a", "b"]).is_satisfied_by("b")
    True
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        super().__init__(set(names()))

    @property
    def options(self) -> set[str]:
        """Names there are now."""
        return set(self._names())

    @options.setter
    def options(self, value: set[str]) -> None:
        """Ignore what the base class stores."""


AUTO = StrOptions({"auto"})


def whole_number(least: int) -> Interval:
    """Constrain a parameter to integers of at least ``least``."""
    return Interval(Integral, least, None, closed="left")


def finite_number(least: float, *, or_equal: bool = True, most: float = np.inf) -> Interval:
    """Constrain a parameter to finite numbers above, or from, ``least``, and below ``most``."""
    return Interval(Real, least, most, closed="left" if or_equal else "neither")
