"""Do what a page asks for, part by part: choose what it leaves open, fit, score on folds."""

from __future__ import annotations

import time

import numpy as np

from tamiz.evaluation.metrics import Parts, get_metric
from tamiz.serve.fits import Wish, decide_wish, describe_fit, describe_heat, fit_wish, lower_m, score_fold
from tamiz.serve.jobs import LiveJob
from tamiz.serve.session import TargetData


def run_wish(data: TargetData, wish: Wish, job: LiveJob) -> None:
    """Do what a page asks for, and send each part as soon as it is there: list, heat map, folds, end."""
    started = time.perf_counter()
    wish, chosen = decide_wish(data, lower_m(data, wish), job.check)
    if chosen is not None:
        job.emit("chosen", **chosen)
    fitted = fit_wish(data, wish, job.check)
    job.emit("fit", **describe_fit(data, wish, fitted), seconds=time.perf_counter() - started)
    heat = describe_heat(data, fitted)
    if heat is not None:
        job.emit("heat", **heat)
    metric = get_metric(None, data.task)
    chance = 0.0 if metric.chance is None else metric.chance(data.y)
    parts: list[Parts] = []
    for number in range(len(data.folds)):
        measured, columns = score_fold(data, wish, number, job.check)
        parts.append(measured)
        scores = metric.combine(parts)  # of R² all change with each fold: it is pooled
        job.emit(
            "fold", folds=len(data.folds), scores=scores, mean=np.mean(scores), deviation=np.std(scores), kept=columns,
            metric=metric.name, chance=chance,
        )  # fmt: skip
    job.emit("done", folds=len(data.folds), seconds=time.perf_counter() - started)
