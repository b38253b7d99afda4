"""Jobs of the pages, one at a time for each: fit and score what is asked for, and write the code that repeats it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz.estimators.networks import NETWORKS
from tamiz.evaluation.alerts import find_leaks
from tamiz.evaluation.cross_validation import cross_validate, curve_sizes
from tamiz.evaluation.metrics import get_metric
from tamiz.evaluation.subjects import Subject
from tamiz.report.charts import both_widths, heat_charts, legend, line_chart
from tamiz.report.columns import Columns, group_rows, kept_grids
from tamiz.report.select_view import Shown, score_curve
from tamiz.report.text import describe_score
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


#: Called with (kind, data) for each event of a job, and with None when the job has ended.
Send = Callable[[tuple[str, dict[str, Any]] | None], None]


class JobCancelled(Exception):
    """Raise inside a job that is no longer wanted."""


class LiveJob:
    """Work that can be cancelled from another thread.

    Parameters
    ----------
    work : callable
        ``work(job)``; calls :meth:`check` often and :meth:`emit` for each result.
    send : callable
        Takes the events; called from the thread of the job.
    before : LiveJob or None, default=None
        Job whose end is waited for.
    """

    def __init__(self, work: Callable[[LiveJob], None], send: Send, before: LiveJob | None = None) -> None:
        self._work, self._send, self._before = work, send, before
        self._cancelled, self.ended = threading.Event(), threading.Event()

    def cancel(self) -> None:
        """Ask the job to end; it does so at its next :meth:`check`."""
        self._cancelled.set()

    def check(self, *_: Any) -> None:
        """Raise JobCancelled if the job is no longer wanted; takes and ignores what an engine reports as progress."""
        if self._cancelled.is_set():
            raise JobCancelled

    def emit(self, kind: str, **data: Any) -> None:
        """Send an event, unless the job is no longer wanted."""
        self.check()
        self._send((kind, data))

    def run(self) -> None:
        """Do the work; send an error as a problem, and None at the end, whatever that was."""
        if self._before is not None:
            self._before.ended.wait()
            self._before = None
        try:
            self.check()
            self._work(self)
        except JobCancelled:
            pass
        except Exception as error:
            self._send(("problem", {"error": error}))
        finally:
            self._send(None)
            self.ended.set()


class LiveJobs:
    """Run jobs of several pages side by side, those of one page one after the other, the newest only.

    Examples
    --------
    >>> jobs, events = LiveJobs(), []
    >>> _ = jobs.submit("page", lambda job: job.emit("fit", m=3), events.append)
    >>> jobs.wait()
    True
    >>> events
    [('fit', {'m': 3}), None]
    """

    def __init__(self) -> None:
        #: The newest job of each page.
        self._newest: dict[str, LiveJob] = {}
        self._lock = threading.Lock()

    def submit(self, page: str, work: Callable[[LiveJob], None], send: Send) -> LiveJob:
        """Cancel the job of the same page, and start this one as soon as that has ended.

        Parameters
        ----------
        page : str
            Whose job it is.
        work, send : callable
            As for :class:`LiveJob`.

        Returns
        -------
        LiveJob
        """
        with self._lock:
            self._newest = {name: job for name, job in self._newest.items() if not job.ended.is_set()}
            before = self._newest.get(page)
            job = self._newest[page] = LiveJob(work, send, before)
        if before is not None:
            before.cancel()
        threading.Thread(target=job.run, daemon=True, name="tamiz-live-fit").start()
        return job

    def cancel_all(self) -> None:
        """Ask every job to end."""
        for job in list(self._newest.values()):
            job.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no job runs; tell whether that is so."""
        return all(job.ended.wait(timeout) for job in list(self._newest.values()))


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


def fit_request(
    data: TargetData, request: FitRequest, check: Callable[..., None] = lambda *_: None
) -> tuple[Subject, Any, dict[str, Any]]:
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
    subject : Subject
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
    forced = {"keep": list(request.keep) or None, "drop": list(request.drop) or None}
    estimator = kind(m, random_state=SEED, network=request.network, **forced)
    subject = Subject(estimator, data.rows, data.task, check)
    if request not in data.choices:
        found = subject.selector.choose(data.whole.X, data.whole.y, progress=check)
        data.choices[request] = found.parameters
    chosen = data.choices[request]
    selector = clone(subject.selector).set_params(**chosen)
    return subject, selector.fit_prepared(data.prepared(selector), progress=lambda *_: check()), chosen


def run_request(data: TargetData, request: FitRequest, job: LiveJob) -> None:
    """Do what a page asks for, and send each part as soon as it is there: choices, list, heat map, scores, curve."""
    last = 0.0

    def check(*what: Any) -> None:
        nonlocal last
        job.check()
        now = time.perf_counter()
        if len(what) == 3 and now - last > 0.1:
            last, (stage, done, total) = now, what
            stage = _STAGES.get(str(stage), str(stage))
            job.emit("progress", stage=stage, done=int(done), total=int(total))

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
    job.emit("fit", **describe_fit(data, request, columns, fitted))
    groups = group_rows(data.whole.y, data.task, data.target)
    grids = kept_grids(columns, data.whole.X, data.whole.y, data.task, groups)
    if grids is not None:
        heat, rows, _ = grids
        codes = np.argmax([members[rows] for _, members in groups], axis=0)
        entries = [[entry["swatch"], entry["name"]] for entry in legend([label for label, _ in groups])[:12]]
        job.emit("heat", **heat_charts(heat, codes), legend=entries)
    if data.folds:
        least, most = max(1, len(request.keep)), len(columns) - len(request.drop)
        quick = NETWORKS[fitted.network_].quick
        sizes = [size for size in curve_sizes(most, m) if quick and least <= size <= most]
        details: dict[str, Any] = {"sizes": sizes, "n_random": 2, "n_kept": m, "seed": SEED, "progress": check}
        metric, n_folds = get_metric(None, data.task), len(data.folds)
        found = cross_validate(subject, data.folds, metric, n_folds=n_folds, **details)
        if data.leaks is None:
            data.leaks = find_leaks(found, data.rows, data.whole.X)
        job.emit(
            "score",
            alerts=_alerts(data),
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
    job.emit("done", folds=len(data.folds))


def describe_fit(data: TargetData, request: FitRequest, columns: Columns, fitted: Any) -> dict[str, Any]:
    """List the kept columns by contribution, and those that come next."""
    contribution = columns.selection.contribution
    sizes = np.zeros(len(columns)) if contribution is None else columns.of_features(contribution)
    weights = np.atleast_2d(fitted.coef_) if hasattr(fitted, "coef_") else np.zeros((0, 0))
    kept = []
    for column in columns.kept[:MOST_LISTED].tolist():
        direction, features = "", columns.members[column]
        if len(weights) == 1 and len(features) == 1 and len(data.classes) <= 2:
            up = int(weights[0, int(features[0])] > 0)
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
        "target": data.target,
        "alerts": _alerts(data),
        "notes": [note.replace("`", "") for note in data.notes],
    }


def _alerts(data: TargetData) -> list[str]:
    return [alert.message.replace("`", "") for alert in (*(data.leaks or ()), *data.alerts)]


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
