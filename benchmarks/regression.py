"""Columns found and R2 in regression, beside the lasso: 18 designs with 1,000 columns, of which 10 are true.

    python benchmarks/regression.py [--tables 10] [--lasso-cv]

Rows 100, 200, 400; columns independent or AR(1) with correlation 0.5 and 0.9; signal to noise 1 and 4. Both select 10 columns:
the lasso those that enter its path first. R2 on 1,000 new rows: of the regressor itself, and of a ridge regression on the
columns of the lasso; ``--lasso-cv`` adds the lasso with as many columns as cross-validation gives it, which takes most of the
time. Diabetes has 990 columns of noise beside its 10, 8 splits.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product

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


def compare(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, true: np.ndarray, lasso_cv: bool = False
) -> dict[str, tuple[float, float]]:
    """Compute the share of true columns that are found and R2 on new rows, for each method."""
    ours = E2EFSRegressor(M, random_state=0).fit(X, y)
    weights = lasso_path(X - X.mean(axis=0), y - y.mean(), eps=0.01)[1]
    enough = np.flatnonzero((weights != 0).sum(axis=0) >= M)
    lasso = np.sort(np.argsort(-np.abs(weights[:, enough[0] if enough.size else -1]), kind="stable")[:M])
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 26))).fit(X[:, lasso], y)
    own = ours.get_support(indices=True)
    found = {
        "tamiz": (np.isin(own, true).mean(), ours.score(X_test, y_test)),
        "lasso": (np.isin(lasso, true).mean(), ridge.score(X_test[:, lasso], y_test)),
    }
    if lasso_cv:
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
    parser.add_argument("--lasso-cv", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cv = options.lasso_cv
    found = [
        compare(*draw(*design, 100 * i + j), cv) for i, design in enumerate(DESIGNS) for j in range(options.tables)
    ]
    show("18 designs", found)
    X, y = load_diabetes(return_X_y=True)
    X = np.hstack([X / X.std(axis=0), np.random.default_rng(0).normal(size=(len(y), 990))])
    splits = ShuffleSplit(8, test_size=1 / 3, random_state=0).split(X)
    show("diabetes", [compare(X[train], y[train], X[test], y[test], np.arange(10), cv) for train, test in splits])


if __name__ == "__main__":
    main()
