"""Measure what groups, forced columns and costs add to a training step, as ratios in one run.

Each engine takes the same steps of selection on the same table, with every column a feature of its own and with groups of four
columns (or a budget); the ratio is that of the CPU times, the median of pairs that run one after the other.

    python benchmarks/groups.py [--steps 400] [--repeats 7]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseEngine
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule
from tamiz.torch import FeatureMask

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def compiled_steps(engine: object, X: np.ndarray, n_steps: int, way: str) -> Callable[[], None]:
    """Return a run of ``n_steps`` steps in which nothing is eliminated before the limit."""
    n_columns = X.shape[1]
    groups = np.arange(n_columns) // 4 if way == "groups" else None
    n_features = n_columns if groups is None else n_columns // 4
    options = {"costs": np.linspace(1, 2, n_features), "budget": 1.5 * n_features / 2} if way == "costs" else {}
    m = 0 if options else n_features // 2
    # Nothing moves far in a ramp that is never climbed, so all columns stay at work.
    rule = Rule(n_features, m, ramp_steps=10**9, max_steps=n_steps, mask_learning_rate=1e-6, **options)
    schedule = Schedule(1e-3, 0.01, 64, 0, 10**9, refinement_steps=0, refinement_l2=0.01, refinement_rates=(1e-3,))
    targets = np.sign(X[:, :1])
    problem = Problem(X, targets, groups=groups)
    return lambda: engine.fit(problem, rule, get_loss("squared_hinge"), schedule)  # type: ignore[attr-defined]


def mask_steps(X: np.ndarray, n_steps: int, way: str) -> Callable[[], None]:
    """Return a run of steps of a network of the user behind a mask."""
    n_columns = X.shape[1]
    options: dict[str, object] = {"n_features_to_select": n_columns // 8 if way == "groups" else n_columns // 2}
    if way == "groups":
        options["groups"] = np.arange(n_columns) // 4
    if way == "costs":
        options = {"costs": np.linspace(1, 2, n_columns), "budget": 1.5 * n_columns / 2}
    x, y = torch.from_numpy(X[:64]), torch.from_numpy(X[:64, :1])

    def run() -> None:
        mask = FeatureMask(n_columns, mask_learning_rate=1e-6, **options)
        model = nn.Sequential(mask, nn.Linear(n_columns, 50), nn.ReLU(), nn.Linear(50, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        mask.attach(optimizer, ramp_steps=10**9)
        for _ in range(n_steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    return run


def cpu_time(run: Callable[[], None]) -> float:
    """Return the CPU seconds of a run."""
    began = time.process_time()
    run()
    return time.process_time() - began


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    print(
        f"{'engine':>12}{'columns':>9}{'groups of 4':>13}{'costs':>8}   (CPU of a step against every column by itself)"
    )
    for name, n_columns in (("linear", 512), ("linear", 8192), ("dense", 512), ("mask", 512), ("mask", 8192)):
        X = rng.normal(size=(500, n_columns)).astype(np.float32)
        steps = arguments.steps if n_columns < 1000 else arguments.steps // 4
        runs = {}
        for way in ("plain", "groups", "costs"):
            if name == "mask":
                runs[way] = mask_steps(X, steps, way)
            else:
                engine = LinearEngine() if name == "linear" else DenseEngine(n_init=1)
                runs[way] = compiled_steps(engine, X, steps, way)
            runs[way]()  # compiled before it is timed
        times = [{way: cpu_time(run) for way, run in runs.items()} for _ in range(arguments.repeats)]
        ratios = {way: np.median([one[way] / one["plain"] for one in times]) for way in ("groups", "costs")}
        print(f"{name:>12}{n_columns:>9}{ratios['groups']:>13.2f}{ratios['costs']:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
