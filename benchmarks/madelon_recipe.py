"""Which part of the paper's recipe for the three-layer network costs accuracy on MADELON.

Balanced accuracy of the network that selected (the paper's NaiveF), by ``Training.paper()`` with one setting changed at a
time, one start. The authors' files: E2E-FS-Soft .886, .866, .831, .793 for M = 5, 10, 15, 20, E2E-FS .885, .844, .810, .779.

    python benchmarks/madelon_recipe.py --splits 6
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz import E2EFSClassifier, Training
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import load_dataset
from tamiz.paper.recipes import split_rows

EPOCH = 51  # steps, with the paper's batches of 34 of 1,733 rows
SETTINGS = {
    "the recipe: rate 0.05, decay 100 / N, batches of N / 50, 5 epochs of warm-up": {},
    "rate 0.01 until the refinement": {"training__learning_rate": 0.01},
    "rate 0.001 throughout": {"training__learning_rate": 0.001},
    "decay 8 / N": {"l2": 8 / 1733},
    "decay 0.001": {"l2": 1e-3},
    "decay 0.0001": {"l2": 1e-4},
    "no decay": {"l2": 0.0},
    "rate 0.001, decay 0.0001": {"training__learning_rate": 0.001, "l2": 1e-4},
    "50 epochs of warm-up": {"training__warmup_steps": 50 * EPOCH},
    "batches of 128 rows": {"training__batch_size": 128},
    "T of 1,000 epochs": {"training__ramp_steps": 1000 * EPOCH},
    'normalize="erf"': {"normalize": "erf"},
    'normalize="standard"': {"normalize": "standard"},
}


def main():
    """Print one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--features", default="5,10,15,20")
    parser.add_argument("--variant", default="soft", choices=("soft", "hard"))
    parser.add_argument("--only", default="", help="settings whose name contains this")
    options = parser.parse_args()
    numbers = [int(m) for m in options.features.split(",")]
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    dataset = load_dataset("madelon")
    X, y = np.asarray(dataset.data, dtype=np.float32), dataset.target
    print(f"| {options.variant}, {options.splits} splits | {' | '.join(f'M = {m}' for m in numbers)} |")
    print(f"|---|{'---:|' * len(numbers)}")
    for name, setting in SETTINGS.items():
        if options.only not in name:
            continue
        cells = []
        for m in numbers:
            found = []
            for split in range(options.splits):
                train, test = split_rows(y, split)
                clf = E2EFSClassifier(
                    m, network="mlp", variant=options.variant, training=Training.paper(), random_state=split
                )
                clf.set_params(**setting).fit(X[train], y[train])
                found.append(balanced_accuracy(y[test], clf.predict(X[test])))
            cells.append(f"{np.mean(found):.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
