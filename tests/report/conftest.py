"""Studies, selections and comparisons to draw: made by the library on synthetic tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tamiz import select
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.metrics import BALANCED_ACCURACY
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
    followed = np.unique(np.r_[order[: min(n_kept, 20)], order[n_kept : n_kept + 30]])
    rising = 0.5 + 0.5 * np.clip((step[:, None] - 300) / 1400, 0, 1) * np.ones((1, followed.size))
    gamma = np.where(ranking[followed][None, :] <= n_kept, rising, np.clip(1 - rising, 0, 0.5) * (step < 1500)[:, None])
    history = {
        "step": step,
        "phase": np.select([step < 300, step < 1500, step < 1800], [0, 1, 2], 3),
        "loss": 0.7 * np.exp(-step / 700) + 0.05 + 0.01 * rng.standard_normal(n_records),
        "n_alive": n_alive,
        "gamma_path": gamma,
        "gamma_path_features": followed,
    }
    run = {"n_steps": 2400, "closed_at": 1790, "seed": 7, "seconds": 0.84, "history": history}
    return Selection(ranking <= n_kept, ranking, **run, feature_names=names, shape=shape)


def make_table(selection: Selection, n_rows=120, seed=1):
    """Rows in which the kept features tell the classes apart and every fifth dropped one follows a kept one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, selection.n_features))
    ordered = selection.ordered
    for position, column in enumerate(ordered):
        X[:, column] += y * (1.6 - 0.09 * position) * (-1) ** position
    for i, column in enumerate(np.flatnonzero(~selection.support)[::5]):
        X[:, column] = 0.8 * X[:, ordered[i % ordered.size]] + 0.6 * X[:, column]
    return X, np.array(["healthy", "tumour"])[y]


@pytest.fixture(scope="session")
def selection() -> Selection:
    return make_selection(names=[f"gene_{i:04d}" for i in range(400)])


@pytest.fixture(scope="session")
def table(selection):
    return make_table(selection)


@pytest.fixture(scope="session")
def genes():
    """A study of 120 columns of numbers and two classes, with a curve and permutations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 120))
    y = np.array(["healthy", "tumour"])[(X[:, :4].sum(axis=1) + 0.8 * rng.normal(size=90) > 0).astype(int)]
    X[:, 7] = X[:, 0] + 0.1 * X[:, 7]
    frame = pd.DataFrame(X, columns=[f"gene_{i:03d}" for i in range(120)]).assign(diagnosis=y)
    return select(frame, target="diagnosis", k=6, permutations=9)


@pytest.fixture(scope="session")
def houses():
    """A study of a business table: text, gaps, a running number, whole numbers, a numeric target."""
    rng = np.random.default_rng(1)
    n = 200
    place, year, area = rng.integers(0, 11, n), rng.integers(1880, 2023, n), rng.gamma(4, 300, n).round()
    price = area * 60 + (year - 1880) * 300 + np.linspace(-60_000, 60_000, 11)[place] + rng.normal(0, 9000, n)
    frame = pd.DataFrame(
        {
            "Id": np.arange(1, n + 1),
            "Neighborhood": [f"N{k}" for k in place],
            "YearBuilt": year,
            "GrLivArea": area,
            "Garage": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + price / price.std()),
            **{f"noise{i}": rng.normal(size=n) for i in range(6)},
            "SalePrice": price,
        }
    )
    return select(frame, target="SalePrice", k=4, permutations=0)


@pytest.fixture(scope="session")
def comparison() -> Comparison:
    """Six methods over ten splits, with times and the features that were kept."""
    rng = np.random.default_rng(3)
    methods = ("e2efs-soft", "e2efs", "fisher", "relieff", "mim", "svm-rfe")
    sizes = (5, 10, 20, 50, 100)
    places, shifts = np.arange(6)[:, None], 0.6 / (np.array(sizes) + 3)
    scores = ((0.94 - 0.018 * places - shifts)[:, :, None] + 0.02 * rng.standard_normal((6, 5, 10))).round(4)
    supports = np.zeros((6, 5, 10, 200), dtype=bool)
    for i, j, k in np.ndindex(6, 5, 10):
        supports[i, j, k, rng.permutation(150)[: sizes[j]] + 10 * i] = True
    seconds = 0.02 * 3.0**places * (1 + np.arange(5) / 10)
    return Comparison(BALANCED_ACCURACY, methods, sizes, scores, seconds, supports, test_share=0.25)


@pytest.fixture(scope="session")
def about() -> dict:
    """What the page of the comparison says about its table."""
    said = {"title": "Colon tissue", "task": "classification", "n_rows": 62, "n_features": 2000, "target": "diagnosis"}
    return said | {
        "notes": ("All methods see the same splits.",),
        "settings": {"splits": 10},
        "command": "tamiz compare",
    }


@pytest.fixture(scope="session")
def selection_factory():
    return make_selection


@pytest.fixture(scope="session")
def table_factory():
    return make_table
