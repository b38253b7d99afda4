"""The paper's filter rows again: balanced accuracy of a linear SVM on what each filter selects, next to the paper's.

    TAMIZ_DATA_HOME=... python benchmarks/baselines_quality.py --repeats 5

Protocol of the paper's table of microarrays: stratified 3-fold splits, repeated; the filter sees the training part;
columns that are all zero there are dropped; a linear SVM is trained on the first 10, 50, 100, 150 and 200 features of
erf-normalised data, its C picked by 5-fold accuracy; the mean over the five sizes is the figure of the table.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import erf
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.svm import LinearSVC

from tamiz.baselines import make

SIZES = (10, 50, 100, 150, 200)
FILES = {
    "LYMPHOMA": "lymphoma.npz",
    "COLON": "colon.npz",
    "LEUKEMIA": "leukemia_3571.npz",
    "LUNG": "lung.npz",
    "DEXTER": "dexter.npz",
}
#: The rows "SVM" of the paper's table, in the order of FILES.
PAPER = {
    "mim": (0.943, 0.807, 0.957, 0.983, 0.867),
    "fisher": (0.950, 0.828, 0.959, 0.983, 0.909),
    "relieff": (0.944, 0.815, 0.957, 0.982, 0.910),
    "inffs": (0.837, 0.791, 0.925, 0.892, 0.810),
    "ilfs": (0.866, 0.812, 0.941, 0.953, 0.801),
}
SMALL_GRID = (0.001, 0.1, 1.0, 100.0)
FULL_GRID = (0.001, 0.1, 0.5, 1.0, 1.4, 1.5, 1.6, 2.0, 2.5, 5.0, 100.0)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set as dense float32 and classes."""
    record = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / FILES[name])
    if "X" in record:
        return record["X"], record["y"]
    X = sp.csr_matrix((record["data"], record["indices"], record["indptr"]), shape=tuple(record["shape"]))
    return X.toarray().astype(np.float32), record["y"]


def erf_normalise(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both parts through erf((x - mean) / (sqrt(2) sd)) with the training part's statistics."""
    mean, spread = train.mean(axis=0, dtype=np.float64), train.std(axis=0, ddof=1, dtype=np.float64)
    scale = np.sqrt(2.0) * np.where(spread > 0, spread, 1.0)
    return erf((train - mean) / scale), erf((test - mean) / scale)


def svm_accuracy(train, y_train, test, y_test, grid) -> float:
    """Balanced accuracy on the test part; C by 5-fold accuracy on the training part."""
    folds = list(StratifiedKFold(5).split(train, y_train))
    hits = [
        sum(
            np.sum(LinearSVC(C=C, random_state=0).fit(train[a], y_train[a]).predict(train[b]) == y_train[b])
            for a, b in folds
        )
        for C in grid
    ]
    best = LinearSVC(C=grid[int(np.argmax(hits))], random_state=0).fit(train, y_train)
    return balanced_accuracy_score(y_test, best.predict(test))


def run(name: str, methods: list[str], repeats: int, grid: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Mean balanced accuracy for each method and size."""
    X, y = load(name)
    results: dict[str, list[list[float]]] = {method: [] for method in methods}
    for train, test in RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=42).split(X, y):
        alive = np.flatnonzero(X[train].any(axis=0))
        X_train, X_test = X[np.ix_(train, alive)], X[np.ix_(test, alive)]
        for method in methods:
            params = {"random_state": 0} if method == "mim" else {}
            selector = make(method, n_features_to_select=max(SIZES), **params).fit(X_train, y[train])
            best = selector.selection_.ordered
            erf_train, erf_test = erf_normalise(X_train[:, best], X_test[:, best])
            results[method].append(
                [svm_accuracy(erf_train[:, :m], y[train], erf_test[:, :m], y[test], grid) for m in SIZES]
            )
    return {method: np.mean(rows, axis=0) for method, rows in results.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="repeats of the 3-fold splits (the paper: 20)")
    parser.add_argument("--datasets", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--methods", nargs="*", default=list(PAPER))
    parser.add_argument("--full-grid", action="store_true", help="the paper's eleven values of C instead of four")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'data set':10s} {'method':10s} {'paper':>6s} {'ours':>6s} {'diff':>7s}   by M = {SIZES}")
    for name in arguments.datasets:
        started = time.perf_counter()
        grid = FULL_GRID if arguments.full_grid else SMALL_GRID
        for method, by_size in run(name, arguments.methods, arguments.repeats, grid).items():
            paper = PAPER[method][list(FILES).index(name)] if method in PAPER else np.nan
            ours = by_size.mean()
            figures = " ".join(f"{value:.3f}" for value in by_size)
            print(f"{name:10s} {method:10s} {paper:6.3f} {ours:6.3f} {ours - paper:+7.3f}   {figures}", flush=True)
        print(f"{name:10s} took {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
