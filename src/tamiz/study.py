"""Select the columns of a table and judge the selection: what ``tamiz select`` does, for Python, command, page and report."""

from __future__ import annotations

import dataclasses
import inspect
import json
import numbers
import os
import time as clock
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import connect, library_versions
from tamiz._utils.text import counted, discard, quote, suggest, to_plain
from tamiz._utils.validation import collect_lazy, resolve_n_features_to_select
from tamiz._version import __version__
from tamiz.core.gates import possible_counts
from tamiz.errors import TableArgumentError, TableError
from tamiz.estimators.chooser import round_numbers
from tamiz.estimators.networks import find_network
from tamiz.estimators.passes import refit
from tamiz.estimators.training import GATING_PARAMETERS, is_auto
from tamiz.evaluation import cross_validation as validation
from tamiz.evaluation.alerts import find_alerts
from tamiz.evaluation.folds import possible_folds
from tamiz.evaluation.intervals import Interval
from tamiz.evaluation.knockoffs import check_fdr, find_by_knockoffs
from tamiz.evaluation.metrics import Metric, get_metric
from tamiz.evaluation.pools import count_jobs, one_torch_thread
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.subjects import Subject
from tamiz.persistence import SavedModel
from tamiz.rows.passes import PassRecord
from tamiz.rows.rows import Rows
from tamiz.selection import Selection
from tamiz.tables import DataTable, ReadOptions, TableEncoder, read_table, write_columns
from tamiz.tables.columns import Alert, identifier_columns
from tamiz.tables.formats import output_suffix
from tamiz.tables.load import COPIES_PER_FOLD, SPELLING, load_rows
from tamiz.tables.names import find_columns
from tamiz.tables.passes import BigTable, open_large

#: Parameters of the estimator that :func:`select` hands on.
_MODEL_OPTIONS = ("network", "variant", "loss", "class_weight", "training", "keep", "drop", "costs", "budget")

