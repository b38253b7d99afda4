"""Fit and score what a page asks for, part by part, and write the code that repeats it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    if target is not None and not isinstance(target, str):
        raise LiveError("The target must be the name of a column.")
    if network not in LIVE_NETWORKS:
        raise LiveError(f"The network must be one of {', '.join(LIVE_NETWORKS)}.")
    lists = []
    for name in ("keep", "drop"):
        value = record.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise LiveError("Columns to force in or out must be a list of names.")
        lists.append(tuple(dict.fromkeys(value)))
    return FitRequest(m, target, network, *lists)


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

    def fit_sizes(self, part: Any, sizes: Sequence[int], seed: int, fitted: Fitted) -> Iterator[tuple[int, Any]]:
        """Yield (M, model) of fits with other M."""
        for found in super().fit_sizes(part, sizes, seed, fitted):
            self.check()
            yield found


def make_subject(data: TargetData, request: FitRequest, check: Callable[..., None]) -> LiveSubject:
    """Check a request against its table; return the estimator for it as a subject of evaluation."""
    from tamiz import E2EFSClassifier, E2EFSRegressor

    names, m = data.rows.names, request.n_features_to_select
    for option, chosen in (("force in", request.keep), ("force out", request.drop)):
        unknown = set(chosen) - set(names)
        if unknown:
            raise LiveError(f"Cannot {option} {sorted(unknown)[0]!r}: it is not among the columns to select from.")
    both = set(request.keep) & set(request.drop)
    if both:
        raise LiveError(f"{sorted(both)[0]!r} cannot be forced both in and out.")
    free = len(names) - len(request.drop)
    if not free:
        raise LiveError("All columns are forced out: 0 columns are left to select from.")
    if not isinstance(m, str):
        m = min(m, free)  # the page knows the number of columns after the first fit only
        if len(request.keep) > m:
            raise LiveError(f"{len(request.keep)} columns are forced in, more than M = {m}. Raise M.")
    kind: Any = E2EFSRegressor if data.task == "regression" else E2EFSClassifier
    parameters = {"network": request.network, "keep": list(request.keep) or None, "drop": list(request.drop) or None}
    return LiveSubject(kind(m, random_state=SEED, **parameters), data.rows, data.task, check)


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
    subject = make_subject(data, request, check)
    if request not in data.choices:
        found = subject.selector.choose(data.whole.X, data.whole.y, progress=check)
        data.choices[request] = found.parameters
    chosen = data.choices[request]
    selector = clone(subject.selector).set_params(**chosen)
    return subject, selector.fit_prepared(data.prepared(selector), progress=lambda *_: check()), chosen


def run_request(data: TargetData, request: FitRequest, job: LiveJob) -> None:
    """Do what a page asks for, and send each part as soon as it is there: choices, list, heat map, scores, curve."""
    started = time.perf_counter()
    last = 0.0

    def check(*what: Any) -> None:
        nonlocal last
        job.check()
        now = time.perf_counter()
        if len(what) == 3 and now - last > 0.1:
            last = now
            job.emit(
                "progress",
                stage=_STAGES.get(str(what[0]), str(what[0])),
                done=int(what[1]),
                total=int(what[2]),
                seconds=now - started,
            )

    subject, fitted, chosen = fit_request(data, request, check)
    words = []
    if "network" in chosen:
        words.append(f"Network {chosen['network']}: the simplest that the best on inner folds does not clearly beat.")
    if "n_features_to_select" in chosen:
        m = chosen["n_features_to_select"]
        words.append(f"M = {m:,}: the fewest within one standard error of the best on inner folds.")
    selection = fitted.selection_
    if data.encoder is not None:
        selection = selection.with_names(data.encoder.get_feature_names_out())
    if not data.rows.is_plain:
        names = np.array(data.rows.names, dtype=object)
        selection = replace(selection, groups=subject.units, group_names=names)
    columns = Columns(selection)
    if words:
        network = chosen.get("network", request.network)
        job.emit("chosen", m=columns.n_kept, network=str(network), words=" ".join(words))
    job.emit("fit", **describe_fit(data, request, columns, fitted), seconds=time.perf_counter() - started)
    groups = group_rows(data.whole.y, data.task, data.target)
    grids = kept_grids(columns, data.whole.X, data.whole.y, data.task, groups)
    if grids is not None:
        job.emit("heat", **describe_heat(grids[0], grids[1], groups))
    if data.folds:
        m, quick = columns.n_kept, NETWORKS[fitted.network_].quick
        least, most = max(1, len(request.keep)), len(columns) - len(request.drop)
        sizes = [size for size in curve_sizes(most, m) if least <= size <= most] if quick else []
        metric = get_metric(None, data.task)
        found = cross_validate(
            subject, data.folds, metric, n_folds=len(data.folds), sizes=sizes, n_random=2, n_kept=m, seed=SEED, progress=check
        )  # fmt: skip
        job.emit("score", **describe_scores(found, columns))
        if sizes:
            lines = score_curve(Shown(columns, evaluation=found))
            job.emit("curve", **both_widths(lambda width: line_chart(lines, width, 280)))
    job.emit("done", folds=len(data.folds), seconds=time.perf_counter() - started)


def describe_fit(data: TargetData, request: FitRequest, columns: Columns, fitted: Any) -> dict[str, Any]:
    """Return what the page lists: the kept columns by contribution, and those that come next."""
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


def describe_heat(heat: Any, rows: np.ndarray, groups: Sequence[tuple[str, np.ndarray]]) -> dict[str, Any]:
    """Return the clustered heat map of the kept columns as drawings, and its legend."""
    codes = np.argmax([members[rows] for _, members in groups], axis=0)

    def draw(width: int) -> str:
        return raster_chart(heat, width, key="heat", above=class_strip(codes, None, width))

    entries = legend([label for label, _ in groups])[:12]
    return {**both_widths(draw), "legend": [[entry["swatch"], entry["name"]] for entry in entries]}


def describe_scores(found: Any, columns: Columns) -> dict[str, Any]:
    """Return scores on held-out rows, and the share of folds that kept each column."""
    rows = [("all", "all_features"), ("random", "random_features")]
    return {
        "metric": found.metric.name,
        "score": found.score.value,
        "shown": describe_score(found.score).partition("(")[2].rstrip(")"),
        "chance": found.chance,
        "others": [[name, found.interval(what).value] for name, what in rows],
        "stability": found.stability,
        "verdict": found.verdict,
        "folds": len(found.folds),
        "shares": {columns.names[c]: float(found.fold_share[c]) for c in columns.kept[:MOST_LISTED].tolist()},
    }


def python_code(table: LiveTable, data: TargetData, request: FitRequest) -> str:
    """Write a script that selects the same columns from the same file and writes the report."""
    arguments = [repr(table.name)]
    if not table.has_target:
        arguments.append(f"target={data.target!r}")
    arguments.append(f"k={request.n_features_to_select!r}")
    arguments.append(f"network={request.network!r}")
    arguments += [
        f"{name}={list(chosen)!r}" for name, chosen in (("keep", request.keep), ("drop", request.drop)) if chosen
    ]
    arguments += [f"{name}={value!r}" for name, value in table.options.items() if value is not None]
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"""import tamiz

# Run it in the folder of the table.
study = tamiz.select(
{lines})
print(study.selection.names)
study.report("report.html")
"""
