"""Quality at one set of defaults, by the paper's protocol, beside the paper's best.

RepeatedStratifiedKFold 3 x 20 (random_state 42); mean balanced accuracy over M = 10, 50, 100, 150, 200; the joint network and a
linear SVM retrained on its selection, as in ``tamiz reproduce microarray``. Needs the files in TAMIZ_DATA_HOME.

    python benchmarks/quality.py [--repeats 20] [--datasets colon,lung] [--variant soft] [--jobs 2] [--no-svm] [--madelon]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold

from tamiz import E2EFSClassifier
from tamiz.paper import load_dataset
from tamiz.paper.recipes import GRIDS, erf_pair, fit_svm

NUMBERS = (10, 50, 100, 150, 200)
#: The best of the paper's rows for E2E-FS and E2E-FS-Soft.
PAPER = {
    "lymphoma": 0.935,
    "colon": 0.848,
    "leukemia_3571": 0.972,
    "lung": 0.986,
    "dexter": 0.924,
    "gina_rebuilt": 0.856,
    "gisette_rebuilt": 0.963,
}


def one_split(X, y, train, test, variant: str, with_svm: bool) -> list[tuple[float, float, float]]:
    """Joint score, SVM score and seconds of the selection for each M."""
    rows = []
    for m in NUMBERS:
        began = time.perf_counter()
        model = E2EFSClassifier(m, variant=variant, random_state=0).fit(X[train], y[train])
        seconds = time.perf_counter() - began
        joint = balanced_accuracy_score(y[test], model.predict(X[test]))
        svm = np.nan
        if with_svm:
            kept = X[:, model.selection_.indices]
            part, rest = erf_pair(kept[train], kept[test])
            svm = balanced_accuracy_score(y[test], fit_svm(part, y[train], GRIDS["small"], seed=0).predict(rest))
        rows.append((joint, svm, seconds))
    return rows


def microarrays(names: list[str], repeats: int, variant: str, jobs: int, with_svm: bool) -> None:
    """The table."""
    print(f"variant={variant}, {3 * repeats} splits, mean balanced accuracy over M = {', '.join(map(str, NUMBERS))}")
    print(
        f"{'data set':<18}{'joint':>8}{'svm':>8}{'better':>8}{'paper':>8}{'ahead by':>10}{'ms a fit':>10}  joint by M"
    )
    for name in names:
        data = load_dataset(name, download=False)
        X = data.data.tocsr() if sp.issparse(data.data) else np.asarray(data.data)
        y = np.asarray(data.target)
        splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=42).split(X, y)
        jobs_ = (delayed(one_split)(X, y, train, test, variant, with_svm) for train, test in splits)
        table = np.array(Parallel(n_jobs=jobs)(jobs_))
        joint, svm, seconds = table.mean(axis=(0, 1))
        better = np.nanmax([joint, svm])
        by_m = " ".join(f"{value:.3f}" for value in table[:, :, 0].mean(0))
        print(
            f"{name:<18}{joint:8.4f}{svm:8.4f}{better:8.4f}{PAPER[name]:8.3f}{better - PAPER[name]:+10.4f}"
            f"{1000 * seconds:10.0f}  {by_m}",
            flush=True,
        )


def madelon(repeats: int, jobs: int) -> None:
    """The three-layer network on MADELON, M = 5: the authors' balanced accuracy is 0.8912."""
    data = load_dataset("madelon", download=False)
    X, y = np.asarray(data.data), np.asarray(data.target)
    splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=42).split(X, y)

    def one(train, test):
        model = E2EFSClassifier(5, network="mlp", random_state=0).fit(X[train], y[train])
        return balanced_accuracy_score(y[test], model.predict(X[test]))

    scores = Parallel(n_jobs=jobs)(delayed(one)(train, test) for train, test in splits)
    print(
        f"madelon, network='mlp', M = 5, {3 * repeats} splits: {np.mean(scores):.4f} (authors 0.8912); by split",
        end=" ",
    )
    print(" ".join(f"{score:.3f}" for score in scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung,dexter")
    parser.add_argument("--variant", default="soft")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-svm", action="store_true")
    parser.add_argument("--madelon", action="store_true", help="only MADELON with the three-layer network")
    options = parser.parse_args()
    if options.madelon:
        madelon(min(options.repeats, 3), options.jobs)
        return
    microarrays(options.datasets.split(","), options.repeats, options.variant, options.jobs, not options.no_svm)


if __name__ == "__main__":
    main()
