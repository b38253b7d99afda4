"""Readings of ReliefF and InfFS that their papers leave open, beside the figures that the E2E-FS paper prints.

Balanced accuracy of a linear SVM on the first 10, 50, 100, 150 and 200 features, as in ``benchmarks/baselines_quality.py`` (small
grid): ReliefF on DEXTER with other numbers of neighbours, scalings, distances and differences, InfFS on LUNG with other scalings,
correlations, weights and series. One process.

    python benchmarks/filter_readings.py relieff --splits 3
    python benchmarks/filter_readings.py inffs --splits 3
    python benchmarks/filter_readings.py relieff --dataset colon --only neighbours --splits 12
"""

from __future__ import annotations

import argparse
import os
import warnings

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import erf
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score

from tamiz.baselines.infinite import FeatureGraph, path_energy
from tamiz.baselines.relieff import scale_to_unit_range
from tamiz.paper.microarray import M_VALUES
from tamiz.paper.numbers import MICROARRAY
from tamiz.paper.recipes import GRIDS, erf_pair, fit_svm, load_checked, nonzero_columns, split_rows


def standardise(X):
    """Scale every column to mean 0 and deviation 1."""
    spread = X.std(axis=0, ddof=1)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def erf_normalise(X):
    """Scale every column as the networks of the paper see it."""
    return erf(standardise(X) / np.sqrt(2))


def relieff(X, y, k=10, metric="cityblock", difference="number"):
    """Return the scores of ReliefF for two classes, by the definition."""
    distances = cdist(X, X, metric)
    np.fill_diagonal(distances, np.inf)
    scores = np.zeros(X.shape[1])
    for i in range(len(y)):
        for own, sign in ((True, -1.0), (False, 1.0)):
            rows = np.flatnonzero((y == y[i]) == own)
            near = rows[np.argsort(distances[i, rows], kind="stable")[:k]]
            near = near[np.isfinite(distances[i, near])]
            apart = np.abs(X[near] - X[i]) if difference == "number" else (X[near] != X[i])
            scores += sign * apart.mean(axis=0)
    return scores / len(y)


def inffs(X, alpha=0.5, damping=0.99, pearson=False, plain_spread=False):
    """Return the scores of InfFS."""
    graph = FeatureGraph(X, alpha)
    if pearson:
        centred = X - X.mean(axis=0)
        lengths = np.sqrt((centred**2).sum(axis=0))
        graph.ranks = np.asfortranarray(centred / np.where(lengths > 0, lengths, 1.0), dtype=graph.ranks.dtype)
        graph.blocks = list(graph._make_blocks())
    if plain_spread:  # deviations as they are, not moved to [0, 1]
        graph.spread = X.std(axis=0, ddof=1, dtype=np.float64)
    return path_energy(graph.times, graph.n_features, damping)


UNIT = scale_to_unit_range
READINGS = {
    "relieff": {
        "as here: 10 neighbours, range, Manhattan": lambda X, y: relieff(UNIT(X), y),
        "1 neighbour": lambda X, y: relieff(UNIT(X), y, k=1),
        "5 neighbours": lambda X, y: relieff(UNIT(X), y, k=5),
        "20 neighbours": lambda X, y: relieff(UNIT(X), y, k=20),
        "50 neighbours": lambda X, y: relieff(UNIT(X), y, k=50),
        "100 neighbours": lambda X, y: relieff(UNIT(X), y, k=100),
        "all rows as neighbours": lambda X, y: relieff(UNIT(X), y, k=len(y)),
        "Euclidean distance": lambda X, y: relieff(UNIT(X), y, metric="euclidean"),
        "cosine distance": lambda X, y: relieff(UNIT(X), y, metric="cosine"),
        "values as categories": lambda X, y: relieff(UNIT(X), y, difference="category"),
        "zero or not": lambda X, y: relieff((X != 0).astype(float), y),
        "standardised columns": lambda X, y: relieff(standardise(X), y),
        "columns not scaled": lambda X, y: relieff(X, y),
        "erf-normalised columns": lambda X, y: relieff(erf_normalise(X), y),
        "by absolute value": lambda X, y: np.abs(relieff(UNIT(X), y)),
    },
    "inffs": {
        "as here: [0, 1], Spearman, alpha .5, .99": lambda X, y: inffs(UNIT(X)),
        "Pearson's correlation": lambda X, y: inffs(UNIT(X), pearson=True),
        "deviations not moved to [0, 1]": lambda X, y: inffs(UNIT(X), plain_spread=True),
        "columns not scaled": lambda X, y: inffs(X),
        "columns not scaled, Pearson": lambda X, y: inffs(X, pearson=True),
        "erf-normalised columns": lambda X, y: inffs(erf_normalise(X)),
        "standardised columns": lambda X, y: inffs(standardise(X)),
        "alpha 0: deviations alone": lambda X, y: inffs(UNIT(X), alpha=0.0),
        "alpha 1: correlations alone": lambda X, y: inffs(UNIT(X), alpha=1.0),
        "series with 0.9": lambda X, y: inffs(UNIT(X), damping=0.9),
        "series with 0.5": lambda X, y: inffs(UNIT(X), damping=0.5),
    },
}
DEFAULT_DATASET = {"relieff": "dexter", "inffs": "lung"}


def judge(X_train, X_test, y_train, y_test, order):
    """Return the balanced accuracy for each M."""
    best = order[: max(M_VALUES)]
    erf_train, erf_test = (part.astype(np.float64) for part in erf_pair(X_train[:, best], X_test[:, best]))
    found = []
    for m in M_VALUES:
        machine = fit_svm(np.ascontiguousarray(erf_train[:, :m]), y_train, GRIDS["small"], seed=0)
        found.append(balanced_accuracy_score(y_test, machine.predict(erf_test[:, :m])))
    return found


def main():
    """Print one line for each reading: the mean over M and splits, and each M."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=list(READINGS))
    parser.add_argument("--dataset", help="another table than that with the difference")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", default="", help="readings whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    name = options.dataset or DEFAULT_DATASET[options.method]
    printed = MICROARRAY[options.method, "svm"][name.partition("_")[0]][0]
    dataset, _ = load_checked(name, os.environ.get("TAMIZ_DATA_HOME"))
    print(f"{options.method} on {name}, {options.splits} splits; printed: {printed:.3f}\n", flush=True)
    print(f"| reading | mean | {' | '.join(f'M = {m}' for m in M_VALUES)} |\n|---|{'---:|' * (len(M_VALUES) + 1)}")
    for reading, score in READINGS[options.method].items():
        if options.only not in reading:
            continue
        table = []
        for split in range(options.splits):
            train, test = split_rows(dataset.target, split)
            alive = nonzero_columns(dataset.data[train])
            parts = (dataset.data[rows][:, alive] for rows in (train, test))
            X_train, X_test = (part if isinstance(part, np.ndarray) else part.toarray() for part in parts)
            X_train, X_test = X_train.astype(np.float64), X_test.astype(np.float64)
            order = np.argsort(-score(X_train, dataset.target[train]), kind="stable")
            table.append(judge(X_train, X_test, dataset.target[train], dataset.target[test], order))
        means = np.mean(table, axis=0)
        print(f"| {reading} | {means.mean():.3f} | {' | '.join(f'{value:.3f}' for value in means)} |", flush=True)


if __name__ == "__main__":
    main()
