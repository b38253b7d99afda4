"""Compare normalisations of the columns: sqrt(2) against 2 standard deviations, and statistics with and without class weights.

Balanced accuracy of the model that selected (joint) and of a linear SVM on what was selected, mean over splits of the paper's
protocol and three numbers of features. The SVM sees columns normalised alike for all rows of the table.

    python benchmarks/normalisation.py --datasets lymphoma,colon,leukemia_3571,lung --splits 15
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from tamiz import E2EFSClassifier, ErfScaler, Training
from tamiz.evaluation.intervals import wilcoxon_pairs
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import find_data_home
from tamiz.paper.recipes import GRIDS, erf_pair, fit_svm, load_checked, load_split

M_VALUES = (10, 50, 200)
KINDS = ("erf", "erf2")


def fit_joint(train, y, test, kind, weighted, m, recipe):
    """Return the columns selected and the predictions of the model that selected them."""
    if weighted:
        model = E2EFSClassifier(m, normalize=kind, training=Training(recipe=recipe), random_state=0).fit(train, y)
        return model.get_support(indices=True), model.predict(test)
    scaler = ErfScaler(kind=kind).fit(train)
    model = E2EFSClassifier(m, normalize=None, training=Training(recipe=recipe), random_state=0).fit(
        scaler.transform(train), y
    )
    return model.get_support(indices=True), model.predict(scaler.transform(test))


def measure(dataset, n_splits, recipe):
    """Return scores[kind, weighted][learner], shape (n_splits, number of M)."""
    home = str(find_data_home())
    _, checksum = load_checked(dataset, home)
    ways = list(itertools.product(KINDS, (True, False)))
    scores = {
        way: {"joint": np.zeros((n_splits, len(M_VALUES))), "svm": np.zeros((n_splits, len(M_VALUES)))} for way in ways
    }
    for split in range(n_splits):
        parts = load_split(dataset, home, checksum, split)
        for way, (i, m) in itertools.product(ways, enumerate(M_VALUES)):
            columns, predicted = fit_joint(parts.train, parts.y_train, parts.test, *way, m, recipe)
            scores[way]["joint"][split, i] = balanced_accuracy(parts.y_test, predicted)
            train, test = erf_pair(parts.train[:, columns], parts.test[:, columns])
            machine = fit_svm(train, parts.y_train, GRIDS["small"], 0)
            scores[way]["svm"][split, i] = balanced_accuracy(parts.y_test, machine.predict(test))
    return scores


def main():
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--recipe", default="tamiz", choices=["tamiz", "paper"])
    options = parser.parse_args()
    print("| data | normalisation | statistics | joint | SVM | p against the default (joint, SVM) |")
    print("|---|---|---|---:|---:|---:|")
    for dataset in options.datasets.split(","):
        scores = measure(dataset, options.splits, options.recipe)
        default = scores["erf", True]
        for (kind, weighted), found in scores.items():
            tests = []
            for learner in ("joint", "svm"):
                one, other = found[learner].mean(axis=1), default[learner].mean(axis=1)
                pair = {"this": one, "default": other}
                tests.append("–" if (one == other).all() else f"{wilcoxon_pairs(pair, 0.05)[0].p_value:.2f}")
            words = "class-weighted" if weighted else "plain"
            means = " | ".join(f"{found[learner].mean():.3f}" for learner in ("joint", "svm"))
            print(f"| {dataset} | {kind} | {words} | {means} | {', '.join(tests)} |", flush=True)


if __name__ == "__main__":
    main()
