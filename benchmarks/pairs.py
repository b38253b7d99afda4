"""Speed and memory of the pair search, as ratios measured in one run.

    python benchmarks/pairs.py [products] [peers] [memory] [truth] [sketch]

Without arguments all parts run. ``peers`` needs the interpreter of an environment with interpret-core, named by the variable
PEERS_PYTHON; without it the part is left out.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tamiz import find_pairs
from tamiz.datasets import generators
from tamiz.pairs.blocks import BLOCK, count_threads, run_in_threads


def best_of(action: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of the quickest run."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def show(what: str, value: float, target: str) -> None:
    print(f"  {what:<72}{value:>10.4g}   target {target}", flush=True)


def bare_products(n_samples: int, n_columns: int, degree: int) -> None:
    """Do the matrix products of one search and nothing else: half of the square, in the same blocks and threads."""
    functions = np.ones((degree * n_columns, n_samples), dtype=np.float32)
    size = degree * BLOCK
    starts = range(0, len(functions), size)
    tasks = [(a, b) for a in starts for b in starts if b >= a]

    def work(task: tuple[int, int]) -> list[tuple[np.ndarray, ...]]:
        functions[task[0] : task[0] + size] @ functions[task[1] : task[1] + size].T
        return []

    for _ in run_in_threads(count_threads(None))(tasks, work):
        pass


def products() -> None:
    """Compare one search, and one more permutation, with the bare matrix products."""
    X, y, _ = generators.make_ring(1000, 4000, random_state=0)
    find_pairs(X[:, :300], y, n_permutations=1, random_state=0)  # compiles
    bare = best_of(lambda: bare_products(1000, 4000, 2))
    search = best_of(lambda: find_pairs(X, y, n_permutations=0, random_state=0))
    began = time.perf_counter()
    find_pairs(X, y, n_permutations=5, random_state=0)
    permutation = (time.perf_counter() - began - search) / 5
    show("one search / bare products, 4,000 columns, 1,000 rows", search / bare, "at most 1.5")
    show("one permutation / bare products", permutation / bare, "none")
    show("bare products, seconds", bare, "none")


PEER = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
from interpret.utils import measure_interactions
data = np.load(sys.argv[1])
began = time.perf_counter()
found = measure_interactions(data["X"], data["y"], interactions=3)
print(json.dumps({"seconds": time.perf_counter() - began, "pairs": [list(map(int, pair)) for pair, _ in found]}))
"""


def peers() -> None:
    """Compare with measure_interactions of InterpretML at 512 columns."""
    python = os.environ.get("PEERS_PYTHON")
    if not python:
        print("  left out: set PEERS_PYTHON to an interpreter that has interpret-core", flush=True)
        return
    X, y, truth = generators.make_ring_xor(834, 512, random_state=0)
    find_pairs(X[:, :64], y, n_permutations=1, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=X, y=y)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        run = subprocess.run(
            [python, "-c", PEER, str(path)], capture_output=True, text=True, check=True, env=environment
        )
    peer = json.loads(run.stdout.splitlines()[-1])
    search = best_of(lambda: find_pairs(X, y, n_permutations=0, random_state=0))
    with_permutations = best_of(lambda: find_pairs(X, y, n_permutations=20, random_state=0), 1)
    show("InterpretML / one search, 512 columns, 834 rows", peer["seconds"] / search, "at least 100")
    show("InterpretML / search with 20 permutations", peer["seconds"] / with_permutations, "none")
    print(f"  pairs of InterpretML {peer['pairs']}; true columns {truth.informative.tolist()}", flush=True)


MEMORY = """
import resource
import numpy as np
from tamiz import find_pairs
random = np.random.default_rng(0)
small = random.normal(size=(1000, 300))
y = random.integers(0, 2, 1000)
find_pairs(small, y, n_permutations=1, random_state=0)
X = random.normal(size=(1000, 20000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
find_pairs(X, y, n_permutations=0, random_state=0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def memory() -> None:
    """Measure the memory beyond the table at 20,000 columns, in a process of its own."""
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    show("memory beyond the table, 20,000 columns, 1,000 rows, MB", float(run.stdout), "at most 400")


def truth() -> None:
    """Count how many of the true columns come first."""
    for name in ("ring", "xor", "ring_xor", "ring_xor_sum"):
        shares = []
        for n_features in (64, 256, 1024, 2048):
            for seed in range(3):
                X, y, true = getattr(generators, f"make_{name}")(834, n_features, random_state=seed)
                found = find_pairs(X, y, n_permutations=0, random_state=0)
                shares.append(true.share_found(found.ranking[: len(true.informative)]))
        show(f"true columns that come first, {name}, 12 tables", float(np.mean(shares)), "1")


def sketch() -> None:
    """Find one product among 100,000 columns."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 100_000)).astype(np.float32)
    y = (X[:, 17] * X[:, 90_000] + 0.3 * random.normal(size=600) > 0).astype(int)
    began = time.perf_counter()
    found = find_pairs(X, y, random_state=0)
    show(
        f"100,000 columns by the {found.method}: the pair found (1) or not (0)",
        found.pairs[0].indices == (17, 90_000),
        "1",
    )
    show("seconds", time.perf_counter() - began, "none")
    print(
        f"  largest memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB",
        flush=True,
    )


PARTS = {"products": products, "peers": peers, "memory": memory, "truth": truth, "sketch": sketch}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(f"{part}: {PARTS[part].__doc__}", flush=True)
        PARTS[part]()
