"""The automatic weight decay on tables with many classes and on text, beside its own fixed values and other selectors.

RepeatedStratifiedKFold 3 x 2 (random_state 42); each selector sees the training rows alone; balanced accuracy of linear
support vector machines retrained on the selected columns, standardised: one against one (SVC), one against the rest
(LinearSVC), and one against the rest with C chosen on three folds. Needs the files in TAMIZ_DATA_HOME.

    python benchmarks/strength.py [--datasets orl,pcmac] [--repeats 2] [--l2 auto,1] [--peers PYTHON] [--no-tuned]

``--l2`` takes "auto" and numerators of a decay / N. ``--peers`` is the interpreter of an environment with fastcan and
mrmr_selection; without it they are left out. F-test, forest and this package's own mRMR are always there. The last lines give
the cost of the choice: the time of an automatic fit over that of a fit with the decay it chose.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tamiz import E2EFSClassifier
from tamiz.baselines import MRMR

NUMBERS = (10, 50)
DATASETS = ("coil20", "orl", "warppie10p", "pcmac")
#: What the other side of ``--peers`` runs: columns in the order in which a selector takes them.
PEER = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
name, path, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = np.load(path)
X, y = table["X"].astype(float), table["y"]
varies = np.flatnonzero(X.std(axis=0) > 0)
X = (X[:, varies] - X[:, varies].mean(axis=0)) / X[:, varies].std(axis=0)
if name == "fastcan":
    from fastcan import FastCan
    targets = (y[:, None] == np.unique(y)).astype(float)
    order = FastCan(most, verbose=0).fit(X, targets if targets.shape[1] > 2 else targets[:, 1]).indices_
else:
    import pandas as pd
    from mrmr import mrmr_classif
    order = mrmr_classif(pd.DataFrame(X), pd.Series(y), K=most, show_progress=False, n_jobs=1)
np.save(path + ".order.npy", varies[np.asarray(order)])
"""


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Table, dense, and classes of a file in the data folder."""
    with np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / f"{name}.npz") as data:
        if "indptr" in data:
            parts = data["data"], data["indices"], data["indptr"]
            return sp.csr_matrix(parts, shape=tuple(data["shape"])).toarray(), data["y"]
        return data["X"], data["y"]


def ask_peer(python: str, name: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Columns in the order of a peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.npz")
        np.savez(path, X=X, y=y)
        subprocess.run([python, "-c", PEER, name, path, str(max(NUMBERS))], check=True, stdout=subprocess.DEVNULL)
        return np.load(path + ".order.npy")


def retrain(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, tuned: bool) -> list[float]:
    """Balanced accuracy of the three machines."""
    scaler = StandardScaler().fit(X[train])
    machines = [SVC(kernel="linear"), LinearSVC(max_iter=5000)]
    if tuned:
        machines.append(GridSearchCV(LinearSVC(max_iter=2000), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3))
    part, rest = scaler.transform(X[train]), scaler.transform(X[test])
    return [balanced_accuracy_score(y[test], machine.fit(part, y[train]).predict(rest)) for machine in machines]


def selections(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[tuple[str, int], np.ndarray]:
    """Columns of every selector for every M."""
    found = {}
    for value in options.l2.split(","):
        for m in NUMBERS:
            l2 = value if value == "auto" else float(value) / len(y)
            found[f"tamiz, l2 = {value}" + ("" if value == "auto" else " / N"), m] = (
                E2EFSClassifier(m, l2=l2, random_state=0).fit(X, y).get_support(indices=True)
            )
    orders = {
        "mRMR (tamiz)": MRMR(n_features_to_select=max(NUMBERS)).fit(X, y).selection_.ordered,
        "F-test": np.argsort(-np.nan_to_num(f_classif(X, y)[0]), kind="stable"),
        "forest": np.argsort(-RandomForestClassifier(300, random_state=0).fit(X, y).feature_importances_),
    }
    if options.peers:
        orders |= {name: ask_peer(options.peers, name, X, y) for name in ("fastcan", "mrmr_selection")}
    return found | {(name, m): order[:m] for name, order in orders.items() for m in NUMBERS}


def cost(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Time of an automatic fit over that of a fit with the decay it chose; the decay times N."""
    model = E2EFSClassifier(NUMBERS[0], random_state=0)
    plain = model.fit(X, y).copy_for(NUMBERS[0])
    seconds = []
    for estimator in (model, plain):
        began = time.process_time()
        estimator.fit(X, y)
        seconds.append(time.process_time() - began)
    return seconds[0] / seconds[1], model.l2_ * len(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--l2", default="auto,100,1")
    parser.add_argument("--peers", default=None, metavar="PYTHON")
    parser.add_argument("--no-tuned", action="store_true", help="leave out the machine with C chosen on folds")
    options = parser.parse_args()
    if not sys.warnoptions:
        import warnings

        warnings.simplefilter("ignore")
    for name in options.datasets.split(","):
        X, y = load(name)
        scores: dict[tuple[str, int], list[list[float]]] = {}
        splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=options.repeats, random_state=42)
        for train, test in splits.split(X, y):
            for key, columns in selections(X[train], y[train], options).items():
                scores.setdefault(key, []).append(retrain(X[:, columns], y, train, test, not options.no_tuned))
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, {np.unique(y).size} classes, {3 * options.repeats} splits")
        print(f"  {'':24s}" + "".join(f"{f'M = {m}: SVC, LinearSVC, tuned':>32s}" for m in NUMBERS))
        for selector in dict.fromkeys(name for name, _ in scores):
            cells = (" ".join(f"{value:8.3f}" for value in np.mean(scores[selector, m], axis=0)) for m in NUMBERS)
            print(f"  {selector:24s}" + "".join(f"{cell:>32s}" for cell in cells), flush=True)
        ratio, chosen = cost(X, y)
        print(f"  an automatic fit takes {ratio:.1f} times a fit with the decay it chose, {chosen:.3g} / N", flush=True)


if __name__ == "__main__":
    main()
