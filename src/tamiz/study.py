"""Select the columns of a table and judge the selection: what ``tamiz select`` does, for Python, command, page and report."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.memory import available_memory
from tamiz._utils.records import to_plain
from tamiz._utils.text import discard, quote
from tamiz._utils.validation import collect_lazy, resolve_n_features_to_select
from tamiz._version import __version__
from tamiz.core.gates import possible_counts
from tamiz.errors import TableArgumentError, TableError
from tamiz.estimators.chooser import round_numbers
from tamiz.estimators.networks import find_network
from tamiz.evaluation.alerts import find_leaks, find_row_alerts, find_selection_alerts, find_target_alerts
from tamiz.evaluation.cross_validation import (
    Progress,
    check_test_target,
    choose_permutations,
    cross_validate,
    curve_sizes,
    score_held_out,
    split_folds,
)
from tamiz.evaluation.intervals import Interval
from tamiz.evaluation.metrics import Metric, get_metric
from tamiz.evaluation.pools import one_torch_thread
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.stability import library_versions
from tamiz.evaluation.subjects import Subject, read_rows
from tamiz.persistence import SavedModel
from tamiz.rows.rows import Rows
from tamiz.rows.targets import decide_task
from tamiz.selection import Selection
from tamiz.tables import DataTable, TableEncoder, as_table, read_table, write_columns
from tamiz.tables.columns import Alert, drop_unusable_columns, identifier_columns
from tamiz.tables.formats import output_suffix
from tamiz.tables.names import find_column, find_columns

#: Copies of the rows that a fold holds while it runs: prepared, and twice in the engine.
COPIES_PER_FOLD = 3
#: Rows that a training part of the folds needs to be split once more, to choose M.
_ROWS_FOR_AUTO, _ROWS_OF_A_CLASS_FOR_AUTO = 8, 3
#: Arguments of ``read_table`` that say how the cells of a file are spelt.
_OF_FILE = ("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values", "keep_na")


@dataclass(frozen=True, eq=False)
class Study:
    """A selection of columns with its model, its evaluation and what a user should know about both.

    A feature is a column of the table, whatever number of levels or indicators it has inside.

    Attributes
    ----------
    rows : Rows
        Features, target, weights, groups and time.
    targets : list of str
        Names of the targets.
    task : {"classification", "regression"}
        What the target is.
    model : estimator
        Fitted on all rows; it reads the encoded matrix.
    encoder : TableEncoder or None
        What encodes the table; None for arrays.
    units : ndarray of int
        Column of the table of each column of the encoded matrix.
    evaluation : Evaluation
        Cross-validated scores, with the selection inside each fold.
    models : dict of int to estimator
        The model for other numbers of columns, those of the curve.
    alerts : tuple of Alert
        What a user should look at first.
    settings : dict
        What was asked for.
    test : dict or None
        Score on the rows of ``test``.
    notes : tuple of str
        What was decided while the table was read and the model fitted.
    seconds : dict of str to float
        Time of the stages.
    """

    rows: Rows
    targets: list[str]
    task: str
    model: Any
    encoder: TableEncoder | None
    units: np.ndarray
    evaluation: Evaluation
    models: Mapping[int, Any] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    test: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def table(self) -> DataTable | None:
        """Return the table as it was read; None for arrays."""
        return self.rows.source if self.encoder is not None else None

    @property
    def title(self) -> str:
        """Name of the file, or what else the table is."""
        return "the table" if self.table is None else self.table.path.name

    @cached_property
    def selection(self) -> Selection:
        """Selection of columns of the table."""
        return self.selection_of(self.model)

    def selection_of(self, model: Any) -> Selection:
        """Return the selection of columns of the table of a fitted model: of ``model`` or one of ``models``."""
        found = model.selection_
        if found.n_features == len(self.rows.names) and self.rows.is_plain:
            return found.with_names(self.rows.names)
        n_units = int(self.units.max()) + 1
        best = np.full(n_units, found.n_features + 1)
        np.minimum.at(best, self.units, found.ranking)
        support = np.zeros(n_units, dtype=bool)
        support[self.units[found.support]] = True
        contribution = None
        if found.contribution is not None:
            contribution = np.zeros(n_units)
            np.maximum.at(contribution, self.units, found.contribution)
        return dataclasses.replace(
            found,
            support=support,
            ranking=best.argsort(kind="stable").argsort(kind="stable") + 1,
            feature_names=np.array(self.evaluation.names, dtype=object),
            groups=None,
            group_names=None,
            elimination=None,
            contribution=contribution,
            effects=None,
            history={name: values for name, values in found.history.items() if not name.startswith("gamma_path")},
        )

    @property
    def score(self) -> Interval:
        """Cross-validated score of the kept columns, with its 95 % interval."""
        return self.evaluation.score

    @property
    def verdict(self) -> str:
        """Sum up in one sentence: is there anything, and by how much may the kept columns be worse than all."""
        return self.evaluation.verdict

    @property
    def curve(self) -> list[tuple[int, Interval]]:
        """Score against the number of columns."""
        return self.evaluation.curve()

    @cached_property
    def saved_model(self) -> SavedModel:
        """Return the model as a file holds it: it reads the kept columns of a table by their names."""
        found = SavedModel.from_estimator(self.model, self.encoder, self.targets, self.settings.get("na_values"))
        if self.table is None:
            return found
        return dataclasses.replace(found, identifiers=[self.table.names[i] for i in identifier_columns(self.table)])

    @cached_property
    def kept(self) -> list[dict[str, Any]]:
        """List the kept columns, best first: rank, name, weight and effect (of each level where there are several), fold share.

        ``weight`` is that of the standardised column in a linear model, fitted on all rows; of several targets, each in
        units of its standard deviation, the norm. ``effect`` was measured on
        held-out rows of the folds that kept the column, see :attr:`Evaluation.effects`.
        """
        weights = _signed_weights(self.model, self.rows.y[self.rows.used])
        place = {int(feature): i for i, feature in enumerate(self.model.selection_.indices)}
        share, found = self.evaluation.fold_share, []
        names = None if self.encoder is None else self.encoder.features_
        for rank, unit in enumerate(self.selection.ordered.tolist(), start=1):
            levels = [
                {
                    "level": None if names is None else names[feature].category,
                    "weight": None if weights is None else weights[place[feature]],
                    "effect": self.evaluation.effects.get(feature),
                }
                for feature in np.flatnonzero(self.units == unit).tolist()
            ]
            alone = levels[0] if len(levels) == 1 else {"level": None, "weight": None, "effect": None}
            found.append(
                {
                    "rank": rank,
                    "feature": self.evaluation.names[unit],
                    "column": self.evaluation.names[unit],
                    "category": alone["level"],
                    "weight": alone["weight"],
                    "effect": alone["effect"],
                    "fold_share": float(share[unit]),
                    "levels": levels if len(levels) > 1 else [],
                }
            )
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of new rows: a data frame or table with the kept columns, or an array like the one given."""
        return self.model.predict(X) if self.encoder is None else self.saved_model.predict(X)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the command writes to ``selected.json``, as plain lists and numbers."""
        evaluation = self.evaluation
        return to_plain(
            {
                "tamiz": __version__,
                "file": self.settings.get("file"),
                "target": ", ".join(self.targets),
                "targets": self.targets,
                "task": self.task,
                "n_rows": self.rows.n_rows,
                "n_features": len(evaluation.names),
                "k": self.selection.n_features_to_select,
                "variant": self.settings.get("variant"),
                "network": self.settings.get("network"),
                "network_chosen": self.model.network_,
                "seed": self.settings.get("seed"),
                "selected": self.kept,
                "weight_name": "weight of the standardised column, fitted on all rows",
                "effect_name": evaluation.effect_name,
                "scores": {
                    "metric": evaluation.metric.name,
                    "model": evaluation.model,
                    "kept": evaluation.score,
                    "all_features": evaluation.interval("all_features"),
                    "random_features": evaluation.interval("random_features"),
                    "difference": evaluation.difference("all_features"),
                    "difference_random": evaluation.difference("random_features"),
                    "n_folds": len(evaluation.folds),
                    "higher_is_better": evaluation.metric.greater_is_better,
                    "chance": evaluation.chance,
                    "p_value": None if evaluation.null is None else evaluation.null.p_value,
                },
                "curve": [{"k": size, **dataclasses.asdict(score)} for size, score in self.curve],
                "stability": evaluation.stability,
                "k_of_folds": [int(fold.support.sum()) for fold in evaluation.folds],
                "null": None if evaluation.null is None else evaluation.null.as_record(),
                "verdict": self.verdict,
                "alerts": [dataclasses.asdict(alert) for alert in self.alerts],
                "test": self.test,
                "choices": self.model.selection_.choices,
                "pairs": self.pairs,
                "settings": self.settings,
                "notes": self.notes,
                "seconds": self.seconds,
                "versions": library_versions(),
            }
        )

    @property
    def pairs(self) -> list[dict[str, Any]] | None:
        """Pairs of kept columns in the fitted model, strongest first; None for a network without products."""
        if self.model.network_ != "pairs":
            return None
        names = self.evaluation.names
        grouped = self.model.selection_.groups is not None
        return [
            {
                "features": [names[unit if grouped else self.units[unit]] for unit in effect.indices],
                "strength": effect.strength,
            }
            for effect in self.model.pairs_
        ]

    def report(self, path: str | os.PathLike[str] = "report.html", **details: Any) -> Path:
        """Write the report, one HTML file that needs nothing else; ``details`` go to :func:`tamiz.report.report`."""
        from tamiz.report.page import report

        return report(self, path=path, **details)

    def save(
        self, folder: str | os.PathLike[str], *, report: bool = False, spreadsheet_safe: bool = True
    ) -> dict[str, str]:
        """Write the kept columns (CSV, JSON), the reduced table and the model into a folder; return the files by kind."""
        from tamiz.report.text import csv_text

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"selected_csv": "selected.csv", "selected_json": "selected.json", "model": "model.tamiz"}
        columns = ("rank", "column", "weight", "effect", "fold_share")
        text = csv_text(columns, [[one[c] for c in columns] for one in self.kept], spreadsheet_safe=spreadsheet_safe)
        (folder / files["selected_csv"]).write_text(text, encoding="utf-8", newline="")
        # Escaped, so that the name of a file that is not UTF-8 can be written.
        record = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        (folder / files["selected_json"]).write_text(record, encoding="utf-8")
        (folder / files["model"]).write_bytes(self.saved_model.to_bytes())
        if self.table is not None and self.table.path.exists():
            files["reduced"] = "reduced" + output_suffix(self.table)
            names = {*self.targets[1:], *(one["column"] for one in self.kept)}
            used = {*identifier_columns(self.table), *(i for i, name in enumerate(self.table.names) if name in names)}
            write_columns(self.table, sorted(used), folder / files["reduced"])
        if report:
            files["report"] = "report.html"
            self.report(folder / files["report"], spreadsheet_safe=spreadsheet_safe)
        return files

    def __repr__(self) -> str:
        score = self.score
        kept = f"{self.selection.n_features_to_select} of {len(self.evaluation.names)} columns"
        return f"Study({kept}, {self.evaluation.metric.name} {score.value:.3f} ({score.low:.3f} to {score.high:.3f}))"


def select(
    table: Any,
    target: Any = None,
    k: int | float | str = "auto",
    *,
    network: Any = "linear",
    variant: str = "soft",
    loss: str = "auto",
    class_weight: Any = "balanced",
    training: Any = None,
    groups: Any = None,
    time: Any = None,
    weights: Any = None,
    keep: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    costs: Mapping[Any, float] | None = None,
    budget: float | None = None,
    missing: str = "median",
    test: Any = None,
    scoring: str | Metric | None = None,
    cv: Any = 5,
    repeats: int = 1,
    permutations: int | None = None,
    task: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    report: Callable[[str], None] = discard,
    progress: Progress | None = None,
    **reading: Any,
) -> Study:
    """Keep the k columns of a table that predict its target best, with cross-validated scores, alerts and a verdict.

    Parameters
    ----------
    table : path, data frame, array or sparse matrix
        The table; a file of any format of :func:`tamiz.tables.read_table`.
    target : str, sequence of str, array-like or None, default=None
        Column to predict, several columns of numbers, or the values themselves. Files of some formats have their own.
    k : int, float or "auto", default="auto"
        Number of columns to keep, a fraction of them, or the fewest that score as well as the best number, within one
        standard error on inner folds.
    network, variant, loss, class_weight, training
        As of :class:`~tamiz.E2EFSClassifier`.
    groups, time, weights : str, array-like or None, default=None
        Columns, or values, that describe the rows: rows of a group stay together in a fold; with time every fold trains on
        the past of its test rows.
    keep, drop : sequence of str, default=None
        Columns that are always, or never, kept: names, numbers from 1, ranges or patterns, as in ``ignore`` of
        :func:`~tamiz.tables.read_table`; of arrays, numbers from 0.
    costs : mapping of column to number, default=None
        What columns cost; others cost 1. Only with a ``budget``.
    budget : float or None, default=None
        Takes the place of k: the kept columns together cost at most this.
    missing : {"median", "indicator"}, default="median"
        Missing numbers are replaced by the median, or also get an indicator that belongs to their column.
    test : path, data frame, (X, y) or None, default=None
        Further rows, on which the final model is scored.
    scoring, cv, repeats, n_jobs, random_state
        As in :func:`tamiz.evaluate`; ``n_jobs=None`` takes all cores that the memory allows.
    permutations : int or None, default=None
        Most shuffled targets to compare with; None: up to 99, none for networks whose fits take seconds.
    task : {"classification", "regression"} or None, default=None
        What the target is; None decides from its values.
    report : callable, default=no-op
        Called with each message about what was decided; they are in ``Study.notes`` too.
    progress : callable or None, default=None
        Called with (stage, parts done, all parts); what it raises ends the run.
    **reading
        Further arguments of :func:`~tamiz.tables.read_table`, such as ``ignore``, ``categorical`` or ``delimiter``.

    Returns
    -------
    Study

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> data = load_breast_cancer(as_frame=True)
    >>> study = select(data.frame, target="target", k=3, permutations=0)
    >>> study.selection.n_features_to_select, study.score.value > 0.9
    (3, True)
    """
    notes: list[str] = []

    def note(message: str) -> None:
        notes.append(message)
        report(message)

    started = clock.perf_counter()
    if reading.pop("keep_na", False):
        reading["na_values"] = ()  # in the words that a saved model keeps
    roles = {"groups": groups, "time": time, "sample_weight": weights}
    rows, targets, found_task = load_rows(
        table, target, roles, task=task, missing=missing, report=note, reading=reading
    )
    seconds = {"reading": clock.perf_counter() - started}
    estimator = _make_estimator(
        rows, found_task, k, keep, drop, costs, budget,
        network=network, variant=variant, loss=loss, class_weight=class_weight, training=training,
        missing="indicator" if missing == "indicator" else "error", random_state=random_state, scoring=None,
    )  # fmt: skip
    subject = Subject(estimator, rows, found_task)
    if isinstance(cv, (int, np.integer)) and groups is None and time is None:
        cv = _most_folds(rows, found_task, int(cv), note)
    folds, n_folds = split_folds(rows, found_task, cv, repeats, random_state)
    metric = get_metric(scoring, found_task)
    automatic = estimator.n_features_to_select == "auto"
    if automatic:
        _check_enough_rows(rows, found_task)

    started = clock.perf_counter()
    encoder, whole = rows.whole()
    with one_torch_thread() if not subject.in_threads else nullcontext():
        fitted = subject.fit(whole, random_state)
    model, m = fitted.selector, int(fitted.support.sum())
    seconds["final model"] = clock.perf_counter() - started
    if automatic:
        note(_describe_choice(model, len(subject.unit_names)))

    quick = find_network(network).quick
    sizes = _sizes(subject, m, automatic) if quick and budget is None else []
    if permutations is None:
        permutations = choose_permutations(rows) if quick else 0
    if not quick:
        n_fits = (5 + permutations) * len(folds) + 1
        note(f"Network {network}: {n_fits} trainings of seconds each; the linear network takes a fraction of that.")
    evaluation = cross_validate(
        subject,
        folds,
        metric,
        n_folds=n_folds,
        sizes=sizes,
        n_random=5 if quick else 3,
        n_permutations=permutations,
        n_kept=m,
        seed=random_state,
        n_jobs=_count_jobs(n_jobs, rows, len(folds)),
        progress=progress,
    )
    seconds["selection"] = float(np.median([fold.seconds for fold in evaluation.folds]))
    weighted = {} if whole.sample_weight is None else {"sample_weight": whole.sample_weight}
    others = [size for size in sizes if size != m]
    models = dict(model.fit_copies(others, whole.X, whole.y, **weighted)) if others else {}
    found = [
        *getattr(rows.source, "alerts", ()),
        *find_leaks(evaluation, rows, whole.X),
        *find_row_alerts(rows),
        *find_target_alerts(rows, found_task),
        *find_selection_alerts(evaluation, fitted.support, whole.X, subject.units),
    ]
    alerts = tuple({(alert.kind, alert.columns): alert for alert in reversed(found)}.values())[::-1]
    late = sum(not fold.converged for fold in evaluation.folds) + (not fitted.converged)
    if late:
        note(f"In {late} of {len(evaluation.folds) + 1} fits the step limit had to decide which columns to keep.")
    settings = {
        "file": str(table) if isinstance(table, (str, os.PathLike)) else None,
        "variant": variant,
        "network": network if isinstance(network, str) else type(network).__name__,
        "k": k if budget is None else None,
        "budget": budget,
        "keep": None if keep is None else list(keep),
        "drop": None if drop is None else list(drop),
        "folds": len(folds),
        "repeats": repeats,
        "permutations": permutations,
        "missing": missing,
        "seed": random_state,
        **{name: value for name, value in reading.items() if isinstance(value, (str, int, float, list, tuple))},
    }
    study = Study(
        rows, targets, found_task, model, encoder, subject.units, evaluation, models, alerts, settings, None,
        tuple(notes), seconds,
    )  # fmt: skip
    if test is None:
        return study
    return _score_test(study, test, target, reading)


def load_rows(
    table: Any,
    target: Any = None,
    roles: Mapping[str, Any] | None = None,
    *,
    task: str | None = None,
    missing: str = "median",
    report: Callable[[str], None] = discard,
    reading: Mapping[str, Any] | None = None,
) -> tuple[Rows, list[str], str]:
    """Read a table of any kind; return its rows, the names of the targets and the task.

    Parameters
    ----------
    table, target, task, missing, report
        As of :func:`select`.
    roles : mapping or None, default=None
        Names of columns, or values, of "groups", "time" and "sample_weight".
    reading : mapping or None, default=None
        Further arguments of :func:`~tamiz.tables.read_table`.
    """
    reading, note = dict(reading or {}), report
    roles = {"groups": None, "time": None, **(roles or {})}
    if missing not in ("median", "indicator"):
        raise ValueError(f"missing must be 'median' or 'indicator', got {missing!r}.")
    if roles["groups"] is not None and roles["time"] is not None:
        raise ValueError("Folds follow groups or time, not both. Leave one of them out.")
    named = {role: value for role, value in roles.items() if isinstance(value, str)}
    given = {role: value for role, value in roles.items() if value is not None and not isinstance(value, str)}
    targets = [target] if isinstance(target, str) else list(target or ()) if _is_names(target) else []
    encoder = TableEncoder(impute=missing != "indicator")
    if isinstance(table, (str, os.PathLike)):
        targets = [target] if isinstance(target, str) else [] if target is None else list(target)
        if not all(isinstance(one, str) for one in targets):
            raise ValueError("The target of a file is the name of one of its columns.")
        found, targets, values = _read_file(Path(table), targets, named, task, note, reading)
        assert found.target is not None
        y, task = values.pop("y"), found.target.task
    elif (hasattr(table, "shape") and not hasattr(table, "columns")) or isinstance(table, (list, tuple)):
        if target is None or targets:
            raise ValueError("Arrays have no names of columns: hand in the values of the target.")
        if named:
            raise ValueError(f"Arrays have no names of columns: hand in the values of {next(iter(named))}.")
        y = np.asarray(target)
        task = task or ("regression" if y.ndim > 1 else decide_task(y))
        return Rows(table, y, **given), ["y"] if y.ndim == 1 else [f"y{i}" for i in range(y.shape[1])], task
    else:
        frame = collect_lazy(table)
        columns, frame = _split_frame(frame, {*targets, *named.values()})
        found = as_table(frame, reading.get("categorical", ()))
        y = (
            np.column_stack([columns[n] for n in targets])
            if len(targets) > 1
            else columns[targets[0]]
            if targets
            else target
        )
        y = found.y if y is None and found.target is not None else y
        if y is None:
            raise ValueError("Name the target, a column of the table, or hand in its values.")
        y = np.asarray(y)
        values = {role: columns[name] for role, name in named.items()}
        known = (
            np.array([value is not None and value == value for value in y.tolist()])
            if y.ndim == 1
            else np.ones(len(y), bool)
        )
        if not known.all():
            note(f"Left out: {int((~known).sum()):,} row(s) without a value of the target.")
            found, y = found.take(np.flatnonzero(known)), y[known]
            values = {role: np.asarray(v)[known] for role, v in values.items()}
            given = {role: np.asarray(v)[known] for role, v in given.items()}
        drop_unusable_columns(found, reading.get("max_categories", 50), note)
        task = task or ("regression" if y.ndim > 1 else decide_task(y))
        targets = targets or ["y"]
    return read_rows(found, y, **values, **given, encoder=encoder), targets, task


def _is_names(target: Any) -> bool:
    return (
        isinstance(target, (list, tuple))
        and 0 < len(target) <= 50
        and all(isinstance(one, str) for one in target)
        and (len(set(target)) == len(target))
    )


def _split_frame(frame: Any, names: set[str]) -> tuple[dict[str, np.ndarray], Any]:
    """Take columns out of a data frame; return their values by name, and the rest."""
    have = [str(name) for name in getattr(frame, "column_names", None) or list(frame.columns)]
    for name in names:
        if name not in have:
            find_column(name, have, "column")  # raises, with the nearest name
    values = {name: np.asarray(frame[name]) for name in names}
    rest = [name for name in have if name not in names]
    return values, frame.select(rest) if hasattr(frame, "select") and not hasattr(frame, "loc") else frame[rest]


def _read_file(
    path: Path,
    targets: list[str],
    named: dict[str, str],
    task: str | None,
    note: Callable[[str], None],
    reading: dict[str, Any],
) -> tuple[DataTable, list[str], dict[str, Any]]:
    """Read a file; return the table, the names of its targets, and target, groups, time and weights of its rows."""
    reading = {name: value for name, value in reading.items() if value is not None}
    ignore, of_file = reading.pop("ignore", ()), {n: reading[n] for n in _OF_FILE if n in reading}
    reading.setdefault("copies", 1 + COPIES_PER_FOLD)

    def read(names: list[str], its_task: str | None) -> DataTable:
        kinds = {"sample_weight": "weights"}
        roles = [*(("target", name) for name in names[1:]), *((kinds.get(r, r), name) for r, name in named.items())]
        return read_table(
            path,
            target=names[0] if names else None,
            task=its_task,
            need_target=True,
            ignore=ignore,
            roles=roles,
            report=note,
            **reading,
        )

    try:
        table = read(targets, task if len(targets) < 2 else "regression")
    except TableArgumentError:
        parts = [part.strip() for part in targets[0].split(",")] if len(targets) == 1 else []
        if len(parts) < 2 or not all(parts):
            raise
        targets = parts
        table = read(targets, "regression")
    if len(targets) > 1 and task == "classification":
        raise TableArgumentError("Several targets are numbers: leave the task out, or name one target.")
    assert table.target is not None
    wanted = {role: table.names[find_column(name, table.names)] for role, name in named.items()}
    more = [table.names[find_column(name, table.names)] for name in targets[1:]]
    names = [str(table.target_name), *more]
    values: dict[str, Any] = {"y": table.target.y}
    if more or wanted:
        # As text: numbers of a table are float32, in which dates such as 20240131 would fall together.
        columns = list(dict.fromkeys([*more, *wanted.values()]))
        extra = read_table(path, columns=columns, categorical=columns, **of_file)
        texts = {name: _texts_of(extra, name, table.target.rows) for name in columns}
        if more:
            others = [_numbers_of(texts[name], name, reading.get("decimal", ".")) for name in more]
            for name, numbers in zip(more, others, strict=True):
                if np.ptp(numbers) == 0:
                    raise TableError(f"The target {quote(name)} is constant: there is nothing to predict.")
            values["y"] = np.column_stack([table.target.y, *others])
            note(f"Several targets: the score is over all {len(names)} of them.")
        for role, name in wanted.items():
            cells = texts[name]
            lacking = sum(cell is None for cell in cells)
            if lacking:
                raise TableError(
                    f"The column {name!r} of {role} has no value in {lacking:,} of {len(cells):,} rows. "
                    "Fill them in, or leave these rows out."
                )
            values[role] = _numbers_of(cells, name, reading.get("decimal", ".")) if role == "sample_weight" else cells
    return table, names, values


def _texts_of(table: DataTable, name: str, rows: np.ndarray) -> list[str | None]:
    """Return the cells of a column as text, None where missing."""
    position = table.names.index(name)
    text = table.texts.get(position)
    if text is not None:
        return text.take(rows).values()
    place = table.number_columns.tolist().index(position)  # a format without text
    taken = table.numbers[:, [place]]
    numbers = np.asarray(taken.toarray() if hasattr(taken, "toarray") else taken, dtype=np.float64).ravel()[rows]
    numbers = numbers + table.centres[place]
    return [None if number != number else repr(float(number)) for number in numbers]


def _numbers_of(cells: Iterable[str | None], name: str, decimal: str) -> np.ndarray:
    """Return cells as finite numbers; raise if one is none."""
    try:
        numbers = np.array([math.nan if cell is None else float(cell.replace(decimal, ".")) for cell in cells])
    except ValueError:
        raise TableError(f"The column {quote(name)} holds text; numbers are needed there.") from None
    lacking = int((~np.isfinite(numbers)).sum())
    if lacking:
        raise TableError(
            f"The column {quote(name)} has no finite value in {lacking:,} rows. Fill them in, or leave them out."
        )
    return numbers


def _make_estimator(
    rows: Rows, task: str, k: Any, keep: Any, drop: Any, costs: Any, budget: Any, **parameters: Any
) -> Any:
    """Return the estimator for what was asked for, not fitted."""
    from tamiz.estimators.e2efs import E2EFSClassifier, E2EFSRegressor

    if budget is None and costs:
        raise ValueError("costs need a budget: say what the kept columns may cost together.")
    if budget is not None and k not in ("auto", None):
        raise ValueError("budget takes the place of k: give one of them.")
    for name, specs in (("keep", keep), ("drop", drop)):
        parameters[name] = _columns_of(rows, specs, name) or None
    if budget is not None:
        found = {_columns_of(rows, [name], "costs")[0]: cost for name, cost in (costs or {}).items()}
        parameters |= {"budget": budget, "costs": found, "n_features_to_select": None}
    else:
        auto = isinstance(k, str) or k is None
        parameters["n_features_to_select"] = "auto" if auto else resolve_n_features_to_select(k, rows.n_columns)
    if parameters["training"] is None:
        del parameters["training"]
    if task == "regression":
        del parameters["class_weight"]
    return (E2EFSRegressor if task == "regression" else E2EFSClassifier)(**parameters)


def _columns_of(rows: Rows, specs: Any, what: str) -> list[Any]:
    """Return the names of columns that a user asked for by name, number, range or pattern; of arrays their numbers."""
    if not specs:
        return []
    if rows.encoder is None:
        return list(specs)
    names = list(rows.source.names)
    found = [names[i] for i in sorted(find_columns([str(one) for one in specs], names, f"column for {what}"))]
    for name in found:
        if name not in rows.names:
            raise TableArgumentError(f"{what}: column {quote(name)} is not among the features.")
    return found


def _most_folds(rows: Rows, task: str, n_folds: int, note: Callable[[str], None]) -> int:
    """Return the number of folds that the rows allow."""
    y = rows.y[rows.used]
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        most, rare = int(counts.min()), labels[int(counts.argmin())]
        if most < 2:
            raise TableError(
                f"Class {quote(rare)} of the target has one row only, which cannot be both learnt and tested. "
                "Leave that row out, or join the class with another."
            )
        if n_folds > most:
            note(f"Folds: {most} instead of {n_folds}, since class {quote(rare)} has {most} rows only.")
        return min(n_folds, most)
    if len(y) < 4:
        raise TableError(f"There are {len(y)} rows with a target; at least 4 are needed.")
    if n_folds > len(y) // 2:
        note(f"Folds: {len(y) // 2} instead of {n_folds}, for two rows in each of them.")
    return min(n_folds, len(y) // 2)


def _check_enough_rows(rows: Rows, task: str) -> None:
    """Raise if a training part of the folds cannot be split once more, to choose M."""
    y = rows.y[rows.used]
    if task == "regression" and len(y) < _ROWS_FOR_AUTO:
        raise TableError(f"k='auto' needs at least {_ROWS_FOR_AUTO} rows, there are {len(y)}: give k a number.")
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < _ROWS_OF_A_CLASS_FOR_AUTO:
            raise TableError(
                f"k='auto' needs at least {_ROWS_OF_A_CLASS_FOR_AUTO} rows of each class, and {quote(labels[counts.argmin()])} "
                f"has {counts.min()}: give k a number."
            )


def _describe_choice(model: Any, n_columns: int) -> str:
    choice = model.selection_.choices["n_features_to_select"]
    best = choice["candidates"][int(np.nanargmax(np.array(choice["mean"], dtype=float)))]
    return (
        f"Columns to keep: {choice['chosen']:,} of {n_columns:,}, the fewest within one standard error of the best mean score "
        f"(of {best:,}) on {len(choice['scores'][0])} folds of all rows; k sets the number."
    )


def _sizes(subject: Subject, m: int, automatic: bool) -> list[int]:
    """Return the numbers of columns of the curve: those that were tried, or numbers around the given one."""
    selector = subject.selector
    options = {name: getattr(selector, name) for name in ("groups", "keep", "drop")}
    least, most = possible_counts(subject.units.size, **options)
    sizes = {*round_numbers(most, least), m} if automatic else {*curve_sizes(most, m)}
    return sorted(size for size in sizes if least <= size <= most)


def _count_jobs(n_jobs: int | None, rows: Rows, n_folds: int) -> int:
    """Return how many folds to run side by side: as many as there are cores, fewer if memory is short."""
    if n_jobs is not None:
        if n_jobs < 1:
            raise ValueError(f"n_jobs must be at least 1, got {n_jobs}.")
        return min(n_jobs, n_folds)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    size, available = rows.n_rows * rows.columns.size * 4 * COPIES_PER_FOLD, available_memory()
    if available is not None and size:
        cores = min(cores, max(1, int(available / 2 / size)))
    return min(cores, n_folds)


def _score_test(study: Study, test: Any, target: Any, reading: dict[str, Any]) -> Study:
    """Score the final model on further rows."""
    metric, train = study.evaluation.metric, study.rows
    saved, notes = None if study.encoder is None else study.saved_model, list[str]()
    if saved is None:
        X, y = test
        y = np.asarray(y)
    elif isinstance(test, (str, os.PathLike)):
        spelling = {name: reading[name] for name in _OF_FILE if reading.get(name) is not None}
        try:
            found, _, values = _read_file(Path(test), list(study.targets), {}, study.task, discard, dict(spelling))
            columns = read_table(test, columns=saved.columns, categorical=saved.text_columns, **spelling)
        except TableError as error:
            raise type(error)(f"{test}: {error}") from None
        y = values["y"]
        assert found.target is not None
        X = saved.encode(columns.take(found.target.rows), notes.append)
    else:
        frame, y = test if isinstance(test, tuple) else (collect_lazy(test), None)
        if y is None:
            given, frame = _split_frame(frame, set(study.targets))
            y = (
                np.column_stack([given[n] for n in study.targets])
                if len(study.targets) > 1
                else given[study.targets[0]]
            )
        X, y = saved.encode(frame, notes.append), np.asarray(y)
    label = test if isinstance(test, (str, os.PathLike)) else "the rows to test on"
    try:
        check_test_target(y, train.y, study.task)
    except ValueError as error:
        raise TableError(f"{label}: {error}") from None
    y_train = train.y
    if saved is None:
        response = metric.read(study.model, X)
    elif metric.response == "predict":
        response = saved.predict(X)
        if study.task == "classification":
            y, y_train = y.astype(str), y_train.astype(str)
    else:
        scores = saved.scores(X)
        response = scores[:, 0] if scores.shape[1] == 1 else scores
    score = score_held_out(metric, y, response, y_train, seed=study.settings["seed"])
    record = {"file": str(label), "n_rows": len(y), **dataclasses.asdict(score)}
    evaluation = dataclasses.replace(study.evaluation, test_score=score)
    return dataclasses.replace(study, evaluation=evaluation, test=record, notes=(*study.notes, *notes))


def _signed_weights(model: Any, y: np.ndarray) -> list[float] | None:
    """Return one weight for each kept column of the matrix: signed for one output, its size over several."""
    weights = getattr(model, "coef_", None) if hasattr(getattr(model, "model_", None), "coef") else None
    if weights is None:
        return None
    weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    n_kept = model.selection_.n_features_to_select
    if weights.shape[1] < n_kept:
        return None
    weights = weights[:, :n_kept]
    if y.ndim > 1:
        weights = weights / y.std(axis=0)[:, None]
    elif len(weights) == 2:
        return (weights[1] - weights[0]).tolist()
    return weights[0].tolist() if len(weights) == 1 else np.linalg.norm(weights, axis=0).tolist()
