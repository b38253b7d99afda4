"""Examine "the advantage grows with the number of samples": balanced accuracy against the number of training rows.

For each number of rows, random training parts of that size are drawn; every method selects M columns on them, and a linear SVM
is trained on the selection (the same for all methods) and scored on rows that are never trained on. The last column is the
lead of E2E-FS-Soft over the best of the other methods, with its standard error over the draws.

    python benchmarks/learning_curve.py --dataset gisette_rebuilt --draws 5
    python benchmarks/learning_curve.py --dataset mnist --draws 5
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.svm import LinearSVC

from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import load_dataset
from tamiz.paper.recipes import erf_pair, select_for_all

METHODS = ("e2efs-soft", "fisher", "mim", "relieff")


def load_rows(name, n_test, seed):
    """Return all rows that may be trained on, and test rows."""
    dataset = load_dataset(name)
    order = np.random.default_rng(seed).permutation(dataset.target.size)
    data = np.asarray(dataset.data, dtype=np.float32)
    test, rest = order[:n_test], order[n_test:]
    return data[rest], dataset.target[rest], data[test], dataset.target[test]


def score(method, train, y, test, y_test, m, seed):
    """Return the balanced accuracy of a linear SVM on what a method selects."""
    alive = np.flatnonzero(train.any(axis=0))
    train, test = train[:, alive], test[:, alive]
    (picked,) = select_for_all(method, train, y, [m], ("learning-curve", seed))
    part, rest = erf_pair(train[:, picked.columns], test[:, picked.columns])
    machine = LinearSVC(C=0.1, dual="auto", random_state=0, max_iter=20_000).fit(part, y)
    return balanced_accuracy(y_test, machine.predict(rest))


def main():
    """Print one line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="gisette_rebuilt")
    parser.add_argument("--rows", default="50,100,200,500,1000,2000")
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    methods = options.methods.split(",")
    X, y, test, y_test = load_rows(options.dataset, options.test_rows, 0)
    print(f"| rows | {' | '.join(methods)} | lead of {methods[0]} |\n|---:|{'---:|' * (len(methods) + 1)}")
    for n_rows in map(int, options.rows.split(",")):
        scores = np.zeros((options.draws, len(methods)))
        for draw in range(options.draws):
            rows = np.random.default_rng((draw, n_rows)).choice(y.size, n_rows, replace=False)
            for place, method in enumerate(methods):
                scores[draw, place] = score(method, X[rows], y[rows], test, y_test, options.features, draw)
        means = scores.mean(axis=0)
        best = 1 + int(means[1:].argmax())
        lead = scores[:, 0] - scores[:, best]
        error = lead.std(ddof=1) / np.sqrt(options.draws) if options.draws > 1 else float("nan")
        print(f"| {n_rows} | {' | '.join(f'{v:.3f}' for v in means)} | {lead.mean():+.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main()
