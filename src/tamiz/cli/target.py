"""The target: classes or numbers, found from its values and said aloud."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tamiz.cli.columns import holds_dates
from tamiz.cli.delimited import is_number
from tamiz.cli.errors import EXIT_USAGE, UserError, listed, shorten
from tamiz.cli.table import Table, TextColumn
from tamiz.preprocessing.targets import MOST_CLASSES, decide_task

TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Target:
    """A target that was understood.

    ``y`` holds class labels as text, or float64 numbers; ``rows`` the rows of the table that have a target.
    """

    name: str
    task: str
    y: np.ndarray
    rows: np.ndarray
    sentence: str


def label_of(value: float) -> str:
    """How a number is called as a class.

    Examples
    --------
    >>> label_of(1.0), label_of(2.5)
    ('1', '2.5')
    """
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def understand_target(table: Table, task: str | None, say: Callable[[str], None]) -> Target:
    """Decide between classification and regression, and say so.

    Text means classes; what numbers mean, :func:`tamiz.preprocessing.targets.decide_task` says.

    Parameters
    ----------
    table : Table
        With its target column.
    task : str or None
        "classification" or "regression" overrules.
    say : callable
        Where the sentence goes.
    """
    if task is not None and task not in TASKS:
        raise UserError(f"Unknown task {task!r}. There are: {', '.join(TASKS)}.", EXIT_USAGE)
    name = table.target_name or "y"
    if table.target is None:
        raise UserError(f"{table.path.name} holds no target.")
    values, labels, rows = _split(table.target, name, task)
    if rows.size == 0:
        raise UserError(f"The target {shorten(name)} has no values at all.")
    lacking = table.n_rows - rows.size
    if lacking:
        say(f"Left out: {lacking:,} row(s) without a value of the target {shorten(name)}.")
    found, reason = ("classification", "text") if values is None else _from_numbers(values)
    if task == "regression" and values is None:
        raise UserError(f"The target {shorten(name)} holds text, which no regression can predict.", EXIT_USAGE)
    chosen = task or found
    if chosen == "classification":
        y = labels if values is None else np.array([label_of(value) for value in values])
        sentence = _check_classes(name, y, reason if task is None else "asked for")
    else:
        assert values is not None
        y = values
        if np.ptp(y) == 0:
            raise UserError(f"The target {shorten(name)} is constant ({y[0]:g}): there is nothing to predict.")
        sentence = f"Task: regression on {shorten(name)} ({reason if task is None else 'asked for'})."
    say(sentence + ("" if task else " Overrule with --task."))
    return Target(name, chosen, y, rows, sentence)


def _split(
    target: np.ndarray | TextColumn, name: str, task: str | None
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Numbers (None where the target is text), labels, and the rows that have a value."""
    if not isinstance(target, TextColumn):
        if np.isinf(target).any():
            raise UserError(f"The target {shorten(name)} holds an infinity. Mend it or drop the row.")
        rows = np.flatnonzero(~np.isnan(target))
        return target[rows], np.empty(0), rows
    rows = np.flatnonzero(target.codes >= 0)
    categories = np.array(target.categories, dtype=str)
    labels = categories[target.codes[rows]] if rows.size else np.empty(0, dtype=str)
    numeric = np.array([is_number(value) for value in target.categories], dtype=bool)
    if numeric.all():
        numbers = np.array([float(value) for value in target.categories])
        if np.isinf(numbers).any():
            raise UserError(f"The target {shorten(name)} holds an infinity. Mend it or drop the row.")
        return (numbers[target.codes[rows]] if rows.size else np.empty(0)), labels, rows
    if task is None and numeric.any():
        texts = [value for value, is_numeric in zip(target.categories, numeric, strict=True) if not is_numeric]
        raise UserError(
            f"The target {shorten(name)} mixes numbers and text (such as {listed(texts, limit=3)}). "
            "Mend it; or, if each value is the name of a class, say --task classification."
        )
    if task is None and holds_dates(target):
        raise UserError(f"The target {shorten(name)} holds dates. Turn it into numbers or classes first.")
    return None, labels, rows


def _from_numbers(values: np.ndarray) -> tuple[str, str]:
    return decide_task(values), f"{np.unique(values).size:,} different numbers"


def _check_classes(name: str, y: np.ndarray, reason: str) -> str:
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise UserError(f"The target {shorten(name)} is constant ({classes[0]}): there is nothing to predict.")
    if classes.size > max(MOST_CLASSES, y.size // 2):
        raise UserError(
            f"The target {shorten(name)} has {classes.size:,} classes for {y.size:,} rows: is it a name "
            f"or an identifier? "
            "Choose another target, or --task regression if it is a number."
        )
    shown = ", ".join(f"{label}: {count}" for label, count in zip(classes[:6], counts[:6], strict=True))
    more = f" and {classes.size - 6} more" if classes.size > 6 else ""
    return f"Task: classification of {shorten(name)} ({reason}; {classes.size} classes, {shown}{more})."
