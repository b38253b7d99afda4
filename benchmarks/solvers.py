"""Compare solvers of gamma: Adam (the default), RMSprop, sign steps and plain projected gradient; and projection, without gamma.

Balanced accuracy of the model that selected (joint) and of a linear SVM on what was selected, steps until the mask was closed,
and the share of masks that were closed without the step limit; mean over splits of the paper's protocol and M = 10, 50, 200.
All have the same rate, 0.01. "projection" and "projection at once" keep the M largest weights after gradient steps, in the end
and from the first step on (``select_by_projection``); they have no mask to close, and no joint model.

    python benchmarks/solvers.py --datasets lymphoma,colon,leukemia_3571,lung --splits 9
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz import E2EFSClassifier, Training
from tamiz.core.rule import MASK_OPTIMIZERS
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import find_data_home
from tamiz.paper.recipes import GRIDS, erf_pair, fit_svm, load_checked, load_split

M_VALUES = (10, 50, 200)
PROJECTIONS = {"projection": 800, "projection at once": 1}


def select_by_projection(X, y, m, *, n_steps=1000, ramp_steps=800):
    """Select M columns by gradient steps that are projected on the largest weights: a solver of another kind than gamma's.

    The linear network of the paper (squared hinge, decay 100 / N, balanced classes, rows normalised by equation 9) takes steps
    of length 1 / L; after each, only the largest weights stay: all columns at first, M after ``ramp_steps``, falling
    geometrically. ``ramp_steps=1`` is iterative hard thresholding (Blumensath and Davies 2009). Two classes.
    """
    codes = np.unique(y, return_inverse=True)[1]
    rows, _ = erf_pair(X, X, "erf2")
    signs, shares = codes * 2.0 - 1.0, 0.5 / np.bincount(codes)[codes]
    l2, n_features = 100.0 / codes.size, rows.shape[1]
    curvature = 2.0 * (np.linalg.norm(rows * np.sqrt(shares)[:, None], 2) ** 2 + 1.0 + l2)
    weights, intercept = np.zeros(n_features), 0.0
    for step in range(1, n_steps + 1):
        pull = shares * signs * np.maximum(0.0, 1.0 - signs * (rows @ weights + intercept))
        weights += 2.0 * (rows.T @ pull - l2 * weights) / curvature
        intercept += 2.0 * pull.sum() / curvature
        n_alive = max(m, round(n_features * (m / n_features) ** (step / ramp_steps)))
        weights[np.argsort(-np.abs(weights), kind="stable")[n_alive:]] = 0.0
    return np.flatnonzero(weights)


def measure(dataset, splits, optimizer, variant, recipe):
    """Return joint accuracy, accuracy of the SVM, step of closing and convergence for every split and M."""
    home = str(find_data_home())
    _, checksum = load_checked(dataset, home)
    found = []
    for split in splits:
        parts = load_split(dataset, home, checksum, split)
        for m in M_VALUES:
            if optimizer in PROJECTIONS:
                columns = select_by_projection(parts.train, parts.y_train, m, ramp_steps=PROJECTIONS[optimizer])
                about = (np.nan, np.nan, np.nan)
            else:
                training = Training(recipe=recipe, mask_optimizer=optimizer)
                clf = E2EFSClassifier(m, variant=variant, training=training, random_state=split)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    clf.fit(parts.train, parts.y_train)
                columns = clf.get_support(indices=True)
                joint = balanced_accuracy(parts.y_test, clf.predict(parts.test))
                about = (joint, clf.selection_.closed_at, clf.selection_.converged)
            train, test = erf_pair(parts.train[:, columns], parts.test[:, columns])
            machine = fit_svm(train, parts.y_train, GRIDS["small"], 0)
            found.append((about[0], balanced_accuracy(parts.y_test, machine.predict(test)), *about[1:]))
    return np.array(found, dtype=float)


def main():
    """Print one line for each data set, variant and solver."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=9)
    parser.add_argument("--variants", default="soft")
    parser.add_argument("--recipe", default="tamiz", choices=["tamiz", "paper"])
    options = parser.parse_args()
    print("| data | variant | solver | joint | SVM | steps to close (median) | closed without the limit |")
    print("|---|---|---|---:|---:|---:|---:|")
    means = {}
    for dataset in options.datasets.split(","):
        for variant in options.variants.split(","):
            for optimizer in (*MASK_OPTIMIZERS, *PROJECTIONS):
                table = measure(dataset, range(options.splits), optimizer, variant, options.recipe)
                joint, svm, steps, closed = table.T
                means.setdefault((variant, optimizer), []).append((joint.mean(), svm.mean()))
                print(
                    f"| {dataset} | {variant} | {optimizer} | {joint.mean():.3f} | {svm.mean():.3f} | {np.median(steps):.0f} "
                    f"| {closed.mean():.0%} |",
                    flush=True,
                )
    for (variant, optimizer), rows in means.items():
        joint, svm = np.mean(rows, axis=0)
        print(f"| mean | {variant} | {optimizer} | {joint:.3f} | {svm:.3f} | | |")


if __name__ == "__main__":
    main()
