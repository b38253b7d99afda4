"""Selections and records to draw: made from real `Selection` objects on synthetic tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.intervals import Interval, MethodRank, PairedTest
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.evaluation.results import HeldOut
from tamiz.report import CompareReport, SelectReport, select_report
from tamiz.report.data import Confusion, Curve, CurvePoint, Residuals, Scores
from tamiz.report.evidence import FoldGrid, KeptSet, Stability
from tamiz.report.together import make_projections
from tamiz.selection import Selection


def make_selection(n_features=400, n_kept=12, names=None, shape=None, seed=0, n_records=120) -> Selection:
    """A run as the engines record it: features die between warm-up and closing, gamma ends at 0 or 1."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_features)
    ranking = np.empty(n_features, dtype=np.int64)
    ranking[order] = np.arange(1, n_features + 1)
    step = np.linspace(0, 2400, n_records).round().astype(np.int64)
    share = np.clip((step - 300) / 1200, 0, 1)
    n_alive = np.maximum(n_kept, n_features * np.exp(-share * np.log(n_features / n_kept))).round()
    phase = np.select([step < 300, step < 1500, step < 1800], [0, 1, 2], 3)
    loss = 0.7 * np.exp(-step / 700) + 0.05 + 0.01 * rng.standard_normal(n_records)
    followed = np.unique(np.r_[order[: min(n_kept, 20)], order[n_kept : n_kept + 30]])
    death = np.clip(300 + 1500 * (1 - (ranking[followed] - n_kept) / 40), 400, 1700)
    rising = 0.5 + 0.5 * np.clip((step[:, None] - 300) / 1400, 0, 1) * np.ones((1, followed.size))
    falling = np.clip(0.5 * (1 - (step[:, None] - 300) / (death[None, :] - 300)), 0, 0.5)
    gamma = np.where(ranking[followed][None, :] <= n_kept, rising, falling)
    history = {
        "step": step,
        "phase": phase,
        "loss": loss,
        "n_alive": n_alive,
        "gamma_sum": n_alive * 0.8,
        "alpha": share,
        "gamma_path": gamma,
        "gamma_path_features": followed,
    }
    return Selection(
        support=ranking <= n_kept,
        ranking=ranking,
        n_steps=2400,
        closed_at=1790,
        seed=7,
        seconds=0.84,
        history=history,
        feature_names=names,
        shape=shape,
    )


