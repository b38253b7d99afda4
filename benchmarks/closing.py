"""Measure when masks close: E2E-FS against E2E-FS-Soft, by the paper's recipe and by the defaults.

The paper gives E2E-FS 300 epochs of selection and E2E-FS-Soft 200, because its target makes it converge faster. For each table:
the epoch in which the last feature is eliminated down to M, the epoch in which the mask is closed (L12 + LM = 0), alpha at
that step, and the share of masks closed without the step limit.

    python benchmarks/closing.py --datasets lymphoma,colon,leukemia_3571,lung --splits 6
    python benchmarks/closing.py --images  # MNIST, the phases of the image tables, a small network in place of WRN-16-4
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz import E2EFSClassifier, Training
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
            found.append(
                (step / epoch, min(1.0, max(0, step - lengths.warmup_steps) / lengths.ramp_steps), record.converged)
            )
    return np.array(found)


def measure_images(variant, m):
    """Return the record of a selection on MNIST with the paper's epochs and T, and the steps of an epoch."""
    import torch
    from torch import nn

    from tamiz.paper.images import Images, load_pictures
    from tamiz.torch import FeatureMask, train

    torch.set_num_threads(1)
    torch.manual_seed(0)
    home = str(find_data_home())
    pictures = load_pictures("mnist", home, load_checked("mnist", home)[1], 0)
    layers = nn.Linear(784, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)
    phases = Images().phases(variant, len(pictures.train))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        record = train(
            nn.Sequential(FeatureMask(784, m, variant), *layers),
            (pictures.train, pictures.y_train),
            nn.functional.cross_entropy,
            optimizer=lambda parameters: torch.optim.SGD(parameters, 0.1, 0.9, weight_decay=5e-4, nesterov=True),
            batch_size=128,
            refinement_steps=1,
            **{**phases, "selection_steps": 0},
        )
    return record, -(-len(pictures.train) // 128)


def print_images():
    """Print one line for each variant and number of pixels."""
    print("| variant | pixels | epoch of closing | closed without the limit |\n|---|---:|---:|---|")
    for variant in ("soft", "hard"):
        for m in (39, 78, 392):
            record, epoch = measure_images(variant, m)
            closed = "yes" if record.converged else "no"
            print(f"| {variant} | {m} | {record.closed_at / epoch:.0f} | {closed} |", flush=True)


def main():
    """Print one line for each data set, recipe and variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--images", action="store_true", help="the image tables' phases on MNIST instead")
    options = parser.parse_args()
    if options.images:
        print_images()
        return
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
