"""``network="auto"`` beside ``network="linear"`` on the paper's tables: what the freedom to choose costs where a line is enough.

RepeatedStratifiedKFold 3 x ``--repeats`` (random_state 0), M = 10, 50, 100, 150, 200; balanced accuracy of the fitted
estimators themselves on the test rows, mean over M (the paper's AuC). Needs the files in TAMIZ_DATA_HOME.

    python benchmarks/automatic_network.py [--datasets colon,lung,dexter] [--repeats 4] [--numbers 10,50]

Each split prints one line; the last lines give the means, their difference and its standard error over the splits, and how
often each network was chosen.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold

from tamiz import E2EFSClassifier
from tamiz.paper import load_dataset

DATASETS = ("colon", "lung", "dexter")
NUMBERS = (10, 50, 100, 150, 200)


def fit_and_score(X: np.ndarray, y: np.ndarray, split: tuple, m: int, network: str) -> tuple[float, str]:
    """Return the balanced accuracy on the test rows and the network that the fit used."""
    train, test = split
    model = E2EFSClassifier(m, network=network, random_state=0).fit(X[train], y[train])
    choices = model.selection_.choices
    used = choices["network"]["chosen"] if "network" in choices else network
    return balanced_accuracy_score(y[test], model.predict(X[test])), used


def study(name: str, repeats: int, numbers: tuple[int, ...]) -> str:
    """Print a line for each split of a table; return the line of means."""
    data = load_dataset(name)
    X, y = data.data, data.target
    areas, used = [], Counter()
    splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=0).split(np.zeros(len(y)), y)
    for number, split in enumerate(splits):
        began = time.process_time()
        scores = {"linear": [], "auto": []}
        for m in numbers:
            for network, found in scores.items():
                score, taken = fit_and_score(X, y, split, m, network)
                found.append(score)
                if network == "auto":
                    used[taken] += 1
        areas.append([np.mean(scores["linear"]), np.mean(scores["auto"])])
        seconds = time.process_time() - began
        print(
            f"{name} split {number + 1}: linear {areas[-1][0]:.4f}  auto {areas[-1][1]:.4f}  ({seconds:.0f} s CPU)",
            flush=True,
        )
    linear, auto = np.array(areas).T
    error = np.std(auto - linear, ddof=1) / np.sqrt(len(linear)) if len(linear) > 1 else float("nan")
    chosen = ", ".join(f"{network} {count}" for network, count in used.most_common())
    return (
        f"{name:10s} linear {linear.mean():.4f}  auto {auto.mean():.4f}  "
        f"difference {(auto - linear).mean():+.4f} (standard error {error:.4f})  chosen: {chosen}"
    )


def main() -> None:
    """Run the study for the data sets of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--numbers", default=",".join(map(str, NUMBERS)))
    options = parser.parse_args()
    numbers = tuple(int(text) for text in options.numbers.split(","))
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = [study(name, options.repeats, numbers) for name in options.datasets.split(",")]
    print("\n".join(["", *lines]))


if __name__ == "__main__":
    main()
