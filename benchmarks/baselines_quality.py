"""The paper's filter rows again: balanced accuracy of a linear SVM on what each filter selects, next to the paper's.

    TAMIZ_DATA_HOME=... python benchmarks/baselines_quality.py --repeats 5

Protocol of the paper's table of microarrays: stratified 3-fold splits, repeated; the filter sees the training part;
columns that are all zero there are dropped; a linear SVM is trained on the first 10, 50, 100, 150 and 200 features of
erf-normalised data; the mean over the five sizes is the figure of the table. ``--grid full`` picks the SVM's solver
(logistic, squared hinge, hinge) and C (eleven values) by 5-fold accuracy as the paper does; the small grid, with the
squared hinge and four values of C, takes a tenth of the time. One ranking serves all sizes of a split.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score

from tamiz.baselines import make_selector
from tamiz.paper.microarray import M_VALUES
from tamiz.paper.numbers import MICROARRAY
from tamiz.paper.recipes import GRIDS, N_FOLDS, erf_pair, fit_svm, load_checked, nonzero_columns, split_rows

DATASETS = ("colon", "lymphoma", "lung", "leukemia_3571", "dexter")
METHODS = ("fisher", "mim", "relieff", "inffs", "ilfs")


def one_split(X, y, split: int, methods: list[str], grid: dict) -> dict[str, list[float]]:
    """Balanced accuracy of each method for each number of features."""
    train, test = split_rows(y, split)
    alive = nonzero_columns(X[train])
    X_train, X_test = X[train][:, alive], X[test][:, alive]
    if not isinstance(X_train, np.ndarray):
        X_train, X_test = X_train.toarray(), X_test.toarray()
    results = {}
    for method in methods:
        params = {"random_state": split} if method == "mim" else {}
        selector = make_selector(method, n_features_to_select=max(M_VALUES), **params).fit(X_train, y[train])
        best = selector.selection_.ordered
        erf_train, erf_test = (part.astype(np.float64) for part in erf_pair(X_train[:, best], X_test[:, best]))
        machines = [fit_svm(np.ascontiguousarray(erf_train[:, :m]), y[train], grid, seed=0) for m in M_VALUES]
        results[method] = [
            balanced_accuracy_score(y[test], machine.predict(erf_test[:, :m]))
            for machine, m in zip(machines, M_VALUES, strict=True)
        ]
    return results


def show(name: str, method: str, table: np.ndarray) -> None:
    """One line: the paper's figure, ours with its standard error, the difference, and every size."""
    paper = MICROARRAY.get((method, "svm"), {}).get(name.partition("_")[0], (np.nan, np.nan))[0]
    by_split = table.mean(axis=1)
    ours, error = by_split.mean(), by_split.std(ddof=1) / np.sqrt(by_split.size)
    figures = " ".join(f"{value:.3f}" for value in table.mean(axis=0))
    print(f"{name:14s} {method:8s} {paper:6.3f} {ours:6.3f} {error:6.3f} {ours - paper:+7.3f}   {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="repeats of the 3-fold splits (the paper: 20)")
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument(
        "--grid", default="small", choices=list(GRIDS), help="full: solvers and values of C of the authors' code"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_splits = N_FOLDS * arguments.repeats
    print(f"{n_splits} splits, {arguments.grid} grid")
    print(f"{'data set':14s} {'method':8s} {'paper':>6s} {'ours':>6s} {'s.e.':>6s} {'diff':>7s}   by M = {M_VALUES}")
    for name in arguments.datasets:
        started = time.perf_counter()
        dataset, _ = load_checked(name, os.environ.get("TAMIZ_DATA_HOME"))
        splits = [
            one_split(dataset.data, dataset.target, split, arguments.methods, GRIDS[arguments.grid])
            for split in range(n_splits)
        ]
        for method in arguments.methods:
            show(name, method, np.array([results[method] for results in splits]))
        print(f"{name:14s} took {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
