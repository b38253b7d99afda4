"""Fit and score what a page asks for, part by part, and write the code that repeats it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz.estimators.networks import NETWORKS
from tamiz.evaluation.cross_validation import cross_validate, curve_sizes
from tamiz.evaluation.metrics import get_metric
from tamiz.evaluation.subjects import Fitted, Subject
from tamiz.report.charts import both_widths, class_strip, legend, line_chart, raster_chart
from tamiz.report.columns import Columns, group_rows, kept_grids
from tamiz.report.select_view import Shown, score_curve
from tamiz.report.text import describe_score
from tamiz.serve.jobs import LiveJob
from tamiz.serve.tables import LiveError, LiveTable, TargetData

#: Columns that are listed below the kept ones, and of the kept ones at most.
N_NEXT, MOST_LISTED = 8, 500
#: What a page asks for where inner folds shall decide.
AUTO = "auto"
#: Networks that the page offers, and at last the choice among them.
LIVE_NETWORKS = (*(name for name, network in NETWORKS.items() if network.compiled and name != AUTO), AUTO)
SEED = 0
#: What the page calls the stages of a choice and of an evaluation.
_STAGES = {
    "l2": "choosing the weight decay",
    "n_features_to_select": "choosing M",
    "network": "choosing the network",
    "cross-validation": "scoring on folds",
}


@dataclass(frozen=True)
class FitRequest:
    """What a page asks for.

    Parameters
    ----------
    n_features_to_select : int or "auto"
        M, in columns of the file.
    target : str or None, default=None
        The target.
    network : str, default="linear"
        One of ``LIVE_NETWORKS``.
    keep, drop : tuple of str, default=()
        Columns of the file that are always, or never, kept.
    """

    n_features_to_select: int | str
    target: str | None = None
    network: str = "linear"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def read_request(record: Any) -> FitRequest:
    """Check what a page asks for; raise LiveError if it is nothing that can be asked.

    Examples
    --------
    >>> read_request({"m": 3, "target": "ill", "drop": ["age"]})
    FitRequest(n_features_to_select=3, target='ill', network='linear', keep=(), drop=('age',))
    >>> read_request({"m": "many"})
    Traceback (most recent call last):
    tamiz.serve.tables.LiveError: M must be a whole number from 1 on.
    """
    if not isinstance(record, Mapping):
        raise LiveError("The request is not understood.")
    m, target, network = record.get("m"), record.get("target"), record.get("network", "linear")
    if m != AUTO and (not isinstance(m, int) or isinstance(m, bool) or m < 1):
        raise LiveError("M must be a whole number from 1 on.")
    if network not in LIVE_NETWORKS:
        raise LiveError(f"The network must be one of {', '.join(LIVE_NETWORKS)}.")
    forced = [record.get(name, []) for name in ("keep", "drop")]
    lists = all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in forced)
    if not lists or not isinstance(target, str | None):
        raise LiveError("The target and the columns to force in or out must be names.")
    return FitRequest(m, target, network, *(tuple(dict.fromkeys(names)) for names in forced))


class LiveSubject(Subject):
    """A subject of evaluation that asks before each fit whether it is still wanted.

    Parameters
    ----------
    estimator, rows, task
        As of :class:`~tamiz.evaluation.subjects.Subject`.
    check : callable
        What it raises ends the evaluation.
    """

    def __init__(self, estimator: Any, rows: Any, task: str, check: Callable[[], None]) -> None:
        super().__init__(estimator, rows, task)
        self.check = check

    def fit(self, part: Any, seed: int, selector: Any = None) -> Fitted:
        """Select on the rows of a part and fit the model."""
        self.check()
        return super().fit(part, seed, selector)

    def fit_columns(self, part: Any, units: Any, seed: int, fitted: Fitted) -> tuple[Any, np.ndarray]:
        """Fit the model on given columns."""
        self.check()
        return super().fit_columns(part, units, seed, fitted)


def fit_request(
    data: TargetData, request: FitRequest, check: Callable[..., None] = lambda *_: None
) -> tuple[LiveSubject, Any, dict[str, Any]]:
    """Choose what is left open on inner folds, as the estimator does, and fit on all rows.

    Parameters
    ----------
    data : TargetData
        The table.
    request : FitRequest
        What the page asks for.
    check : callable, default=nothing
        Called often, with what is done if that takes long; what it raises ends the fit.

    Returns
    -------
    subject : LiveSubject
        For the evaluation, with nothing chosen yet.
    fitted : estimator
        Fitted on all rows.
    chosen : dict
        Parameters that were chosen.
    """
    from tamiz import E2EFSClassifier, E2EFSRegressor

    m = request.n_features_to_select
    if not isinstance(m, str):  # the page knows the number of columns after the first fit only
        m = min(m, max(1, len(data.rows.names) - len(request.drop)))
    kind: Any = E2EFSRegressor if data.task == "regression" else E2EFSClassifier
    estimator = kind(
        m, random_state=SEED, network=request.network, keep=list(request.keep) or None, drop=list(request.drop) or None
    )
    subject = LiveSubject(estimator, data.rows, data.task, check)
    if request not in data.choices:
        found = subject.selector.choose(data.whole.X, data.whole.y, progress=check)
        data.choices[request] = found.parameters
    chosen = data.choices[request]
    selector = clone(subject.selector).set_params(**chosen)
    return subject, selector.fit_prepared(data.prepared(selector), progress=lambda *_: check()), chosen


def run_request(data: TargetData, request: FitRequest, job: LiveJob) -> None:
    """Do what a page asks for, and send each part as soon as it is there: choices, list, heat map, scores, curve."""
    started, last = time.perf_counter(), 0.0

    def check(*what: Any) -> None:
        nonlocal last
        job.check()
        now = time.perf_counter()
        if len(what) == 3 and now - last > 0.1:
            last, (stage, done, total) = now, what
            stage = _STAGES.get(str(stage), str(stage))
            job.emit("progress", stage=stage, done=int(done), total=int(total), seconds=now - started)

    subject, fitted, chosen = fit_request(data, request, check)
    selection = fitted.selection_
    if data.encoder is not None:
        selection = selection.with_names(data.encoder.get_feature_names_out())
    if not data.rows.is_plain:
        names = np.array(data.rows.names, dtype=object)
        selection = replace(selection, groups=subject.units, group_names=names)
    columns = Columns(selection)
    m, words = columns.n_kept, ""
    if "network" in chosen:
        words += f"Network {chosen['network']}: the simplest that the best on inner folds does not clearly beat. "
    if "n_features_to_select" in chosen:
        words += f"M = {m:,}: the fewest within one standard error of the best on inner folds."
    if words:
        job.emit("chosen", m=m, network=str(chosen.get("network", request.network)), words=words.strip())
    job.emit("fit", **describe_fit(data, request, columns, fitted), seconds=time.perf_counter() - started)
    groups = group_rows(data.whole.y, data.task, data.target)
    grids = kept_grids(columns, data.whole.X, data.whole.y, data.task, groups)
    if grids is not None:
        heat, rows, _ = grids
        codes = np.argmax([members[rows] for _, members in groups], axis=0)
        drawn = both_widths(lambda width: raster_chart(heat, width, key="heat", above=class_strip(codes, None, width)))
        entries = [[entry["swatch"], entry["name"]] for entry in legend([label for label, _ in groups])[:12]]
        job.emit("heat", **drawn, legend=entries)
    if data.folds:
        least, most = max(1, len(request.keep)), len(columns) - len(request.drop)
        quick = NETWORKS[fitted.network_].quick
        sizes = [size for size in curve_sizes(most, m) if quick and least <= size <= most]
        details: dict[str, Any] = {"sizes": sizes, "n_random": 2, "n_kept": m, "seed": SEED, "progress": check}
        metric, n_folds = get_metric(None, data.task), len(data.folds)
        found = cross_validate(subject, data.folds, metric, n_folds=n_folds, **details)
        job.emit(
            "score",
            metric=found.metric.name,
            score=found.score.value,
            shown=describe_score(found.score).partition("(")[2].rstrip(")"),
            chance=found.chance,
            others=[[name, found.interval(f"{name}_features").value] for name in ("all", "random")],
            stability=found.stability,
            verdict=found.verdict,
            folds=len(found.folds),
            shares={columns.names[c]: float(found.fold_share[c]) for c in columns.kept[:MOST_LISTED].tolist()},
        )
        if sizes:
            lines = score_curve(Shown(columns, evaluation=found))
            job.emit("curve", **both_widths(lambda width: line_chart(lines, width, 280)))
    job.emit("done", folds=len(data.folds), seconds=time.perf_counter() - started)


def describe_fit(data: TargetData, request: FitRequest, columns: Columns, fitted: Any) -> dict[str, Any]:
    """List the kept columns by contribution, and those that come next."""
    contribution = columns.selection.contribution
    sizes = np.zeros(len(columns)) if contribution is None else columns.of_features(contribution)
    weights = np.atleast_2d(fitted.coef_) if hasattr(fitted, "coef_") else np.zeros((0, 0))
    place = {int(feature): i for i, feature in enumerate(columns.selection.indices)}
    kept = []
    for column in columns.kept[:MOST_LISTED].tolist():
        direction, features = "", columns.members[column]
        if len(weights) == 1 and len(features) == 1 and len(data.classes) <= 2:
            up = int(weights[0, place[int(features[0])]] > 0)
            toward = data.classes[up] if data.classes else f"{('less', 'more')[up]} {data.target}"
            direction = f"higher → {toward}"
        name = columns.names[column]
        kept.append({"name": name, "contribution": float(sizes[column]), "direction": direction})
    following = [columns.names[c] for c in columns.order[columns.n_kept :].tolist()]
    return {
        "m": columns.n_kept,
        "columns": len(columns),
        "kept": kept,
        "next": [name for name in following if name not in request.drop][:N_NEXT],
        "task": data.task,
        "target": data.target,
        "alerts": [alert.message for alert in data.alerts],
        "notes": [note.replace("`", "") for note in data.notes],
    }


def python_code(table: LiveTable, request: FitRequest) -> str:
    """Write a script that selects the same columns from the same file and writes the report."""
    options: dict[str, Any] = {"k": request.n_features_to_select, "network": request.network}
    options |= {"keep": list(request.keep) or None, "drop": list(request.drop) or None, **table.options}
    if not table.has_target:
        options = {"target": request.target or table.target, **options}
    listed = [repr(table.name), *(f"{name}={value!r}" for name, value in options.items() if value is not None)]
    lines = "".join(f"    {argument},\n" for argument in listed)
    return f"""import tamiz

# Run it in the folder of the table.
study = tamiz.select(
{lines})
print(study.selection.names)
study.report("report.html")
"""
