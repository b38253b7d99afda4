"""Measure the additive network: share of the true columns of RING, CPU against the linear fit, cost of groups, real tables.

RING as in ``tamiz reproduce ground-truth``: 1,000 rows, six folds (834 training rows each), p = 8 to 2,048. The linear fit
beside it gets the same expanded table, each column a feature of its own, the same schedule and as many features to keep as
the kept columns were expanded to. Real tables: 3 folds x 3, needs the files in TAMIZ_DATA_HOME.

    python benchmarks/additive.py [ring] [step] [tables] [--sizes 8,64,512] [--folds 6] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from tamiz import E2EFSClassifier
from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule, selection_schedule
from tamiz.engines import linear, loop
from tamiz.engines.additive import N_KNOTS, hat_basis
from tamiz.engines.contract import Problem
from tamiz.engines.design import Design
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule, additive_schedule
from tamiz.paper import load_dataset, make_ground_truth
from tamiz.rows.scaling import prepare_table

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
TABLES = ("colon", "lymphoma", "leukemia_3571", "lung")


def linear_on_expanded(X: np.ndarray, y: np.ndarray, m: int, seed: int) -> float:
    """Return the CPU seconds of a linear fit on the expanded table."""
    began = time.process_time()
    table = prepare_table(X, "erf")
    expanded = hat_basis(table.values, np.ones(X.shape[0], np.float32), N_KNOTS).table(table.values)
    schedule = additive_schedule(X.shape[0], m, "classification")
    kept = m * (N_KNOTS - 1)
    rule = Rule(expanded.shape[1], kept, warmup_steps=schedule.warmup_steps, ramp_steps=schedule.ramp_steps)
    targets = np.where(y > 0, 1.0, -1.0)[:, None]
    LinearEngine().fit(Problem(expanded, targets, owned=True), rule, get_loss("squared_hinge"), schedule, seed=seed)
    return time.process_time() - began


def ring(sizes: list[int], n_folds: int, seed: int) -> None:
    """Print the share found, the steps and the CPU by p."""
    X, y, _ = make_ground_truth("ring", 1000, 8, random_state=0)
    E2EFSClassifier(2, network="additive", random_state=0).fit(X, y)  # compiled before anything is timed
    print(f"{'p':>6}{'share found':>13}{'closed at':>11}{'CPU ms':>9}{'same columns':>16}{'ratio':>7}{'accuracy':>10}")
    means = []
    for p in sizes:
        X, y, truth = make_ground_truth("ring", 1000, p, random_state=10_000 * seed + p)
        shares, steps, additive, linear, scores = [], [], [], [], []
        for fold, (train, test) in enumerate(StratifiedKFold(n_folds, shuffle=True, random_state=p).split(X, y)):
            began = time.process_time()
            model = E2EFSClassifier(2, network="additive", random_state=fold).fit(X[train], y[train])
            additive.append(time.process_time() - began)
            linear.append(linear_on_expanded(X[train], y[train], 2, fold))
            shares.append(truth.share_found(model.get_support(indices=True)))
            steps.append(model.selection_.closed_at)
            scores.append(balanced_accuracy_score(y[test], model.predict(X[test])))
        means.append(np.mean(shares))
        ratio = np.sum(additive) / np.sum(linear)
        print(
            f"{p:>6}{means[-1]:>13.2f}{np.mean(steps):>11.0f}{1e3 * np.mean(additive):>9.0f}"
            f"{1e3 * np.mean(linear):>16.0f}{ratio:>7.2f}{np.mean(scores):>10.3f}",
            flush=True,
        )
    print(f"{'mean':>6}{np.mean(means):>13.3f}")


def step() -> None:
    """Print the time of a step with groups of seven, beside a step in which each column has a gamma of its own."""
    print(f"{'columns':>8}{'batch':>7}{'outputs':>9}{'no groups us':>14}{'groups us':>11}{'ratio':>7}")
    for n_columns, batch, n_outputs in [(700, 16, 1), (7168, 16, 1), (14336, 16, 1), (14336, 2, 1), (7168, 16, 4)]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(834, n_columns)).astype(np.float32)
        targets = np.where(rng.random((834, n_outputs)) > 0.5, 1.0, -1.0).astype(np.float32)
        weights = np.ones(834, dtype=np.float32)
        times = []
        for repeat in range(7):
            pair = []
            for size in (1, 7):
                f = n_columns // size
                # A gamma that hardly moves: no feature is eliminated while the clock runs.
                rule = Rule(f, 2, ramp_steps=10**6, mask_learning_rate=1e-6, max_steps=10**8)
                plan = Schedule(3e-3, 0.1, batch, 0, 10**6, 0, 0.1, (3e-3,))
                starts = None if size == 1 else np.arange(0, n_columns + 1, size)
                design = Design(X, None, owned=False, starts=starts)
                memory = loop.new_memory(design, rule, targets, batch, 0)
                n_steps = int(max(200, 2e7 // (n_columns * (batch + 8) * n_outputs) * 5))
                data = loop.Piece(design.matrix, targets, weights, *selection_schedule(rule, 1, n_steps))
                functions = (get_loss("squared_hinge").compiled, *design.products)
                began = time.process_time()
                loop.run(data, memory, rule.numbers, linear.training_numbers(rule, plan), *functions)
                pair.append((time.process_time() - began) / n_steps * 1e6)
            times += [pair] if repeat else []
        alone, grouped = np.median(times, axis=0)
        ratio = np.median([b / a for a, b in times])
        print(f"{n_columns:>8}{batch:>7}{n_outputs:>9}{alone:>14.1f}{grouped:>11.1f}{ratio:>7.2f}", flush=True)


def tables(seed: int) -> None:
    """Print balanced accuracy of the joint models on real tables, linear and additive."""
    print(f"{'table':<16}{'M':>4}{'linear':>9}{'additive':>10}{'CPU ms':>9}{'additive':>10}")
    for name in TABLES:
        data = load_dataset(name)
        X, y = np.asarray(data.data), np.asarray(data.target)
        splits = list(RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=42 + seed).split(X, y))
        for m in (10, 50):
            scores: dict[str, list[float]] = {"linear": [], "additive": []}
            seconds = dict.fromkeys(scores, 0.0)
            for (train, test), network in ((split, network) for split in splits for network in scores):
                began = time.process_time()
                model = E2EFSClassifier(m, network=network, random_state=0).fit(X[train], y[train])
                seconds[network] += time.process_time() - began
                scores[network].append(balanced_accuracy_score(y[test], model.predict(X[test])))
            mean = {network: np.mean(values) for network, values in scores.items()}
            cost = {network: 1e3 * value / len(splits) for network, value in seconds.items()}
            print(
                f"{name:<16}{m:>4}{mean['linear']:>9.3f}{mean['additive']:>10.3f}"
                f"{cost['linear']:>9.0f}{cost['additive']:>10.0f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=["ring", "step", "tables"], default=["ring", "step", "tables"])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--folds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="other tables of RING and other splits of the real tables")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        if part == "ring":
            ring([int(size) for size in arguments.sizes.split(",")], arguments.folds, arguments.seed)
        elif part == "tables":
            tables(arguments.seed)
        else:
            step()
