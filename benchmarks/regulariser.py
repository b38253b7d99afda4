"""Compare ways to find the number of features: cross-validation over a grid of M, a price for each (mask), LassoNet's path.

For each split of the paper's protocol: M and balanced accuracy on the test part

- for the M of the best 3-fold balanced accuracy inside the training part, and for the fewest features within one standard
  error of it;
- with ``--mask``: for three strengths of a ``FeatureMask`` in front of a linear layer (cross-entropy, Adam);
- with ``--lassonet PYTHON`` (an interpreter with ``lassonet``): for the model of LassoNet's path with the least validation
  loss, and for those with at most 8 and 64 features, beside E2E-FS with as many.

    python benchmarks/regulariser.py --datasets lymphoma,colon,leukemia_3571,lung --splits 6
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from tamiz import E2EFSClassifier, E2EFSPath
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import find_data_home
from tamiz.paper.recipes import load_checked, load_split
from tamiz.rows.scaling import ErfScaler

GRID = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 64, 128)
MASK_STRENGTHS = (0.0003, 0.001, 0.003)
COUNTS = (8, 64)
#: What the interpreter of ``--lassonet`` runs: counts, validation losses and test predictions along the path.
PEER = """
import sys, warnings
import numpy as np, torch
warnings.simplefilter("ignore")
torch.set_num_threads(1)
from lassonet import LassoNetClassifier
path, multiplier = sys.argv[1], float(sys.argv[2])
table = np.load(path)
model = LassoNetClassifier(hidden_dims=(10,), path_multiplier=multiplier, verbose=0, random_state=0, torch_seed=0)
items = model.path(table["X"], table["y"], return_state_dicts=True)
found = []
for item in items:
    model.load(item.state_dict)
    found.append((int(item.selected.sum()), float(item.val_loss), model.predict(table["test"])))
np.savez(path + ".out.npz", counts=[f[0] for f in found], losses=[f[1] for f in found], predictions=[f[2] for f in found])
"""


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


def by_path(parts):
    """Return M and balanced accuracy by cross-validation and for fixed numbers."""
    path = fit_path(parts.train, parts.y_train)
    scores = cross_validate(parts.train, parts.y_train)
    means = scores.mean(axis=0)
    error = scores.std(axis=0, ddof=1)[means.argmax()] / np.sqrt(len(scores))
    counts = {"cross-validation": GRID[int(means.argmax())]}
    counts["within one standard error"] = GRID[int(np.argmax(means >= means.max() - error))]
    counts |= {f"E2E-FS, M = {m}": m for m in COUNTS}
    accuracy = {m: balanced_accuracy(parts.y_test, path.estimators_[m].predict(parts.test)) for m in GRID}
    return {way: (m, accuracy[m]) for way, m in counts.items()}


def by_mask(parts):
    """Return M and balanced accuracy of a linear layer behind a mask with a strength."""
    import torch
    from torch import nn

    from tamiz.torch import FeatureMask

    torch.set_num_threads(1)
    scaler = ErfScaler().fit(parts.train)
    train, test = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (parts.train, parts.test))
    classes, codes = np.unique(parts.y_train, return_inverse=True)
    weight = torch.tensor(codes.size / (2 * np.bincount(codes)), dtype=torch.float32)[torch.tensor(codes)]
    target = torch.tensor(codes, dtype=torch.float32)
    found = {}
    for strength in MASK_STRENGTHS:
        torch.manual_seed(0)
        mask = FeatureMask(train.shape[1], strength=strength)
        model = nn.Sequential(mask, nn.Linear(train.shape[1], 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.01)
        mask.attach(optimizer, warmup_steps=100, ramp_steps=400)
        left = 200  # steps of refinement
        while left > 0:
            left -= mask.closed
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(train).squeeze(1), target, weight).backward()
            optimizer.step()
        with torch.no_grad():
            predicted = classes[(model(test).squeeze(1) > 0).long().numpy()]
        found[f"mask, strength {strength:g}"] = mask.n_features_to_select, balanced_accuracy(parts.y_test, predicted)
    return found


def by_lassonet(parts, python, multiplier):
    """Return M and balanced accuracy along LassoNet's path, and print its seconds."""
    scaler = ErfScaler().fit(parts.train)
    train, test = (np.asarray(scaler.transform(part), dtype=np.float32) for part in (parts.train, parts.test))
    classes, codes = np.unique(parts.y_train, return_inverse=True)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.npz")
        np.savez(path, X=train, y=codes, test=test)
        started = time.perf_counter()
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [python, "-c", PEER, path, str(multiplier)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=clean)
        print(f"LassoNet: {time.perf_counter() - started:.0f} s", flush=True)
        with np.load(path + ".out.npz") as out:
            counts, losses, predictions = out["counts"], out["losses"], classes[out["predictions"]]
    places = {"LassoNet, least validation loss": int(losses.argmin())}
    for m in COUNTS:
        fits = np.flatnonzero(counts <= m)
        places[f"LassoNet, at most {m}"] = int(fits[counts[fits].argmax()])
    return {
        way: (int(counts[place]), balanced_accuracy(parts.y_test, predictions[place])) for way, place in places.items()
    }


def main():
    """Print M and balanced accuracy, means over the splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--mask", action="store_true", help="FeatureMask with a strength too (needs torch)")
    parser.add_argument("--lassonet", metavar="PYTHON", help="interpreter with lassonet")
    parser.add_argument("--multiplier", type=float, default=1.02, help="step of LassoNet's path (its default: 1.02)")
    options = parser.parse_args()
    home = str(find_data_home())
    for dataset in options.datasets.split(","):
        _, checksum = load_checked(dataset, home)
        found: dict[str, list[tuple[int, float]]] = {}
        for split in range(options.splits):
            parts = load_split(dataset, home, checksum, split)
            results = by_path(parts)
            if options.mask:
                results |= by_mask(parts)
            if options.lassonet:
                results |= by_lassonet(parts, options.lassonet, options.multiplier)
            for way, result in results.items():
                found.setdefault(way, []).append(result)
        print(f"\n| {dataset}, {options.splits} splits | M | balanced accuracy |\n|---|---:|---:|")
        for way, pairs in found.items():
            numbers, accuracy = np.array(pairs).T
            print(f"| {way} | {numbers.min():.0f} to {numbers.max():.0f} | {accuracy.mean():.3f} |", flush=True)


if __name__ == "__main__":
    main()