#: What the command and the estimators call what :func:`select` calls otherwise.
_OF_OTHERS = {
    "seed": "random_state",
    "folds": "cv",
    "jobs": "n_jobs",
    "n_features_to_select": "k",
    "sample_weight": "weights",
}


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
    q_values : ndarray of float or None
        With ``fdr``: smallest false discovery rate at which each column of the table would be kept.
    passes : tuple of PassRecord
        What was read of a table beyond memory, of which the rows of the study are a sample; empty for others.
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
    passes: tuple[PassRecord, ...] = ()
    q_values: np.ndarray | None = None

    @property
    def table(self) -> DataTable | None:
        """Table as it was read; None for arrays."""
        return self.rows.source if self.encoder is not None else None

    @property
    def title(self) -> str:
        """Name of the file, or what else the table is."""
        return Path(
            self.settings.get("file") or "the table" if self.table is None or self.passes else self.table.path
        ).name

    @cached_property
    def selection(self) -> Selection:
        """Selection of columns of the table."""
        return self.selection_of(self.model)

    def selection_of(self, model: Any) -> Selection:
        """Selection of columns of the table by a fitted model: ``model`` or one of ``models``."""
        found = model.selection_
        if found.n_features == len(self.rows.names) and self.rows.is_plain:
            return found.with_names(self.rows.names)
        names = np.array(self.evaluation.names, dtype=object)
        by_column = dataclasses.replace(found, groups=self.units, group_names=names)
        contribution = np.zeros(len(names))
        np.maximum.at(contribution, self.units, found.contribution)
        return dataclasses.replace(
            found,
            support=by_column.group_support,
            ranking=by_column.group_ranking,
            feature_names=names,
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
        """Model as a file holds it, which reads the kept columns of a table by their names."""
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
                    **({} if self.q_values is None else {"q_value": float(self.q_values[unit])}),
                    "levels": levels if len(levels) > 1 else [],
                }
            )
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of new rows: a data frame or table with the kept columns, or an array like the one given."""
        return self.model.predict(X) if self.encoder is None else self.saved_model.predict(X)

    def to_dict(self) -> dict[str, Any]:
        """Collect everything that the command writes to ``selected.json``, as plain lists and numbers."""
        evaluation = self.evaluation
        return to_plain(
            {
                "tamiz": __version__,
                "file": self.settings.get("file"),
                "target": ", ".join(self.targets),
                "targets": self.targets,
                "task": self.task,
                "n_rows": self.passes[0].n_rows if self.passes else self.rows.n_rows,
                "n_features": evaluation.n_features,
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
                "clusters": self.clusters,
                "pairs": self.pairs,
                "settings": self.settings,
                "notes": self.notes,
                "seconds": self.seconds,
                "passes": [dataclasses.asdict(one) for one in self.passes],
                "versions": library_versions(),
            }
        )

    @cached_property
    def clusters(self) -> list[list[str]]:
        """Columns that carry the same information as a kept one, kept or not, in clusters; the best kept one first."""
        from tamiz.report.page import gather

        shown, about = gather(self)
        names = shown.columns.names
        return [[names[column] for column, _ in cluster] for cluster in shown.clusters(about.task)]

    @property
    def pairs(self) -> list[dict[str, Any]] | None:
        """Pairs of kept columns in the fitted model, strongest first; None for a network without products."""
        if self.model.network_ != "pairs":
            return None
        names, effects = self.evaluation.names, self.model.pairs_
        return [{"features": [names[i] for i in one.indices], "strength": one.strength} for one in effects]

    def report(self, path: str | os.PathLike[str] = "report.html", **details: Any) -> Path:
        """Write the report, one HTML file that needs nothing else; ``details`` go to :func:`tamiz.report.report`."""
        from tamiz.report import report

        return report(self, path=path, **details)

    def save(
        self, folder: str | os.PathLike[str], *, report: bool = False, spreadsheet_safe: bool = True
    ) -> dict[str, str]:
        """Write the kept columns (CSV, JSON), the reduced table and the model into a folder; return the files by kind."""
        from tamiz.report.text import csv_text

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"selected_csv": "selected.csv", "selected_json": "selected.json", "model": "model.tamiz"}
        columns = ("rank", "column", "weight", "effect", "fold_share", *(() if self.q_values is None else ("q_value",)))
        text = csv_text(columns, [[one[c] for c in columns] for one in self.kept], spreadsheet_safe=spreadsheet_safe)
        (folder / files["selected_csv"]).write_text(text, encoding="utf-8", newline="")
        # Escaped, so that the name of a file that is not UTF-8 can be written.
        record = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        (folder / files["selected_json"]).write_text(record, encoding="utf-8")
        (folder / files["model"]).write_bytes(self.saved_model.to_bytes())
        if self.table is not None and self.passes and hasattr(self.table.source["scan"], "sink_parquet"):
            files["reduced"] = "reduced.parquet"
            kept = dict.fromkeys([*(one["column"] for one in self.kept), *self.targets])
            self.table.source["scan"].select(list(kept)).sink_parquet(folder / files["reduced"])
        elif self.table is not None and self.table.path.exists():
            files["reduced"] = "reduced" + output_suffix(self.table)
            names = {*self.targets[1:], *(one["column"] for one in self.kept)}
            used = {*identifier_columns(self.table), *(i for i, name in enumerate(self.table.names) if name in names)}
            write_columns(self.table, sorted(used), folder / files["reduced"])
        if report:
            files["report"] = "report.html"
            self.report(folder / files["report"], spreadsheet_safe=spreadsheet_safe)
        return files

    def __repr__(self) -> str:
        return repr(self.evaluation).replace("Evaluation", "Study", 1)


def select(
    table: Any,
    target: Any = None,
    k: int | float | str = "auto",
    *,
    fdr: float | None = None,
    groups: Any = None,
    time: Any = None,
    weights: Any = None,
    missing: str = "median",
    task: str | None = None,
    test: Any = None,
    scoring: str | Metric | None = None,
    cv: Any = 5,
    repeats: int = 1,
    permutations: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    max_memory: float | None = None,
    scheduler: str | None = None,
    report: Callable[[str], None] = discard,
    progress: validation.Progress | None = None,
    **options: Any,
) -> Study:
    """Keep the k columns of a table that predict its target best, with cross-validated scores, alerts and a verdict.

    Parameters
    ----------
    table : path, data frame, array or sparse matrix
        The table; a file of any format of :func:`tamiz.tables.read_table`. A Parquet, CSV, IPC or NDJSON file, a pattern or
        folder of them, a ``polars.LazyFrame`` or a Dask data frame may be larger than memory.
    target : str, sequence of str, array-like or None, default=None
        Column to predict, several columns of numbers, or the values themselves. Files of some formats have their own.
    k : int, float or "auto", default="auto"
        Number of columns to keep, a fraction of them, or the fewest that score as well as the best number, within one
        standard error on inner folds.
    fdr : float or None, default=None
        In place of ``k``: keep what :class:`~tamiz.KnockoffSelection` finds with this bound on the false discovery rate, the
        expected share of false columns among those kept. The folds repeat the search, without permutations by default.
    groups, time, weights : str, array-like or None, default=None
        Columns, or values, that describe the rows: rows of a group stay together in a fold; with time every fold trains on
        the past of its test rows.
    missing : {"median", "indicator"}, default="median"
        Missing numbers are replaced by the median, or also get an indicator that belongs to their column.
    task : {"classification", "regression"} or None, default=None
        What the target is; None decides from its values.
    test : path, data frame, (X, y) or None, default=None
        Further rows, on which the final model is scored.
    scoring, cv, repeats, n_jobs, random_state
        As in :func:`tamiz.evaluate`; ``n_jobs=None`` takes all cores that the memory allows.
    permutations : int or None, default=None
        Most shuffled targets to compare with; None: up to 99, none for networks whose fits take seconds.
    max_memory : float or None, default=None
        Bytes that the study may take; None is a quarter of what is free. A larger table is read in passes: the study is one of a
        sample of its rows, the final model is trained on the kept columns of all rows, and scored on a tenth that is held out.
    scheduler : str or None, default=None
        Address of a Dask scheduler, whose workers read the rows of such a table and run folds and permutations.
    report : callable, default=no-op
        Called with each message about what was decided; they are in ``Study.notes`` too.
    progress : callable or None, default=None
        Called with (stage, parts done, all parts), bytes for "reading rows"; what it raises ends the run.
    **options
        ``network``, ``variant``, ``loss``, ``class_weight``, ``training``, ``keep``, ``drop``, ``costs`` and ``budget`` of
        :class:`~tamiz.E2EFSClassifier`; columns to keep or drop may be names, numbers from 1, ranges or patterns, those of
        arrays are numbers from 0. Further arguments of :func:`~tamiz.tables.read_table`, such as ``ignore``,
        ``categorical`` or ``delimiter``.

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

    with connect(scheduler):
        started = clock.perf_counter()
        model_options, reading = _split_options(options)
        network = model_options.setdefault("network", "auto")
        if fdr is not None:
            check_fdr(fdr, {"k": k, "missing": missing, "weights": weights, **model_options})
        roles = {"groups": groups, "time": time, "sample_weight": weights}
        (source, big), how = open_large(table, max_memory, reading), reading

        def load(frame: Any, report: Callable[[str], None] = discard) -> tuple[Rows, list[str], str]:
            options = dict(how)
            if big is not None:
                options["categorical"] = [name for name in how["categorical"] if name in frame.columns]
            levels = None if big is None else big.levels
            return load_rows(
                frame, target, roles, task=task, missing=missing, report=report, reading=options, levels=levels
            )

        def choose(frame: Any, n_columns: int) -> list[str]:
            rows, _, task = load(frame)
            n_columns = min(n_columns, rows.n_columns)
            plain = {**model_options, "network": "linear"} if is_auto(network) else model_options
            subject = Subject(_make_estimator(rows, task, n_columns, missing, random_state, plain), rows, task)
            support = subject.fit(rows.whole()[1], random_state).support
            return [name for name, kept in zip(subject.unit_names, support, strict=True) if kept]

        if big is not None:
            target, roles, how = big.name_columns(target, roles, reading)
            for name in ("keep", "drop"):
                if model_options.get(name):
                    model_options[name] = big.find(model_options[name], f"column for {name}")
            if costs := model_options.get("costs"):
                model_options["costs"] = {big.find([one], "column for costs")[0]: cost for one, cost in costs.items()}
            gated = fdr is not None or any(model_options.get(name) is not None for name in GATING_PARAMETERS)
            exact = isinstance(k, (int, np.integer)) and not gated
            source = big.sample(random_state, progress, int(k) if exact else None, choose)
            note(big.describe())
        rows, targets, task = load(source, note)
        seconds = {"reading": clock.perf_counter() - started}

        started = clock.perf_counter()
        rarest = np.unique(rows.y[rows.used], return_counts=True)[1].min() if task == "classification" else 3
        if is_auto(network) and rarest < 3:
            network = model_options["network"] = "linear"
            note("Network: linear, since a class has fewer than 3 rows, too few to choose another on inner folds.")
        estimator = _make_estimator(rows, task, k, missing, random_state, model_options)
        automatic = estimator.n_features_to_select == "auto" and fdr is None
        if isinstance(cv, (int, np.integer)) and groups is None and time is None:
            cv = possible_folds(rows.y[rows.used], task, int(cv), nested=automatic, report=note)
        folds, n_folds = validation.split_folds(rows, task, cv, repeats, random_state)
        metric = get_metric(scoring, task)
        encoder, whole = rows.whole()
        knockoffs, q_values = None, None
        if fdr is not None:
            knockoffs, q_values = find_by_knockoffs(estimator, rows, task, fdr, whole, folds, note)
        subject = Subject(estimator, rows, task)
        with nullcontext() if subject.in_threads else one_torch_thread():
            fitted = subject.fit(whole, random_state)
        model, m = fitted.selector, int(fitted.support.sum())
        seconds["final model"] = clock.perf_counter() - started
        if is_auto(network):
            note(_describe_network(model.selection_.choices["network"]))
        if automatic:
            note(_describe_choice(model, len(subject.unit_names)))

        trained = find_network(model.network_ if is_auto(network) else network)
        is_quick = trained.quick and knockoffs is None
        sizes = _curve_sizes(subject, m, automatic) if is_quick and estimator.budget is None else []
        if permutations is None:
            permutations = validation.choose_permutations(rows) if is_quick else 0
        if not trained.quick:
            n_fits = (5 + permutations) * len(folds) + 1
            note(f"Network {trained.name}: {n_fits} trainings of seconds each; linear takes a fraction of that.")
        with warnings.catch_warnings():
            if knockoffs is not None:
                # What they warn of is in the notes, for all rows. Here, since filters that threads set disturb each other.
                warnings.simplefilter("ignore", UserWarning)
            evaluation = validation.cross_validate(
                knockoffs or subject,
                folds,
                metric,
                n_folds=n_folds,
                sizes=sizes,
                n_random=5 if is_quick else 3,
                n_permutations=permutations,
                n_kept=m,
                seed=random_state,
                n_jobs=count_jobs(n_jobs, len(folds), rows.n_rows * rows.columns.size * 4 * COPIES_PER_FOLD),
                progress=progress,
            )
        seconds["selection"] = float(np.median([fold.seconds for fold in evaluation.folds]))
        again = subject.fit(whole, random_state + 1, subject.without_choices(fitted)) if is_quick else fitted
        models = dict(model.fit_copies([size for size in sizes if size != m], whole.X, whole.y, whole.sample_weight))
        alerts = find_alerts(evaluation, subject, whole.X, fitted.support, again.support)
        if late := sum(not fold.converged for fold in evaluation.folds) + (not fitted.converged):
            note(f"In {late} of {len(evaluation.folds) + 1} fits the step limit had to decide which columns to keep.")
        if empty := sum(not fold.support.any() for fold in evaluation.folds):
            note(f"In {empty} of {len(evaluation.folds)} folds no column passed; their score is that of a constant.")
        settings = {
            "file": str(table) if isinstance(table, (str, os.PathLike)) else None,
            "variant": estimator.variant,
            "network": network if isinstance(network, str) else type(trained).__name__,
            "k": k if estimator.budget is None and fdr is None else None,
            "budget": estimator.budget,
            "fdr": fdr,
            **{name: list(model_options[name]) if model_options.get(name) else None for name in ("keep", "drop")},
            "folds": len(folds),
            "repeats": repeats,
            "permutations": permutations,
            "missing": missing,
            "seed": random_state,
            **{name: value for name, value in reading.items() if isinstance(value, (str, int, float, list, tuple))},
        }
        study = Study(rows, targets, task, model, encoder, subject.units, evaluation, models, alerts, settings)
        study = dataclasses.replace(study, notes=tuple(notes), seconds=seconds, q_values=q_values)
        label = None
        if big is not None:
            study, held_out = _train_on_all_rows(study, big, reading)
            test, label = (held_out, big.held_out_name) if test is None else (test, None)
        return study if test is None else _score_test(study, test, reading, label)


