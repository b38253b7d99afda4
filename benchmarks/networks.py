"""Speed of the compiled dense network, as ratios measured in one run; CPU time, one thread per start.

    python benchmarks/networks.py [steps] [small] [madelon] [quality] [--before FOLDER]

Without names all parts run. ``--before`` is the folder of sources (``src``) of an earlier version of this project, against
which whole fits are compared, each in a process of its own; without it only the present version is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold

from tamiz import E2EFSClassifier
from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Engine, Problem
from tamiz.engines.dense import DenseEngine
from tamiz.engines.schedule import Schedule
from tamiz.paper import load_dataset

#: Runs with the sources of either version: prints the CPU seconds of a fit, after one that loads and compiles everything.
CHILD = """
import sys, time, warnings
import numpy as np
from tamiz import Dense, E2EFSClassifier, Training
warnings.simplefilter("ignore")
try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    pass
data = np.load(sys.argv[1])
X, y, m = data["X"], data["y"], int(data["m"])
short = Training(ramp_steps=20, refinement_epochs=1)
E2EFSClassifier(1, network=Dense(n_init=1), training=short, random_state=0).fit(X[:40, :3], np.arange(40) % 2)
began = time.process_time(), time.perf_counter()
model = E2EFSClassifier(m, network="mlp", random_state=0).fit(X, y)
print(time.process_time() - began[0], time.perf_counter() - began[1], model.n_iter_)
"""


def show(what: str, value: float, target: str) -> None:
    print(f"  {what:<66}{value:>12.4g}   target {target}", flush=True)


def seconds_per_step(engine: Engine, n_features: int, n_steps: int) -> float:
    """CPU seconds of a step with all columns alive: the difference of a long and a short run."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(640, n_features)).astype(np.float32)
    targets = np.where(X[:, [0]] * X[:, [1]] > 0, np.float32(1), np.float32(-1))
    schedule = Schedule(
        learning_rate=0.01, l2=0.01, batch_size=64, warmup_steps=0, ramp_steps=1, refinement_l2=0.01, refinement_steps=0,
        refinement_rates=(0.01,), epsilon=1e-8,
    )  # fmt: skip

    def run(n: int) -> float:
        rule = Rule(n_features, n_features - 1, ramp_steps=10**9, max_steps=n, mask_learning_rate=1e-9)
        began = time.process_time()
        engine.fit(Problem(X, targets), rule, get_loss("squared_hinge"), schedule)
        return time.process_time() - began

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the limit ends the run is meant
        run(2)
        return (min(run(2 * n_steps) for _ in range(8)) - min(run(n_steps) for _ in range(8))) / n_steps


def steps(before: str | None) -> None:
    """A step of the compiled network against one of the torch engine; batch 64."""
    import torch

    from tamiz.paper.networks import ThreeLayerNet
    from tamiz.torch.engine import TorchEngine

    torch.set_num_threads(1)
    for n_features, target in ((12, 20), (64, 20), (500, 8), (2048, 3)):
        ours = seconds_per_step(DenseEngine(n_init=1), n_features, 300)
        theirs = seconds_per_step(TorchEngine(ThreeLayerNet, n_init=1), n_features, 100)
        print(f"  {n_features:>5} columns: compiled {1e6 * ours:.0f} us, torch {1e6 * theirs:.0f} us")
        show(f"torch / compiled at {n_features} columns", theirs / ours, f">= {target}")


def whole_fit(X: np.ndarray, y: np.ndarray, m: int, before: str | None, target: str) -> None:
    """Time a whole fit with the present sources and with earlier ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=X, y=y, m=m)

        def run(sources: str | None) -> list[float]:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            if sources is not None:
                environment["PYTHONPATH"] = sources
            command = [sys.executable, "-c", CHILD, str(path)]
            output = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
            return [float(word) for word in output.stdout.split()]

        cpu, wall, n_steps = run(None)
        print(f"  compiled: {cpu:.2f} s of CPU, {wall:.2f} s wall, {n_steps:.0f} steps of the start that was kept")
        if before is not None:
            old_cpu, old_wall, _ = run(before)
            print(f"  earlier version: {old_cpu:.2f} s of CPU, {old_wall:.2f} s wall")
            show("CPU of the earlier version / compiled", old_cpu / cpu, target)


def small(before: str | None) -> None:
    """A whole fit of network="mlp" on 200 x 12."""
    X = np.random.default_rng(0).normal(size=(200, 12))
    whole_fit(X, (X[:, 2] * X[:, 5] > 0).astype(int), 2, before, ">= 20")


def madelon_table() -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset("madelon", download=False)
    return np.asarray(data.data), np.asarray(data.target)


def madelon_folds(n_repeats: int) -> RepeatedStratifiedKFold:
    return RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=42)


def madelon(before: str | None) -> None:
    """A whole fit of network="mlp" on a training fold of MADELON, M = 5."""
    X, y = madelon_table()
    train, _ = next(madelon_folds(1).split(X, y))
    whole_fit(X[train], y[train], 5, before, ">= 8")


def quality(before: str | None) -> None:
    """Balanced accuracy of network="mlp" on MADELON, M = 5, 3-fold x 3."""
    X, y = madelon_table()
    scores = []
    for train, test in madelon_folds(3).split(X, y):
        model = E2EFSClassifier(5, network="mlp", random_state=0).fit(X[train], y[train])
        scores.append(balanced_accuracy_score(y[test], model.predict(X[test])))
    print("  folds:", json.dumps([round(score, 4) for score in scores]))
    show("mean balanced accuracy", float(np.mean(scores)), ">= 0.892")


PARTS: dict[str, Callable[[str | None], None]] = {
    "steps": steps,
    "small": small,
    "madelon": madelon,
    "quality": quality,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--before", default=None, metavar="FOLDER")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        if name not in PARTS:
            parser.error(f"unknown part {name!r}; there are: {', '.join(PARTS)}")
        print(f"{name}: {PARTS[name].__doc__}")
        PARTS[name](options.before)
