"""Targets as the losses want them, and the weights of samples and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from tamiz._validation import check_numeric_target


@dataclass(frozen=True, eq=False)
class Encoded:
    """A target in the form an engine takes."""

    values: np.ndarray
    """(n_samples, n_outputs) float32: -1 and +1 for classes, standardised numbers for regression."""
    classes: np.ndarray | None = None
    codes: np.ndarray | None = None
    """Class numbers; None for several labels a row and for regression."""
    mean: np.ndarray | None = None
    """(n_outputs,) what was taken from the numbers; None for classes."""
    scale: np.ndarray | None = None
    one_dimensional: bool = True


def as_target(y: Any) -> Any:
    """The target as an array, whatever it came in; integers of a nullable column become plain integers.

    Examples
    --------
    >>> as_target(np.array([1, 0], dtype=object)).dtype.kind
    'i'
    """
    if y is None:
        return None
    values = np.asarray(y.toarray() if sp.issparse(y) else y)
    if values.dtype.kind == "O":
        plain = np.array([[*row] if isinstance(row, (list, tuple, np.ndarray)) else row for row in values.tolist()])
        if plain.dtype.kind in "biuf" and plain.shape == values.shape:
            return plain
    return values


def refuse_missing(y: Any) -> None:
    """Refuse NaN, None and infinity in a target, naming the first row.

    Examples
    --------
    >>> refuse_missing(["a", None])
    Traceback (most recent call last):
    ValueError: Input y contains NaN (first in row 1). Drop those rows or mend the target.
    """
    values = np.asarray(y)
    if values.dtype.kind == "f":
        check_numeric_target(values, multi_output=True)
    elif values.dtype.kind == "O":
        for row, value in enumerate(values.reshape(values.shape[0], -1)):
            # Only NaN and its kin (NaT) differ from themselves; pandas' NA refuses to say.
            if any(v is None or type(v).__name__ == "NAType" or (np.isscalar(v) and v != v) for v in value):
                raise ValueError(f"Input y contains NaN (first in row {row}). Drop those rows or mend the target.")


def encode_classes(y: Any, loss: str) -> Encoded:
    """Classes, or an indicator table of labels, as -1 and +1.

    Examples
    --------
    >>> encoded = encode_classes(["b", "a", "b"], "logistic")
    >>> encoded.classes.tolist(), encoded.values.ravel().tolist()
    (['a', 'b'], [1.0, -1.0, 1.0])
    >>> encode_classes(np.array([[0, 1], [1, 1]]), "logistic").values.tolist()
    [[-1.0, 1.0], [1.0, 1.0]]
    """
    refuse_missing(y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        if loss == "softmax":
            raise ValueError(
                "loss='softmax' takes one class a row, but y holds several labels a row: take 'logistic' or 'squared_hinge'."
            )
        labels = np.asarray(y)
        values = np.where(labels > 0, np.float32(1), np.float32(-1))
        return Encoded(values, classes=np.arange(labels.shape[1]), one_dimensional=False)
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns of classes: fit one estimator for each, or hand in an indicator table (zeros and ones)."
        )
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y holds only one class ({classes[0]!r}); at least two are needed to tell them apart.")
    if classes.size == 2 and loss != "softmax":
        values = np.where(codes == 1, np.float32(1), np.float32(-1))[:, None]
    else:
        values = np.where(codes[:, None] == np.arange(classes.size), np.float32(1), np.float32(-1))
    return Encoded(values, classes=classes, codes=codes)


def encode_numbers(y: Any, robust: bool = False) -> Encoded:
    """Numbers of mean 0 and standard deviation 1, since the rates of training are made for that size.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The target.
    robust : bool
        Take the median and the median absolute deviation (times 1.4826, as for a normal distribution) instead, for losses
        that are to be safe from outliers; where half of the numbers are equal, mean and deviation all the same.

    Examples
    --------
    >>> encoded = encode_numbers([1.0, 3.0])
    >>> encoded.values.ravel().tolist(), encoded.mean.tolist(), encoded.scale.tolist()
    ([-1.0, 1.0], [2.0], [1.0])
    >>> encode_numbers([1.0, 2.0, 3.0, 4.0, 1000.0], robust=True).mean.tolist()
    [3.0]
    """
    if np.asarray(y).dtype.kind == "O":
        refuse_missing(y)
    numbers = check_numeric_target(y, multi_output=True)
    table = numbers.reshape(numbers.shape[0], -1)
    if table.shape[1] == 0:
        raise ValueError("y has no columns.")
    constant = (table == table[0]).all(axis=0)
    if constant.all():
        raise ValueError("y is the same in every row; there is nothing to select features for.")
    # Brought to a size of one first: squares of numbers like 1e200 would overflow.
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
    return Encoded(values, mean=mean * unit, scale=scale * unit, one_dimensional=numbers.ndim == 1)


def class_factors(class_weight: Any, classes: np.ndarray, codes: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """One weight a class: "balanced" (the paper's N / n_c), a mapping (classes it leaves out weigh 1) or None.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 1])
    >>> class_factors("balanced", np.array(["a", "b"]), codes, np.ones(4)).round(2).tolist()
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
    # A class that this fold happens to miss is no mistake; a name in place of a class that is there is one.
    if unknown and any(name not in class_weight for name in known):
        raise ValueError(f"class_weight names {unknown[0]!r}, but the classes of y are {known}.")
    factors = np.array([float(class_weight.get(name, 1.0)) for name in known])
    if not np.isfinite(factors).all() or factors.min() < 0 or factors.max() == 0:
        raise ValueError(f"class_weight must hold numbers from 0, not all of them 0, got {dict(class_weight)!r}.")
    return factors