def _split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the options of :func:`select` into those of the estimator and those of the reader; raise for unknown ones."""
    reading = {"max_categories", *ReadOptions.__dataclass_fields__} - {"target", "roles", "texts", "need_target"}
    for name in options:
        if name not in reading and name not in _MODEL_OPTIONS:
            known = [*inspect.signature(select).parameters, *_MODEL_OPTIONS, *sorted(reading)]
            right = _OF_OTHERS.get(name)
            hint = f" It is {right!r}." if right else suggest(name, known)
            raise TypeError(f"select has no option {name!r}.{hint}")
    found = {name: value for name, value in options.items() if name not in _MODEL_OPTIONS and value is not None}
    return {name: options[name] for name in _MODEL_OPTIONS if name in options}, found


def _make_estimator(rows: Rows, task: str, k: Any, missing: str, seed: int, options: Mapping[str, Any]) -> Any:
    """Build the estimator, with columns by their names in the table."""
    from tamiz.estimators.e2efs import E2EFSClassifier, E2EFSRegressor

    budget, costs = options.get("budget"), options.get("costs")
    if budget is None and costs:
        raise ValueError("costs need a budget: say what the kept columns may cost together.")
    if budget is not None and k not in ("auto", None):
        raise ValueError("budget takes the place of k: give one of them.")
    auto = k is None or (isinstance(k, str) and k == "auto")
    if not auto and not isinstance(k, numbers.Real):
        raise ValueError(f"k must be a number, a fraction or 'auto', got {k!r}.")
    parameters = {
        **options,
        "n_features_to_select": "auto" if auto else resolve_n_features_to_select(k, rows.n_columns, "`k`"),
        "missing": "indicator" if missing == "indicator" else "error",
        "random_state": seed,
        **{name: _find_features(rows, options.get(name), name) or None for name in ("keep", "drop")},
    }
    if budget is not None:
        found = {_find_features(rows, [name], "costs")[0]: cost for name, cost in (costs or {}).items()}
        parameters |= {"costs": found, "n_features_to_select": None}
    if task == "regression":
        parameters.pop("class_weight", None)
    return (E2EFSRegressor if task == "regression" else E2EFSClassifier)(**parameters)


def _find_features(rows: Rows, specs: Any, what: str) -> list[Any]:
    """Find features by name, number, range or pattern; columns of arrays stay the numbers they are."""
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


def _describe_network(choice: Mapping[str, Any]) -> str:
    scores = zip(choice["candidates"], choice["mean"], strict=True)
    tried = ", ".join(f"{name} {mean:.3f}" for name, mean in scores if mean is not None)
    if not tried:
        return "Network: linear; what it leaves shows no sign of curves or of columns that act together."
    scoring = choice["scoring"].replace("_", " ")
    return f"Network: {choice['chosen']}, chosen by {scoring} on held-out rows of inner folds: {tried}."


def _describe_choice(model: Any, n_columns: int) -> str:
    choice = model.selection_.choices["n_features_to_select"]
    best = choice["candidates"][int(np.nanargmax(np.array(choice["mean"], dtype=float)))]
    return (
        f"Columns to keep: {choice['chosen']:,} of {n_columns:,}, the fewest within one standard error of the best mean score, "
        f"that of {counted(best, 'column')}, on {len(choice['scores'][0])} folds of all rows; `k` sets the number."
    )


def _curve_sizes(subject: Subject, m: int, automatic: bool) -> list[int]:
    """Numbers of columns of the curve: those that were tried, or numbers around the given one."""
    options = {name: getattr(subject.selector, name) for name in ("groups", "keep", "drop")}
    least, most = possible_counts(subject.units.size, **options)
    sizes = {*round_numbers(most, least), m} if automatic else {*validation.curve_sizes(most, m)}
    return sorted(size for size in sizes if least <= size <= most)


def _train_on_all_rows(study: Study, big: BigTable, reading: dict[str, Any]) -> tuple[Study, Any]:
    """Train the final model on the kept columns of all rows; return the study and the rows that are held out."""
    started, kept = clock.perf_counter(), study.model.selection_.indices
    encoder = study.encoder
    assert encoder is not None
    source = study.rows.source
    encoder.categories_ = {source.names[i]: text.categories for i, text in source.texts.items()}  # those of all rows
    part = encoder.restricted(kept)
    columns = list(dict.fromkeys(feature.column_name for feature in part.features_))
    train, held_out = big.read(columns)
    reading = {name: value for name, value in reading.items() if name in SPELLING}
    roles = {"sample_weight": big.roles.get("sample_weight")}
    found, _, _ = load_rows(train, study.targets, roles, task=study.task, reading=reading)
    texts = [name for name in columns if name in encoder.categories_]
    table = read_table(train, columns=columns, categorical=texts, **reading).take(found.source.rows)
    table.texts = {i: text.align(encoder.categories_[table.names[i]]) for i, text in table.texts.items()}
    X = part.transform(table)
    model = refit(study.model, X, found.y, found.sample_weight)
    note = f"The model was trained on {len(X):,} rows of the kept columns; {len(held_out):,} rows are held out for its score."
    source.source["scan"] = big.frame
    return dataclasses.replace(
        study,
        model=model,
        passes=tuple(big.passes),
        notes=(*study.notes, note, f"Passes: {big.list_passes()}."),
        settings={**study.settings, "passes": big.list_passes()},
        seconds={**study.seconds, "all rows": clock.perf_counter() - started},
    ), held_out


def _score_test(study: Study, test: Any, reading: dict[str, Any], label: str | None = None) -> Study:
    """Score the final model on further rows."""
    metric, y_train, notes = study.evaluation.metric, study.rows.y, list[str]()
    label = label or (str(test) if isinstance(test, (str, os.PathLike)) else "the rows to test on")
    try:
        if study.encoder is None:
            X, y = test[0], np.asarray(test[1])
        else:
            saved, source = study.saved_model, collect_lazy(test[0] if isinstance(test, tuple) else test)
            reading = {name: value for name, value in reading.items() if name in SPELLING}
            target = test[1] if isinstance(test, tuple) else list(study.targets)
            found, _, _ = load_rows(source, target, task=study.task, reading=reading)
            y = found.y
            columns = read_table(source, columns=saved.columns, categorical=saved.text_columns, **reading)
            X = saved.encode(columns.take(found.source.rows), notes.append)
        validation.check_test_target(y, y_train, study.task)
    except (TableError, ValueError) as error:
        raise (type(error) if isinstance(error, TableError) else TableError)(f"{label}: {error}") from None
    if study.encoder is None:
        response = metric.read(study.model, X)
    elif metric.response == "predict":
        response = saved.predict(X)
    else:
        scores = saved.scores(X)
        response = scores[:, 0] if scores.shape[1] == 1 else scores
    score = validation.score_held_out(metric, y, response, y_train, seed=study.settings["seed"])
    record = {"file": label, "n_rows": len(y), **dataclasses.asdict(score)}
    evaluation = dataclasses.replace(study.evaluation, test_score=score)
    return dataclasses.replace(study, evaluation=evaluation, test=record, notes=(*study.notes, *notes))


def _signed_weights(model: Any, y: np.ndarray) -> list[float] | None:
    """Compute one weight for each kept column of the matrix: signed for one output, its size over several."""
    if not hasattr(model, "coef_"):  # no linear model
        return None
    weights = model.coef_[:, model.selection_.indices].astype(np.float64)
    if y.ndim > 1:
        weights = weights / y.std(axis=0)[:, None]
    elif len(weights) == 2:
        return (weights[1] - weights[0]).tolist()
    return weights[0].tolist() if len(weights) == 1 else np.linalg.norm(weights, axis=0).tolist()
