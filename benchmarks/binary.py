"""Binary columns: what is lost when tables are binarised, which normalisation suits them, ties, and pairs of binary columns.

- ``tables``: balanced accuracy of E2E-FS-Soft (the network that selected) on DEXTER, PCMAC and GISETTE (REBUILT), as they are
  and as "zero or not", for each normalisation; beside it a linear SVM on the columns with the best Fisher score.
- ``ties``: columns of the training part that are copies of another one, and columns that share the score at rank M.
- ``deep``: the paper's question, E2E-FS-Soft against DFS, SFS and iSFS on binary columns: PCMAC and MNIST as "zero or not", the
  balanced accuracy of a linear SVM on what each selects with a linear network, with its standard error over the splits.
- ``pairs``: how often ``find_pairs`` lists an exclusive or of two binary columns first and as significant, by the share of ones.

    python benchmarks/binary.py tables --splits 3
    python benchmarks/binary.py deep --datasets pcmac,mnist --splits 10
    python benchmarks/binary.py ties
    python benchmarks/binary.py pairs --tables 20
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC

from tamiz import E2EFSClassifier, find_pairs
from tamiz.baselines import MIM, FisherScore, ReliefF, get_method
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import load_dataset
from tamiz.paper.recipes import select_for_all

M_VALUES = (10, 50)
NORMALISATIONS = ("erf", "erf2", "standard", None)
MOST_ROWS = 1500


def load(name):
    """Return the table, dense, and the classes; at most MOST_ROWS rows."""
    if name == "pcmac":  # no entry of the registry
        with np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "pcmac.npz") as data:
            parts = data["data"], data["indices"], data["indptr"]
            X, y = sp.csr_matrix(parts, shape=tuple(data["shape"])), data["y"]
    else:
        dataset = load_dataset(name)
        X, y = dataset.data, dataset.target
    rows = np.random.default_rng(0).permutation(y.size)[:MOST_ROWS]
    X = X[rows]
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float32), y[rows]


def splits(X, y, n_splits):
    """Yield training and test parts, without columns that are constant in training."""
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        alive = np.flatnonzero(np.ptp(X[train], axis=0) > 0)
        yield X[train][:, alive], y[train], X[test][:, alive], y[test]


def compare_tables(names, n_splits):
    """Print balanced accuracies as they are and binarised."""
    ways = [*(f"normalize={kind!r}" for kind in NORMALISATIONS), "Fisher, SVM"]
    print(f"| table | M | {' | '.join(ways)} |\n|---|---:|{'---:|' * len(ways)}")
    for name in names:
        X, y = load(name)
        for label, table in ((name, X), (f"{name}, zero or not", (X > 0).astype(np.float32))):
            found = np.zeros((n_splits, len(M_VALUES), len(ways)))
            for s, (train, y_train, test, y_test) in enumerate(splits(table, y, n_splits)):
                order = FisherScore(max(M_VALUES)).fit(train, y_train).selection_.ordered
                for i, m in enumerate(M_VALUES):
                    for j, kind in enumerate(NORMALISATIONS):
                        scale = 1.0 if kind is not None else np.abs(train).max()
                        clf = E2EFSClassifier(m, normalize=kind, random_state=s).fit(train / scale, y_train)
                        found[s, i, j] = balanced_accuracy(y_test, clf.predict(test / scale))
                    best = order[:m]
                    machine = LinearSVC(C=0.1, class_weight="balanced", dual="auto").fit(train[:, best], y_train)
                    found[s, i, -1] = balanced_accuracy(y_test, machine.predict(test[:, best]))
            for i, m in enumerate(M_VALUES):
                cells = " | ".join(f"{value:.3f}" for value in found[:, i].mean(axis=0))
                print(f"| {label} | {m} | {cells} |", flush=True)


def compare_deep(names, n_splits):
    """Print balanced accuracies of an SVM on what E2E-FS-Soft and its deep rivals select of binary columns."""
    methods = ("e2efs-soft", "dfs", "sfs", "isfs", "fisher", "random")
    print(
        f"| table | M | {' | '.join(get_method(name).title for name in methods)} |\n|---|---:|{'---:|' * len(methods)}"
    )
    for name in names:
        X, y = load(name)
        found = np.zeros((n_splits, len(M_VALUES), len(methods)))
        for s, (train, y_train, test, y_test) in enumerate(splits((X > 0).astype(np.float32), y, n_splits)):
            for j, method in enumerate(methods):
                for i, picked in enumerate(select_for_all(method, train, y_train, M_VALUES, ("binary", name, s))):
                    machine = LinearSVC(C=0.1, class_weight="balanced", dual="auto").fit(
                        train[:, picked.columns], y_train
                    )
                    found[s, i, j] = balanced_accuracy(y_test, machine.predict(test[:, picked.columns]))
        for i, m in enumerate(M_VALUES):
            errors = found[:, i].std(axis=0, ddof=1) / np.sqrt(n_splits)
            cells = zip(found[:, i].mean(axis=0), errors, strict=True)
            print(f"| {name}, zero or not | {m} | {' | '.join(f'{a:.3f} ± {b:.3f}' for a, b in cells)} |", flush=True)


def count_ties(names):
    """Print how many columns are copies, and how many share the score of the last selected one."""
    print(
        "| table | columns | copies of another | tied at rank 10: Fisher | MIM | ReliefF |\n|---|---:|---:|---:|---:|---:|"
    )
    for name in names:
        X, y = load(name)
        for label, table in ((name, X), (f"{name}, zero or not", (X > 0).astype(np.float32))):
            train, y_train, _, _ = next(splits(table, y, 1))
            copies = (
                train.shape[1] - np.unique(np.packbits(train > 0, axis=0) if label != name else train, axis=1).shape[1]
            )
            tied = []
            for selector in (FisherScore(10), MIM(10, random_state=0), ReliefF(10)):
                scores = selector.fit(train, y_train).scores_
                tied.append(int((scores == np.sort(scores)[-10]).sum()))
            print(f"| {label} | {train.shape[1]:,} | {copies:,} | {' | '.join(map(str, tied))} |", flush=True)


def find_exclusive_or(n_tables):
    """Print how often an exclusive or with 10 % of wrong labels is found."""
    print("| share of ones | rows | the pair is first | and significant |\n|---:|---:|---:|---:|")
    for share in (0.5, 0.2, 0.1, 0.05):
        for n_rows in (200, 800):
            first = significant = 0
            for seed in range(n_tables):
                random = np.random.default_rng(seed)
                X = (random.random((n_rows, 100)) < share).astype(np.float32)
                y = (X[:, 3] != X[:, 7]) ^ (random.random(n_rows) < 0.1)
                found = find_pairs(X, y.astype(int), random_state=seed, n_jobs=1)
                first += bool(found.pairs) and found.pairs[0].indices == (3, 7)
                significant += (3, 7) in [pair.indices for pair in found.significant_pairs()]
            print(f"| {share:g} | {n_rows} | {first} of {n_tables} | {significant} of {n_tables} |", flush=True)


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "deep", "ties", "pairs"))
    parser.add_argument("--datasets", default="dexter,pcmac,gisette_rebuilt")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tables", type=int, default=20)
    options = parser.parse_args()
    if options.what == "tables":
        compare_tables(options.datasets.split(","), options.splits)
    elif options.what == "deep":
        compare_deep(options.datasets.split(","), options.splits)
    elif options.what == "ties":
        count_ties(options.datasets.split(","))
    else:
        find_exclusive_or(options.tables)


if __name__ == "__main__":
    main()
