"""Read ``--keep``, ``--drop``, ``--costs``, ``--budget`` and ``--missing``: what a selection may and must hold."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.text import quote
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.select import SelectOptions
from tamiz.core.gates import possible_counts, read_gates
from tamiz.tables.encode import Feature
from tamiz.tables.names import find_columns


@dataclass(frozen=True)
class Constraints:
    """Hold what is handed to the estimators beside M.

    Parameters
    ----------
    units : ndarray of int, shape (n_features,)
        Which unit of selection each feature of the encoded table belongs to: a column of the file or, with
        ``--split-categories``, itself.
    parameters : dict
        Parameters of the estimators.
    expected_size : int
        Number of units that are kept; with a budget about so many.
    counts : (int, int)
        The least and the largest number of units that ``--keep`` and ``--drop`` leave possible.
    """

    units: np.ndarray
    expected_size: int
    counts: tuple[int, int]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def n_units(self) -> int:
        """Return the number of columns of the file, or of features."""
        return int(self.units.max()) + 1

    @property
    def is_plain(self) -> bool:
        """Check whether every feature is a unit of its own."""
        return self.n_units == self.units.size


def read_constraints(
    options: SelectOptions, k: int | float | str, features: list[Feature], names: list[str]
) -> Constraints:
    """Return what the options ask for; raise CommandError if they are at odds.

    Parameters
    ----------
    options : SelectOptions
        What the user said.
    k : int, float or "auto"
        M, a number, a fraction, or left to the data; not used with a budget.
    features : list of Feature
        Columns of the encoded table.
    names : list of str
        Names of the columns of the file.
    """
    by_column: dict[int, list[int]] = {}
    for place, feature in enumerate(features):
        by_column.setdefault(feature.column, []).append(place)
    labels = [feature.name if options.split_categories else feature.column_name for feature in features]
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    units = np.array([number[label] for label in labels])
    parameters: dict[str, Any] = {}
    if len(number) < len(features):
        parameters["groups"] = labels
    for option in ("keep", "drop"):
        columns = sorted(find_columns(getattr(options, option) or (), names, f"column for --{option}"))
        for column in columns:
            if column not in by_column:
                raise CommandError(f"--{option}: column {quote(names[column])} is not among the features.", EXIT_USAGE)
        if columns:
            parameters[option] = [i for column in columns for i in by_column[column]]
    if options.costs or options.budget is not None:
        parameters["costs"] = _costs(options.costs or [], names, by_column, len(features))
        parameters["budget"] = options.budget
    try:
        counts = possible_counts(len(features), **parameters)
        wanted = None if options.budget is not None else counts[0] if isinstance(k, str) else k
        gates, _ = read_gates(len(features), wanted, **parameters)
    except ValueError as error:
        raise CommandError(_as_options(str(error)), EXIT_USAGE) from None
    if options.missing == "indicator":
        parameters["missing"] = "indicator"
    return Constraints(units, gates.expected_size, counts, parameters)


def _as_options(message: str) -> str:
    """Return a message of the estimators with the names of the options."""
    message = message.replace("n_features_to_select", "-k")
    for name in ("budget", "costs", "keep", "drop"):
        message = re.sub(rf"(?<![\w-]){name}(?= (and|are|holds|leaves|needs)\b)", f"--{name}", message)
    return message[0].upper() + message[1:] + ("" if message.endswith((".", "?")) else ".")


def _costs(given: list[str], names: list[str], by_column: dict[int, list[int]], n_features: int) -> list[float]:
    """Return the cost of each feature; that of a column of categories is divided among them."""
    found: dict[int, float] = {}
    for name, text in (pair for entry in given for pair in _pairs(entry)):
        try:
            cost = float(text)
        except ValueError:
            raise CommandError(
                f"--costs: the cost of {quote(name)} must be a number, got {text!r}.", EXIT_USAGE
            ) from None
        if not (np.isfinite(cost) and cost >= 0):
            raise CommandError(
                f"--costs: the cost of {quote(name)} must be a number from 0 on, got {text}.", EXIT_USAGE
            )
        for column in find_columns([name], names, "column for --costs"):
            found[column] = cost
    costs = np.ones(n_features)
    for column, places in by_column.items():
        costs[places] = found.get(column, 1.0) / len(places)
    return costs.tolist()


def _pairs(entry: str) -> list[tuple[str, str]]:
    """Return names and costs of an entry: NAME=NUMBER, or a CSV file of two columns."""
    path = Path(entry)
    if path.is_file():
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = [row for row in csv.reader(lines) if row]
        if any(len(row) != 2 for row in rows):
            raise CommandError(f"--costs: {path} must hold two columns, the name of a column and its cost.", EXIT_USAGE)
        if rows and not _is_number(rows[0][1]):  # a header
            rows = rows[1:]
        return [(name.strip(), cost) for name, cost in rows]
    name, equals, cost = entry.rpartition("=")
    if not equals:
        raise CommandError(f"--costs takes NAME=NUMBER or a CSV file of names and costs, got {entry!r}.", EXIT_USAGE)
    return [(name, cost)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
