"""Columns found and R2 in regression, beside the lasso: 18 designs with 1,000 columns, of which 10 are true.

    python benchmarks/regression.py [--tables 10] [--first 0] [--lasso-cv] [--exchange]

Rows 100, 200, 400; columns independent or AR(1) with correlation 0.5 and 0.9; signal to noise 1 and 4. Both select 10 columns:
the lasso those that enter its path first. R2 on 1,000 new rows: of the regressor itself, and of a ridge regression on the
columns of the lasso; ``--lasso-cv`` adds the lasso with as many columns as cross-validation gives it, which takes most of the
time, ``--exchange`` the selection as it closes, before columns are exchanged. Diabetes has columns of noise beside its 10. Gene
tables are the expression of COLON, LEUKEMIA and LYMPHOMA with a made target, eight genes and noise of half their variance; a
quarter of the rows is held out. ``--first`` moves the seeds of all of these.
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV, RidgeCV, lasso_path
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSRegressor

DESIGNS = list(product((100, 200, 400), (0.0, 0.5, 0.9), (1.0, 4.0)))
M, N_COLUMNS, N_TEST = 10, 1000, 1000


def draw(n_rows: int, rho: float, snr: float, seed: int) -> tuple[np.ndarray, ...]:
    """Draw training and test rows of a design, and the numbers of the true columns."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows + N_TEST, N_COLUMNS))
    for j in range(1, N_COLUMNS):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    true = random.choice(N_COLUMNS, M, replace=False)
    signal = X[:, true] @ (random.choice([-1, 1], M) * random.uniform(0.5, 1.5, M))
    y = signal + random.normal(size=len(X)) * signal.std() / np.sqrt(snr)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], true


def draw_genes(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Give the genes of a table a numeric target; hold out a quarter of the rows."""
    X = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / f"{name}.npz", allow_pickle=True)["X"].astype(np.float64)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    random = np.random.default_rng(seed)
    true = random.choice(X.shape[1], 8, replace=False)
    signal = X[:, true] @ (random.choice([-1, 1], 8) * random.uniform(0.5, 1.5, 8))
    y = signal + random.normal(size=len(X)) * signal.std() / np.sqrt(2)
    train, test = next(ShuffleSplit(1, test_size=1 / 4, random_state=seed).split(X))
    return X[train], y[train], X[test], y[test], true


def draw_diabetes(n_noise: int, seed: int) -> tuple[np.ndarray, ...]:
    """Put columns of noise beside those of the diabetes table; hold out a third of the rows."""
    X, y = load_diabetes(return_X_y=True)
    X = np.hstack([X / X.std(axis=0), np.random.default_rng(seed // 8).normal(size=(len(y), n_noise))])
    train, test = list(ShuffleSplit(8, test_size=1 / 3, random_state=seed // 8).split(X))[seed % 8]
    return X[train], y[train], X[test], y[test], np.arange(10)


def compare(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, true: np.ndarray, options: Any, m: int = M
) -> dict[str, tuple[float, float]]:
    """Compute the share of the selected columns that are true and R2 on new rows, for each method."""
    ours = E2EFSRegressor(m, random_state=0).fit(X, y)
    weights = lasso_path(X - X.mean(axis=0), y - y.mean(), eps=0.01)[1]
    enough = np.flatnonzero((weights != 0).sum(axis=0) >= m)
    lasso = np.sort(np.argsort(-np.abs(weights[:, enough[0] if enough.size else -1]), kind="stable")[:m])
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 26))).fit(X[:, lasso], y)
    own = ours.get_support(indices=True)
    found = {
        "tamiz": (np.isin(own, true).mean(), ours.score(X_test, y_test)),
        "lasso": (np.isin(lasso, true).mean(), ridge.score(X_test[:, lasso], y_test)),
    }
    if options.exchange:
        with patch("tamiz.estimators.base.exchange_columns", lambda fit, *_: fit):
            closed = E2EFSRegressor(m, random_state=0).fit(X, y)
        found["closed"] = np.isin(closed.get_support(indices=True), true).mean(), closed.score(X_test, y_test)
    if options.lasso_cv:
        found["LassoCV"] = np.nan, LassoCV(cv=5).fit(X, y).score(X_test, y_test)
    return found


def show(title: str, found: list[dict[str, tuple[float, float]]]) -> None:
    """Print means, and differences from the lasso with their standard errors."""
    print(f"{title}, {len(found)} tables")
    lasso = np.array([one["lasso"] for one in found])
    for name in found[0]:
        values = np.array([one[name] for one in found])
        gain, error = (values - lasso).mean(axis=0), (values - lasso).std(axis=0, ddof=1) / np.sqrt(len(found))
        (f1, r2), (f1_error, r2_error) = values.mean(axis=0), error
        print(
            f"{name:8} F1 {f1:.3f} ({gain[0]:+.3f}, se {f1_error:.3f})  R2 {r2:.3f} ({gain[1]:+.3f}, se {r2_error:.3f})"
        )


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10, help="tables of each design")
    parser.add_argument("--first", type=int, default=0, help="number of the first table of each kind")
    parser.add_argument("--lasso-cv", action="store_true")
    parser.add_argument("--exchange", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = range(options.first, options.first + options.tables)
    show("18 designs", [compare(*draw(*d, 100 * i + j), options) for i, d in enumerate(DESIGNS) for j in numbers])
    splits = range(8 * options.first, 8 * options.first + 8 * max(1, options.tables // 5))
    for n_noise, m in ((990, 10), (990, 20), (90, 10)):
        tables = [draw_diabetes(n_noise, seed) for seed in splits]
        show(f"diabetes and {n_noise} columns of noise, M = {m}", [compare(*one, options, m) for one in tables])
    if "TAMIZ_DATA_HOME" in os.environ:
        tables = [draw_genes(name, seed) for name in ("colon", "leukemia", "lymphoma") for seed in splits]
        for m in (10, 30):
            show(f"genes, M = {m}", [compare(*one, options, m) for one in tables])


if __name__ == "__main__":
    main()
