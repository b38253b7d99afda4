"""Decide from the values of the target whether it names classes or holds numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tamiz._utils.text import WARNING, discard, list_some, quote
from tamiz.errors import TableArgumentError, TableError
from tamiz.rows.targets import MOST_CLASSES, decide_task
from tamiz.tables.columns import describe_spellings, describe_units, is_number, parse_dates, spelt_numbers
from tamiz.tables.table import DataTable, TextColumn

TARGET_TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Target:
    """Target as classes or numbers.

    Parameters
    ----------
    name : str
        Name of the column.
    task : str
        "classification" or "regression".
    y : ndarray, shape (n_rows,)
        Class labels as text, or float64 numbers.
    rows : ndarray of int
        Rows of the file that have a target.
    """

    name: str
    task: str
    y: np.ndarray
    rows: np.ndarray


def class_label(value: float) -> str:
    """Return the name of a number as a class.

    Examples
    --------
    >>> class_label(1.0), class_label(2.5)
    ('1', '2.5')
    """
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def resolve_target(table: DataTable, task: str | None = None, report: Callable[[str], None] = discard) -> Target:
    """Decide between classification and regression, and report the decision.

    Text means classes; :func:`tamiz.rows.targets.decide_task` decides what numbers mean.

    Parameters
    ----------
    table : DataTable
        With its target column.
    task : {"classification", "regression"} or None, default=None
        Overrules the decision.
    report : callable, default=discard
        Called with each message.
    """
    if task is not None and task not in TARGET_TASKS:
        raise TableArgumentError(f"Unknown task {task!r}. There are: {', '.join(TARGET_TASKS)}.")
    name = table.target_name or "y"
    if table.target_column is None:
        raise TableError(f"{table.path.name} holds no target.")
    values, labels, rows = _split(table, table.target_column, name, task)
    if rows.size == 0:
        raise TableError(f"The target {quote(name)} has no values at all.")
    lacking = table.n_rows - rows.size
    if lacking:
        report(f"Left out: {lacking:,} row(s) without a value of the target {quote(name)}.")
        words = table.source.get("missing_words")
        if words:
            counts = ", ".join(f"{quote(word)} in {count:,} row(s)" for word, count in sorted(words.items()))
            report(
                f"{WARNING}the target {quote(name)} holds {counts}, taken as missing. "
                "If that is the name of a class, say so with `keep_na`, or list what is missing with `na_values`."
            )
    found, reason = ("classification", "text") if values is None else _from_numbers(values)
    if task == "regression" and values is None:
        raise TableArgumentError(f"The target {quote(name)} holds text, which no regression can predict.")
    chosen = task or found
    if chosen == "classification":
        y = labels if values is None else np.array([class_label(value) for value in values])
        sentence = _check_classes(name, y, reason if task is None else "asked for")
    else:
        assert values is not None
        y = values
        if np.ptp(y) == 0:
            raise TableError(f"The target {quote(name)} is constant ({y[0]:g}): there is nothing to predict.")
        sentence = f"Task: regression on {quote(name)} ({reason if task is None else 'asked for'})."
    report(sentence + ("" if task else " Overrule with `task`."))
    return Target(name, chosen, y, rows)


def _split(
    table: DataTable, target: np.ndarray | TextColumn, name: str, task: str | None
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Return numbers (None if the target is text), labels, and the rows that have a value."""
    if not isinstance(target, TextColumn):
        if np.isinf(target).any():
            raise TableError(f"The target {quote(name)} holds an infinity. Fix it or drop the row.")
        rows = np.flatnonzero(~np.isnan(target))
        return target[rows], np.empty(0), rows
    rows = np.flatnonzero(target.codes >= 0)
    numeric = np.array([is_number(value) for value in target.categories], dtype=bool)
    spelt = None
    if not numeric.all() and task != "classification":
        spelt = spelt_numbers(target.categories, bool(table.source.get("comma")))
    if numeric.all() or spelt is not None:
        found = [float(value) for value in target.categories] if spelt is None else spelt[0]
        if np.isinf(found).any():
            raise TableError(f"The target {quote(name)} holds an infinity. Fix it or drop the row.")
        if spelt is not None:
            table.alerts.append(describe_units(name, spelt[1], target.categories[0]))
        labels = np.array(target.categories, dtype=str)
        return np.array([*found, np.nan])[target.codes[rows]], labels[target.codes[rows]] if rows.size else labels, rows
    if task is None and numeric.any():
        texts = [value for value, is_numeric in zip(target.categories, numeric, strict=True) if not is_numeric]
        raise TableError(
            f"The target {quote(name)} mixes numbers and text (such as {list_some(texts, limit=3)}). "
            "Fix it; or, if each value is the name of a class, set `task` classification."
        )
    if task is None and parse_dates(target.categories) is not None:
        raise TableError(f"The target {quote(name)} holds dates. Turn it into numbers or classes first.")
    merged = target.merge_spellings()
    if len(merged.categories) < len(target.categories):
        table.alerts.append(describe_spellings(name, target, merged))
    return None, np.array(merged.categories, dtype=str)[merged.codes[rows]] if rows.size else np.empty(0), rows


def _from_numbers(values: np.ndarray) -> tuple[str, str]:
    return decide_task(values), f"{np.unique(values).size:,} different numbers"


def _check_classes(name: str, y: np.ndarray, reason: str) -> str:
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise TableError(f"The target {quote(name)} is constant ({classes[0]}): there is nothing to predict.")
    if classes.size > max(MOST_CLASSES, y.size // 2):
        raise TableError(
            f"The target {quote(name)} has {classes.size:,} classes for {y.size:,} rows: is it a name "
            f"or an identifier? "
            "Choose another target, or `task` regression if it is a number."
        )
    shown = ", ".join(f"{label}: {count}" for label, count in zip(classes[:6], counts[:6], strict=True))
    more = f" and {classes.size - 6} more" if classes.size > 6 else ""
    return f"Task: classification of {quote(name)} ({reason}; {classes.size} classes, {shown}{more})."
