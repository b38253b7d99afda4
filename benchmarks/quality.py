"""Columns that are selected, judged by three models: ours beside six other selectors, on tables of many kinds.

    TAMIZ_DATA_HOME=... python benchmarks/quality.py [--tables colon,orl] [--numbers 10,50] [--splits 3] [--record FILE]

Each selector keeps M columns of the training rows of a stratified 3-fold split (random_state 0). A linear SVM, an SVM with the
RBF kernel (both C = 1) and LightGBM are trained on these columns, standardised; the figure is their balanced accuracy on the
test rows. A line for each table and M, then means, mean ranks and the difference from ``network="linear"`` with its standard
error over the cells. abess, fastcan and LightGBM are left out where they are not installed. ``--record`` appends every score
as a line of JSON; a second run with the same file leaves out what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tamiz import E2EFSClassifier
from tamiz.baselines import make_selector

LOADERS = {"breast_cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
TABLES = (
    *(
        "breast_cancer",
        "digits",
        "wine",
        "colon",
        "leukemia_3571",
        "lymphoma",
        "lung",
        "gisette_genuine_168rows",
        "orl",
    ),
    *("warppie10p", "coil20", "madelon", "gina_rebuilt", "pcmac", "dexter"),
)
OURS = ("tamiz linear", "tamiz auto")
PEERS = ("lasso", "mrmr", "random-forest", "F test", "abess", "fastcan")
JUDGES = ("linear SVM", "RBF SVM", "LightGBM")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a table and number its classes."""
    if name in LOADERS:
        X, y = LOADERS[name](return_X_y=True)
    else:
        file = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / f"{name}.npz", allow_pickle=True)
        parts = ("data", "indices", "indptr")
        sparse = "indptr" in file
        X = sp.csr_matrix(tuple(file[part] for part in parts), file["shape"]).toarray() if sparse else file["X"]
        y = file["y"]
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def select(name: str, X: np.ndarray, y: np.ndarray, m: int) -> tuple[np.ndarray, str]:
    """Select m columns; also say what was chosen on the way."""
    if name in OURS:
        model = E2EFSClassifier(m, network=name.split()[1], random_state=0).fit(X, y)
        taken = model.selection_.choices["network"]["chosen"] if name == "tamiz auto" else ""
        return model.get_support(indices=True), taken
    scaled = StandardScaler().fit_transform(X)
    if name == "abess":
        from abess import LogisticRegression, MultinomialRegression

        model = (LogisticRegression if y.max() == 1 else MultinomialRegression)(support_size=m).fit(scaled, y)
        weights = np.abs(model.coef_.reshape(X.shape[1], -1)).sum(axis=1)
    elif name == "fastcan":
        from fastcan import FastCan

        target = y if y.max() == 1 else np.eye(y.max() + 1)[y]
        kept = FastCan(m, verbose=0).fit(scaled, target).indices_
        return np.sort(kept), ""
    elif name == "F test":
        from sklearn.feature_selection import f_classif

        weights = np.nan_to_num(f_classif(scaled, y)[0])
    else:
        return make_selector(name, n_features_to_select=m).fit(scaled, y).get_support(indices=True), ""
    return np.sort(np.argsort(-weights, kind="stable")[:m]), ""


def judge(name: str, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Score some columns by a model that is trained on them."""
    scaler = StandardScaler().fit(X[train])
    part, rest = scaler.transform(X[train]), scaler.transform(X[test])
    model: Any = LinearSVC(dual="auto", max_iter=5000) if name == "linear SVM" else SVC()
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=100, num_threads=1, random_state=0, verbose=-1)
    return float(balanced_accuracy_score(y[test], model.fit(part, y[train]).predict(rest)))


def run(
    tables: list[str], numbers: list[int], n_splits: int, selectors: list[str], record: Path | None
) -> list[dict[str, Any]]:
    """Score every selector on every split; print a line for each table and M as it is done."""
    found = [json.loads(line) for line in record.read_text().splitlines()] if record and record.exists() else []
    known = {(one["table"], one["m"], one["split"], one["selector"]) for one in found}
    judges = [name for name in JUDGES if name != "LightGBM" or find_spec("lightgbm")]
    selectors = [name for name in selectors if name not in ("abess", "fastcan") or find_spec(name)]
    for table in tables:
        X, y = load(table)
        splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))[:n_splits]
        for m in (m for m in numbers if m < X.shape[1]):
            for number, (train, test) in enumerate(splits):
                alive = np.flatnonzero(X[train].std(axis=0) > 0)
                for selector in selectors:
                    if (table, m, number, selector) in known:
                        continue
                    began = time.process_time()
                    kept, taken = select(selector, X[train][:, alive], y[train], m)
                    one = {"table": table, "m": m, "split": number, "selector": selector, "taken": taken}
                    one["seconds"] = time.process_time() - began
                    one |= {name: judge(name, X[:, alive[kept]], y, train, test) for name in judges}
                    if table == "madelon" and "tamiz" in selector:
                        one["kept"] = alive[kept].tolist()
                    found.append(one)
                    if record:
                        with record.open("a") as file:
                            file.write(json.dumps(one) + "\n")
            cell = [one for one in found if (one["table"], one["m"]) == (table, m)]
            networks = ", ".join(one["taken"] for one in cell if one["taken"])
            print(f"{table}, M = {m}: auto took {networks}")
            for name in judges:
                scores = {s: np.mean([one[name] for one in cell if one["selector"] == s]) for s in selectors}
                print(f"  {name:11}" + "  ".join(f"{s} {score:.3f}" for s, score in scores.items()), flush=True)
    return found


def show(found: list[dict[str, Any]]) -> None:
    """Print the means over all tables and M."""
    selectors = list(dict.fromkeys(one["selector"] for one in found))
    counts = Counter((one["table"], one["m"], one["split"]) for one in found)
    found = [one for one in found if counts[one["table"], one["m"], one["split"]] == len(selectors)]
    cells = sorted({(one["table"], one["m"]) for one in found})
    judges = [name for name in JUDGES if name in found[0]]
    print(
        f"\n{len(cells)} cells: mean balanced accuracy (mean rank of {len(selectors)}; minus tamiz linear, standard error)"
    )
    for name in judges:
        scores = np.array(
            [
                [
                    np.mean([o[name] for o in found if (o["table"], o["m"], o["selector"]) == (*cell, s)])
                    for s in selectors
                ]
                for cell in cells
            ]
        )
        ranks, gain = rankdata(-scores, axis=1).mean(axis=0), scores - scores[:, :1]
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(cells))
        print(name)
        for i in np.argsort(-scores.mean(axis=0)):
            print(
                f"  {selectors[i]:13} {scores[:, i].mean():.3f} ({ranks[i]:.1f}; {gain[:, i].mean():+.3f}, {error[i]:.3f})"
            )
    seconds = {s: np.median([one["seconds"] for one in found if one["selector"] == s]) for s in selectors}
    print("median CPU s: " + ", ".join(f"{s} {value:.2f}" for s, value in seconds.items()))


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--numbers", default="10,50")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--selectors", default=",".join((*OURS, *PEERS)))
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = [int(text) for text in options.numbers.split(",")]
    tables, selectors = options.tables.split(","), options.selectors.split(",")
    show(run(tables, numbers, options.splits, selectors, options.record))


if __name__ == "__main__":
    main()
