"""Compare ways to find the number of features: a price for each (strength), and cross-validation over a grid of M.

For each split of the paper's protocol: M and balanced accuracy on the test part for three strengths, for the M of the best 3-fold
balanced accuracy inside the training part, and for the fewest features within one standard error of it.

    python benchmarks/regulariser.py --datasets lymphoma,colon,leukemia_3571,lung --splits 6
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.model_selection import StratifiedKFold

from tamiz import E2EFSClassifier, E2EFSPath
from tamiz.datasets import find_data_home
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.reproduce.sources import load_checked
from tamiz.reproduce.splits import load_split

GRID = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 64, 128)
STRENGTHS = (0.001, 0.01, 0.03)


def fit_path(X, y):
    """Fit one classifier for each M of the grid."""
    return E2EFSPath(GRID, estimator=E2EFSClassifier(random_state=0)).fit(X, y)


def cross_validate(X, y):
    """Return balanced accuracies, shape (3, number of M)."""
    rows = []
    for fit, check in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        path = fit_path(X[fit], y[fit])
        rows.append([balanced_accuracy(y[check], path.estimators_[m].predict(X[check])) for m in GRID])
    return np.array(rows)


def main():
    """Print M and balanced accuracy, means over the splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=6)
    options = parser.parse_args()
    home = str(find_data_home())
    ways = [*(f"strength {strength:g}" for strength in STRENGTHS), "cross-validation", "within one standard error"]
    print(f"| data | {' | '.join(ways)} |\n|---|{'---:|' * len(ways)}")
    for dataset in options.datasets.split(","):
        _, checksum = load_checked(dataset, home)
        found = {way: [] for way in ways}
        for split in range(options.splits):
            parts = load_split(dataset, home, checksum, split)
            path = fit_path(parts.train, parts.y_train)
            scores = cross_validate(parts.train, parts.y_train)
            means = scores.mean(axis=0)
            error = scores.std(axis=0, ddof=1)[means.argmax()] / np.sqrt(len(scores))
            counts = [path.at_strength(strength).n_features_to_select_ for strength in STRENGTHS]
            counts += [GRID[int(means.argmax())], GRID[int(np.argmax(means >= means.max() - error))]]
            for way, m in zip(ways, counts, strict=True):
                found[way].append((m, balanced_accuracy(parts.y_test, path.estimators_[m].predict(parts.test))))
        cells = []
        for way in ways:
            numbers, accuracy = np.array(found[way]).T
            cells.append(f"M = {numbers.min():.0f} to {numbers.max():.0f}, {accuracy.mean():.3f}")
        print(f"| {dataset} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
