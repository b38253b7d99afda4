"""Measure when masks close: E2E-FS against E2E-FS-Soft, by the paper's recipe and by the defaults.

The paper gives E2E-FS 300 epochs of selection and E2E-FS-Soft 200, because its target makes it converge faster. For each table:
the epoch in which the last feature is eliminated down to M, the epoch in which the mask is closed (L12 + LM = 0), alpha at
that step, and the share of masks closed without the step limit.

    python benchmarks/closing.py --datasets lymphoma,colon,leukemia_3571,lung --splits 6
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz import E2EFSClassifier, Training
from tamiz.core import alpha
from tamiz.estimators.networks import find_network
from tamiz.paper import find_data_home
from tamiz.paper.recipes import load_checked, load_split

M_VALUES = (10, 50, 200)


def measure(dataset, n_splits, recipe, variant, common):
    """Return the closing epoch, alpha then, and whether it converged, for every split and M."""
    home = str(find_data_home())
    _, checksum = load_checked(dataset, home)
    found = []
    for split in range(n_splits):
        parts = load_split(dataset, home, checksum, split)
        n = parts.train.shape[0]
        for m in M_VALUES:
            # A short refinement: it begins after the mask is closed.
            training = Training(recipe=recipe, refinement_epochs=1)
            decide = find_network("linear").schedule
            lengths = decide(training, n, m, "classification", variant=variant)
            if common and recipe == "paper":
                # Both variants with the T and the epochs of E2E-FS: what is left is the target alone.
                hard = decide(training, n, m, "classification", variant="hard")
                training.set_params(ramp_steps=hard.ramp_steps, max_steps=hard.max_steps)
                lengths = decide(training, n, m, "classification", variant=variant)
            clf = E2EFSClassifier(m, variant=variant, training=training, random_state=split)
            epoch = -(-n // lengths.batch_size)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                record = clf.fit(parts.train, parts.y_train).selection_
            step = record.closed_at
            found.append((step / epoch, alpha(step - lengths.warmup_steps, lengths.ramp_steps), record.converged))
    return np.array(found)


def main():
    """Print one line for each data set, recipe and variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=6)
    options = parser.parse_args()
    print("| data | recipe | variant | epoch of closing (median, range) | alpha then | closed without the limit |")
    print("|---|---|---|---:|---:|---:|")
    for dataset in options.datasets.split(","):
        for recipe, common in (("paper", False), ("paper", True), ("tamiz", False)):
            words = {"tamiz": "default"}.get(recipe, "paper, T of E2E-FS for both" if common else "paper")
            for variant in ("hard", "soft"):
                table = measure(dataset, options.splits, recipe, variant, common)
                epochs, alphas, closed = table.T
                print(
                    f"| {dataset} | {words} | {variant} | {np.median(epochs):.0f} ({epochs.min():.0f} to {epochs.max():.0f}) "
                    f"| {np.median(alphas):.2f} | {closed.mean():.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
