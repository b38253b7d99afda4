"""Read features, target, groups, time and weights of a table of any kind as rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from tamiz._utils.text import discard, quote
from tamiz._utils.validation import collect_lazy
from tamiz.errors import TableArgumentError, TableError
from tamiz.rows.rows import Rows
from tamiz.rows.targets import decide_task
from tamiz.tables.columns import drop_unusable_columns
from tamiz.tables.encode import TableEncoder, list_features
from tamiz.tables.names import MISSING, ReadOptions, find_column
from tamiz.tables.read import read_table
from tamiz.tables.table import DataTable, TextColumn, as_table, column_names, columns_of_frame, load_polars

#: Copies of the rows that a fold holds while it runs: prepared, and twice in the engine.
COPIES_PER_FOLD = 3
#: Arguments of ``read_table`` that say how the cells of a file are spelt.
SPELLING = ("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values")


def read_rows(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    time: Any = None,
    encoder: TableEncoder | None = None,
) -> Rows:
    """Take arrays, sparse matrices, data frames or tables of :func:`~tamiz.tables.read_table` as rows.

    Data frames and tables are encoded by a :class:`~tamiz.tables.TableEncoder`; its features are those of all rows, its
    medians and categories those of each training part.

    Examples
    --------
    >>> import pandas
    >>> rows = read_rows(pandas.DataFrame({"age": [5, 6, 7, 8], "colour": ["red", "blue", "green", "red"]}))
    >>> rows.names, rows.columns.tolist(), rows.is_plain
    (['age', 'colour'], [0, 1, 1, 1], False)
    """
    if isinstance(X, Rows):
        return X
    shared = {"sample_weight": sample_weight, "groups": groups, "time": time}
    if sp.issparse(X) or isinstance(X, (np.ndarray, list, tuple)):
        return Rows(X, y, **shared)
    encoder = TableEncoder() if encoder is None else clone(encoder)
    table = as_table(X, ReadOptions(categorical=encoder.categorical))
    if table is not X and encoder.features is None:
        drop_unusable_columns(table, encoder.max_categories)
    features = list_features(table) if encoder.features is None else list(encoder.features)
    names = list(dict.fromkeys(feature.column_name for feature in features))
    columns = [names.index(feature.column_name) for feature in features]
    y = table.y if y is None else y
    return Rows(table, y, **shared, encoder=encoder.set_params(features=features), columns=columns, names=names)


def load_rows(
    table: Any,
    target: Any = None,
    roles: Mapping[str, Any] | None = None,
    *,
    task: str | None = None,
    missing: str = "median",
    report: Callable[[str], None] = discard,
    reading: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str] | None] | None = None,
) -> tuple[Rows, list[str], str]:
    """Read a table of any kind with its target; return its rows, the names of the targets and the task.

    Parameters
    ----------
    table : path, data frame, array or sparse matrix
        The table.
    target : str, sequence of str, array-like or None, default=None
        Column to predict, several columns of numbers, or the values themselves. Files of some formats have their own.
    roles : mapping or None, default=None
        Names of columns, or values, of "groups", "time" and "sample_weight".
    task : {"classification", "regression"} or None, default=None
        What the target is; None decides from its values.
    missing : {"median", "indicator"}, default="median"
        How missing numbers are encoded.
    report : callable, default=discard
        Called with each message about what was decided.
    reading : mapping or None, default=None
        Further arguments of :func:`~tamiz.tables.read_table`.
    levels : mapping of str to (sequence of str or None), or None, default=None
        Values of the columns of text in all rows, where ``table`` is a sample; None for very many.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [5, 6, 7, 8], "ward": ["a", "a", "b", "b"], "ill": ["no", "yes", "no", "yes"]})
    >>> rows, targets, task = load_rows(frame, "ill", {"groups": "ward"})
    >>> rows.names, rows.groups.tolist(), targets, task
    (['age'], [0, 0, 1, 1], ['ill'], 'classification')
    """
    roles = {role: value for role, value in (roles or {}).items() if value is not None}
    if missing not in ("median", "indicator"):
        raise ValueError(f"missing must be 'median' or 'indicator', got {missing!r}.")
    if "groups" in roles and "time" in roles:
        raise ValueError("Folds follow groups or time, not both. Leave one of them out.")
    named = {role: value for role, value in roles.items() if isinstance(value, str)}
    is_file = isinstance(table, (str, os.PathLike))
    texts = isinstance(target, (list, tuple)) and 0 < len(target) <= 50 and all(isinstance(one, str) for one in target)
    texts = texts and (is_file or len({*target}) == len(target))  # else the values of the target
    targets = [target] if isinstance(target, str) else list(target) if texts else []
    if isinstance(table, (list, tuple)) or (hasattr(table, "shape") and not hasattr(table, "columns")):
        if target is None or targets or named:
            what = next(iter(named), "the target")
            raise ValueError(f"Arrays have no names of columns: hand in the values of {what}.")
        y = np.asarray(target)
        return Rows(table, y, **roles), _target_names(y), task or ("regression" if y.ndim > 1 else decide_task(y))
    if target is not None and not targets:
        if is_file:
            raise ValueError("The target of a file is the name of one of its columns.")
        table, targets = _with_target(table, np.asarray(target))
    reading = {"copies": 1 + COPIES_PER_FOLD} | {k: value for k, value in (reading or {}).items() if value is not None}
    spelling = {name: reading[name] for name in SPELLING if name in reading}
    source = collect_lazy(table)

    def read(names: list[str], its_task: str | None) -> DataTable:
        others = [("target", name) for name in names[1:]]
        others += [("weights" if role == "sample_weight" else role, name) for role, name in named.items()]
        first = names[0] if names else None
        return read_table(source, target=first, task=its_task, need_target=True, roles=others, report=report, **reading)

    try:
        found = read(targets, task if len(targets) < 2 else "regression")
    except TableArgumentError:
        parts = [part.strip() for part in targets[0].split(",")] if len(targets) == 1 else []
        if len(parts) < 2 or not all(parts):
            raise
        targets = parts
        found = read(targets, "regression")
    if len(targets) > 1 and task == "classification":
        raise TableArgumentError("Several targets are numbers: leave the task out, or name one target.")
    wanted = {role: found.names[find_column(name, found.names)] for role, name in named.items()}
    more = [found.names[find_column(name, found.names)] for name in targets[1:]]
    values: dict[str, Any] = {"y": found.y}
    if more or wanted:
        # As text: numbers of a table are float32, in which dates such as 20240131 would fall together.
        columns = list(dict.fromkeys([*more, *wanted.values()]))
        extra = read_table(source, columns=columns, categorical=columns, **spelling)
        cells = {name: extra.column_values(name)[found.rows] for name in columns}
        decimal = spelling.get("decimal", ".")
        if more:
            others = [_as_numbers(cells[name], name, decimal) for name in more]
            for name, numbers in zip(more, others, strict=True):
                if np.ptp(numbers) == 0:
                    raise TableError(f"The target {quote(name)} is constant: there is nothing to predict.")
            values["y"] = np.column_stack([found.y, *others])
            report(f"Several targets: the score is over all {1 + len(more)} of them.")
        for role, name in wanted.items():
            if lacking := sum(cell is None or cell != cell for cell in cells[name]):
                raise TableError(
                    f"The column {name!r} of {role} has no value in {lacking:,} of {len(cells[name]):,} rows. "
                    "Fill them in, or leave these rows out."
                )
            values[role] = _as_numbers(cells[name], name, decimal) if role == "sample_weight" else cells[name]
    if levels is not None:
        _add_levels(found, levels, reading.get("max_categories", 50), report)
    values |= {role: np.asarray(value)[found.rows] for role, value in roles.items() if role not in named}
    rows = read_rows(found, **values, encoder=TableEncoder(impute=missing != "indicator"))
    return rows, [str(found.target_name), *more], str(found.task)


def _add_levels(
    table: DataTable, levels: Mapping[str, Sequence[str] | None], max_categories: int, report: Callable[[str], None]
) -> None:
    """Add the values of columns of text that a sample lacks; leave out columns of too many values."""
    for position, text in list(table.texts.items()):
        name = table.names[position]
        known = {category.casefold() for category in text.categories} | set(MISSING)
        every = levels.get(name, ())
        more = [] if every is None else TextColumn.from_values(list(every)).canonical().categories
        categories = sorted([*text.categories, *(level for level in more if level.casefold() not in known)])
        if every is None or len(categories) > max_categories:
            table.left_out[position] = f"text of more than {max_categories} different values"
            del table.texts[position]
            report(f"Left out: {quote(name)}, text of more than {max_categories} different values in all rows.")
        elif len(categories) > len(text.categories):
            place = np.array([*(categories.index(category) for category in text.categories), -1], dtype=np.int32)
            table.texts[position] = TextColumn(place[text.codes], categories)


def _target_names(y: np.ndarray) -> list[str]:
    return ["y"] if y.ndim == 1 else [f"y{i}" for i in range(y.shape[1])]


def _with_target(frame: Any, y: np.ndarray) -> tuple[Any, list[str]]:
    """Add the values of the target to a data frame, as polars columns whose names are not taken."""
    names = column_names(frame)
    frame = columns_of_frame(frame, range(len(names)), names)
    if len(y) != frame.height:
        raise ValueError(f"X has {frame.height} rows, but y has {len(y)} values; both must have the same length.")
    called = _target_names(y)
    while {*called} & {*names}:
        called = [f"target {name}" for name in called]
    columns = zip(called, y.reshape(len(y), -1).T, strict=True)
    series = [load_polars().Series(name, values.tolist(), strict=False) for name, values in columns]
    return frame.with_columns(series), called


def _as_numbers(cells: np.ndarray, name: str, decimal: str) -> np.ndarray:
    if cells.dtype == object:
        try:
            cells = np.array([np.nan if cell is None else float(cell.replace(decimal, ".")) for cell in cells])
        except ValueError:
            raise TableError(f"The column {quote(name)} holds text; numbers are needed there.") from None
    lacking = int((~np.isfinite(cells)).sum())
    if lacking:
        raise TableError(
            f"The column {quote(name)} has no finite value in {lacking:,} rows. Fill them in, or leave them out."
        )
    return cells