def make_table(selection: Selection, n_rows=120, n_classes=2, seed=1):
    """Rows in which the kept features tell the classes apart and every fifth dropped one follows a kept one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.standard_normal((n_rows, selection.n_features))
    ordered = selection.ordered
    for position, column in enumerate(ordered):
        X[:, column] += y * (1.6 - 0.09 * position) * (-1) ** position
    for i, column in enumerate(np.flatnonzero(~selection.support)[::5]):
        X[:, column] = 0.8 * X[:, ordered[i % ordered.size]] + 0.6 * X[:, column]
    return X, np.array(["healthy", "tumour", "unclear", "mixed", "other"])[y]


def make_select_report(selection: Selection, n_rows=120, n_classes=2) -> SelectReport:
    """A full page: every optional part filled."""
    X, y = make_table(selection, n_rows, n_classes)
    labels = tuple(np.unique(y).tolist())
    n_kept = selection.n_features_to_select
    counts = tuple(tuple(40 if i == j else 3 + i for j in range(len(labels))) for i in range(len(labels)))
    sizes = [m for m in (1, 2, 4, 8, 12, 20, 40, 80) if m <= selection.n_features]
    points = tuple(CurvePoint(m, Interval(v, v - 0.06, v + 0.05)) for m in sizes for v in [0.93 - 0.3 / (m + 0.6)])
    page = select_report(
        selection,
        X,
        y,
        title="Colon tissue, 62 samples",
        target="diagnosis",
        scores=Scores(
            "balanced accuracy",
            Interval(0.912, 0.874, 0.95),
            Interval(0.861, 0.81, 0.912),
            Interval(0.604, 0.52, 0.688),
            Interval(0.051, -0.004, 0.106),
            Interval(0.308, 0.21, 0.406),
            n_folds=10,
            chance=1 / len(labels),
        ),
        curve=Curve("balanced accuracy", points, chosen=min(n_kept, 12)),
        confusion=Confusion(labels, counts),
        fold_share={int(i): max(0.2, 1 - 0.06 * r) for r, i in enumerate(selection.ordered)},
        notes=("The target 'diagnosis' holds 2 words: classification.", "3 columns with missing numbers were imputed."),
        settings={"n_features_to_select": n_kept, "variant": "soft", "network": "linear", "class_weight": "balanced"},
        command="tamiz select colon.csv --target diagnosis -k 12 --seed 7",
        created="2026-01-31",
        kept_sets=make_sets(selection, sizes),
    )
    rng = np.random.default_rng(4)
    truth = np.unique(y, return_inverse=True)[1]
    output = truth - 0.5 + 0.6 * rng.standard_normal(len(y))
    probability = 1 / (1 + np.exp(-2 * output))
    rows = np.arange(len(y))
    held = HeldOut(
        rows,
        rows % 5,
        y,
        np.roll(y, 1),
        {"kept": output, "all_features": output[::-1], "random_features": rng.standard_normal(len(y))},
        np.column_stack([1 - probability, probability]),
    )
    names = (*page.selection.names[:50], selection.name_of(int(np.argmax(selection.ranking))))
    grid = FoldGrid(names, (*(True,) * (len(names) - 1), False), rng.random((len(names), 5)) < 0.6)
    groups = [(label, y == label) for label in labels]
    fold = rows[rows % 5 != 0], rows[rows % 5 == 0]
    return replace(
        page,
        held_out=held if n_classes == 2 else None,
        stability=Stability(0.56, null=0.1, n_folds=5),
        fold_grid=grid,
        projections=make_projections(X, groups, fold, selection.support),
    )


def make_sets(selection: Selection, sizes) -> tuple[KeptSet, ...]:
    """The first of the ranking, with effects that fall."""
    order = np.argsort(selection.ranking)
    return tuple(
        KeptSet(m, tuple(order[:m].tolist()), tuple((0.5 - i / m) for i in range(m)))
        for m in sizes
        if m != selection.n_features_to_select
    )


def make_compare_report(n_methods=6) -> CompareReport:
    """A comparison over ten splits with every optional part filled."""
    rng = np.random.default_rng(3)
    methods = ("e2efs-soft", "e2efs", "fisher", "relieff", "mim", "svm-rfe", "lasso", "inf-fs", "ilfs", "dfs")
    methods = methods[:n_methods]
    sizes = (5, 10, 20, 50, 100)
    places, shifts = np.arange(n_methods)[:, None], 0.6 / (np.array(sizes) + 3)
    means = 0.94 - 0.018 * places - shifts
    scores = (means[:, :, None] + 0.025 * rng.standard_normal((n_methods, len(sizes), 10))).round(4)
    seconds = 0.02 * 3.0**places * (1 + np.arange(len(sizes)) / 10)
    agreement = (0.75 / (1 + np.abs(places - places.T))).round(3)
    np.fill_diagonal(agreement, 1.0)
    ranks = tuple(MethodRank(m, 1.4 + 0.75 * i, None if i == 0 else 0.2 / 8**i, i > 1) for i, m in enumerate(methods))
    tests = tuple(PairedTest(methods[0], m, 0.018 * (i + 1), 0.2 / 8**i, i > 0, 10) for i, m in enumerate(methods[1:]))
    return CompareReport(
        "Colon tissue: which selector?",
        "classification",
        62,
        2000,
        Comparison(BALANCED_ACCURACY, methods, sizes, scores, seconds),
        agreement,
        10,
        ranks,
        tests,
        target="diagnosis",
        notes=("All methods see the same ten splits.",),
        settings={"splits": 10, "test_size": 0.25},
        versions={"tamiz": "0.1.0", "python": "3.11.2"},
        seed=0,
        command="tamiz compare colon.csv --target diagnosis -k 5,10,20,50,100",
    )


@pytest.fixture(scope="session")
def selection() -> Selection:
    names = [f"gene_{i:04d}" for i in range(400)]
    return make_selection(names=names)


@pytest.fixture(scope="session")
def table(selection):
    return make_table(selection)


@pytest.fixture(scope="session")
def select_data(selection) -> SelectReport:
    return make_select_report(selection)


@pytest.fixture(scope="session")
def compare_data() -> CompareReport:
    return make_compare_report()


@pytest.fixture(scope="session")
def regression_data(selection) -> SelectReport:
    X, _ = make_table(selection)
    y = X[:, selection.ordered[0]] * 2 + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    residuals = Residuals(tuple(y.tolist()), tuple((0.9 * y).tolist()))
    return select_report(selection, X, y, title="Dose", residuals=residuals)


@pytest.fixture(scope="session")
def image_data() -> SelectReport:
    picked = make_selection(784, 39, shape=(1, 28, 28))
    rows, columns = np.mgrid[:28, :28]
    blob = np.exp(-((rows - 14) ** 2 + (columns - 14) ** 2) / 60)
    X = blob.ravel() + 0.1 * np.random.default_rng(0).standard_normal((50, 784))
    return replace(select_report(picked, X, np.arange(50) % 2), title="Digits")


@pytest.fixture(scope="session")
def selection_factory():
    return make_selection


@pytest.fixture(scope="session")
def report_factory():
    return make_select_report


@pytest.fixture(scope="session")
def compare_factory():
    return make_compare_report
