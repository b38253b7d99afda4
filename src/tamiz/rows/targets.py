"""Decide what task a target is, encode it in the form of a loss, and weigh its classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from tamiz._utils.validation import check_numeric_target
from tamiz.core.losses import Loss

#: Values of the parameter ``task``.
TASKS = ("auto", "classification", "regression")
#: Whole numbers are classes up to this many different values, if each stands for this many rows on average.
MOST_CLASSES = 20
ROWS_PER_CLASS = 5
_MISSING = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class EncodedTarget:
    """A target in the form of a loss.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_outputs), float32
        -1 and +1 for classes, standardised numbers for regression.
    classes : ndarray or None
        Sorted classes; with several labels per row the numbers of the labels; None for regression.
    codes : ndarray of shape (n_samples,) or None
        Number of the class of each row; None for several labels per row and for regression.
    mean, scale : ndarray of shape (n_outputs,) or None
        ``values * scale + mean`` are the numbers of the target; None for classes.
    one_dimensional : bool
        Whether the target was a vector.
    """

    values: np.ndarray
    classes: np.ndarray | None = None
    codes: np.ndarray | None = None
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    one_dimensional: bool = True


def as_target(y: Any) -> Any:
    """Convert a target to an array; integers of a nullable column become plain integers, None stays None.

    Examples
    --------
    >>> as_target(np.array([1, 0], dtype=object)).dtype.kind
    'i'
    """
    if y is None:
        return None
    if isinstance(y, str):
        raise ValueError(
            f"y must hold the values of the target, got the name {y!r}: hand in that column and the others apart, or use "
            "tamiz.select, which takes a name."
        )
    values = np.asarray(y.toarray() if sp.issparse(y) else y)
    if values.dtype.kind == "O":
        plain = np.array([[*row] if isinstance(row, (list, tuple, np.ndarray)) else row for row in values.tolist()])
        if plain.dtype.kind in "biuf" and plain.shape == values.shape:
            return plain
    return values


def check_no_missing(y: Any) -> None:
    """Raise ValueError for NaN, None or infinity in a target, naming the first row.

    Examples
    --------
    >>> check_no_missing(["a", None])
    Traceback (most recent call last):
    ValueError: Input y contains NaN (first in row 1). Drop those rows or fix the target.
    """
    values = np.asarray(y)
    if values.dtype.kind == "f":
        check_numeric_target(values, multi_output=True)
    elif values.dtype.kind == "O":
        for row, value in enumerate(values.reshape(values.shape[0], -1)):
            # Only NaN differs from itself; the missing values of pandas are no scalars or raise when compared.
            if any(v is None or type(v).__name__ in _MISSING or (np.isscalar(v) and v != v) for v in value):
                raise ValueError(f"Input y contains NaN (first in row {row}). Drop those rows or fix the target.")


def decide_task(y: Any, task: str = "auto") -> Literal["classification", "regression"]:
    """Decide whether a target holds classes or numbers.

    With ``task="auto"``: text, booleans and categorical columns are classes; numbers of which one has a fractional part
    are regression; whole numbers are classes if there are at most two different ones, or at most 20 and at least five
    rows for each on average, else regression. Missing values do not count.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Target.
    task : {"auto", "classification", "regression"}, default="auto"
        What the caller knows; anything but "auto" decides.

    Returns
    -------
    {"classification", "regression"}

    Examples
    --------
    >>> decide_task([0.5, 1.25]), decide_task(["a", "b"]), decide_task([0, 1, 1]), decide_task(range(30))
    ('regression', 'classification', 'classification', 'regression')
    >>> decide_task(range(30), "classification")
    'classification'
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {task!r}.")
    if task != "auto":
        return cast(Literal["classification", "regression"], task)
    if hasattr(getattr(y, "dtype", None), "categories"):
        return "classification"
    values = as_target(y)
    if values.dtype.kind not in "iuf":
        return "classification"
    distinct = np.unique(values[np.isfinite(values)])
    if np.any(distinct != np.rint(distinct)):
        return "regression"
    n_rows = values.shape[0] if values.ndim else 1
    return "classification" if distinct.size <= max(2, min(MOST_CLASSES, n_rows // ROWS_PER_CLASS)) else "regression"


def encode_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sort the classes of a target and number the class of each row from 0 to C-1.

    Examples
    --------
    >>> classes, codes = encode_classes(["b", "a", "b"])
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    y = column_or_1d(y, warn=True)
    check_no_missing(y)
    if y.dtype.kind == "f" and np.any(y != np.rint(y)):
        raise ValueError(
            "Unknown label type: continuous. The target has numbers with a fractional part, but classes are needed. "
            "Bin the target, or use an estimator or a method for regression."
        )
    if y.dtype.kind == "O":
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y holds only one class ({classes.tolist()[0]!r}); at least two are needed to tell them apart."
        )
    return classes, codes.reshape(-1).astype(np.int64)


def encode_target(y: Any, loss: Loss) -> EncodedTarget:
    """Encode a target in the form of a loss.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Classes or an indicator table of labels for a loss for classification, numbers for one for regression.
    loss : Loss
        Its task, whether its outputs are exclusive and whether it is robust decide the form.

    Returns
    -------
    EncodedTarget

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> encoded = encode_target(["b", "a", "b"], get_loss("logistic"))
    >>> encoded.classes.tolist(), encoded.values.ravel().tolist()
    (['a', 'b'], [1.0, -1.0, 1.0])
    >>> encode_target(np.array([[0, 1], [1, 1]]), get_loss("logistic")).values.tolist()
    [[-1.0, 1.0], [1.0, 1.0]]
    >>> encoded = encode_target([1.0, 3.0], get_loss("squared_error"))
    >>> encoded.values.ravel().tolist(), encoded.mean.tolist(), encoded.scale.tolist()
    ([-1.0, 1.0], [2.0], [1.0])
    """
    if loss.task == "regression":
        return _encode_numbers(y, loss.robust)
    check_no_missing(y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        if loss.exclusive:
            raise ValueError(
                f"loss={loss.name!r} takes one class per row, but y holds several labels per row: "
                "use a loss whose outputs do not compete, such as 'logistic' or 'squared_hinge'."
            )
        labels = np.asarray(y)
        values = np.where(labels > 0, np.float32(1), np.float32(-1))
        return EncodedTarget(values, classes=np.arange(labels.shape[1]), one_dimensional=False)
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns of classes: fit one estimator for each, or pass an indicator table (zeros and ones)."
        )
    classes, codes = encode_classes(y)
    return EncodedTarget(loss.encode(codes, classes.size), classes=classes, codes=codes)


def _encode_numbers(y: Any, robust: bool) -> EncodedTarget:
    """Scale numbers to mean 0 and standard deviation 1, the size that the learning rates are made for.

    A robust loss takes the median and the median absolute deviation (times 1.4826, as for a normal distribution) instead,
    so that outliers do not shrink the rest; where half of the numbers are equal, mean and deviation all the same.
    """
    if np.asarray(y).dtype.kind == "O":
        check_no_missing(y)
    numbers = check_numeric_target(y, multi_output=True)
    table = numbers.reshape(numbers.shape[0], -1)
    if table.shape[1] == 0:
        raise ValueError("y has no columns.")
    constant = (table == table[0]).all(axis=0)
    if constant.all():
        raise ValueError("y is the same in every row; there is nothing to select features for.")
    # Scaled to a size of one first: squares of numbers like 1e200 would overflow.
    largest = np.abs(table).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    table = table / unit
    mean = table.mean(axis=0)
    scale = (table - mean).std(axis=0)
    if robust:
        middle = np.median(table, axis=0)
        spread = 1.4826 * np.median(np.abs(table - middle), axis=0)
        mean, scale = np.where(spread > 0, middle, mean), np.where(spread > 0, spread, scale)
    scale = np.where(constant | (scale == 0), 1.0, scale)
    values = np.where(constant, 0.0, (table - mean) / scale).astype(np.float32)
    return EncodedTarget(values, mean=mean * unit, scale=scale * unit, one_dimensional=numbers.ndim == 1)


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Compute one weight per class.

    Parameters
    ----------
    class_weight : "balanced", dict or None
        "balanced": N / n_c, as in the released code of the paper's authors (the paper gives no formula); a dict of class to
        weight, classes it leaves out weigh 1; None: 1 each.
    classes : ndarray of shape (n_classes,)
        Classes.
    codes : ndarray of shape (n_samples,)
        Number of the class of each row.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the rows, which "balanced" counts.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 1])
    >>> class_weights("balanced", np.array(["a", "b"]), codes, np.ones(4)).round(2).tolist()
    [1.33, 4.0]
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(codes, weights=sample_weight, minlength=classes.size)
        return sample_weight.sum() / mass
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be 'balanced', a dict of class to weight, or None, got {class_weight!r}.")
    known = classes.tolist()
    unknown = [name for name in class_weight if name not in known]
    # A class that this fold happens to lack is no mistake; a name in place of a class that is there is one.
    if unknown and any(name not in class_weight for name in known):
        raise ValueError(f"class_weight names {unknown[0]!r}, but the classes of y are {known}.")
    weights = np.array([float(class_weight.get(name, 1.0)) for name in known])
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise ValueError(f"class_weight must hold numbers from 0, not all of them 0, got {dict(class_weight)!r}.")
    return weights
