"""Speed and memory of the pair search, as ratios measured in one run.

    python benchmarks/pairs.py [products] [peers] [memory] [truth] [sketch] [madelon] [--peers-python PYTHON]

Without parts all of them run. ``peers`` needs the interpreter of an environment with interpret-core; ``madelon`` the data set.
*One search* is ``find_pairs(..., n_permutations=0)`` from the table to the result: ranks, main effects, all pairs, exact
judgement of the strongest, p values corrected for the number of pairs. Each permutation costs about one more; the default is
20 to 100 of them.
"""

from __future__ import annotations

import argparse
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
from joblib import cpu_count
from sklearn.metrics import roc_auc_score

from tamiz import find_pairs
from tamiz.pairs.basis import in_order
from tamiz.pairs.blocks import BLOCK_FUNCTIONS
from tamiz.paper import load_dataset, make_ground_truth


def best_of(action: Callable[[], object], times: int = 3) -> tuple[float, float]:
    """Return the least seconds, and the least seconds of the processors, which other processes disturb less."""
    seconds, processor = [], []
    for _ in range(times):
        began, began_processor = time.perf_counter(), time.process_time()
        action()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_processor)
    return min(seconds), min(processor)


def show(what: str, value: float, target: str) -> None:
    print(f"  {what:<72}{value:>10.4g}   target {target}", flush=True)


def bare_products(n_samples: int, n_columns: int, degree: int) -> None:
    """Do the matrix products of one search and nothing else: half of the square, in the same blocks and threads."""
    functions = np.ones((degree * n_columns, n_samples), dtype=np.float32)
    size = -(-len(functions) // -(-len(functions) // BLOCK_FUNCTIONS))
    starts = range(0, len(functions), size)
    tasks = [(a, b) for a in starts for b in starts if b >= a]

    def work(task: tuple[int, int]) -> list[tuple[np.ndarray, ...]]:
        functions[task[0] : task[0] + size] @ functions[task[1] : task[1] + size].T
        return []

    for _ in in_order(work, tasks, cpu_count()):
        pass


def products() -> None:
    """Compare one search, and one more permutation, with the bare matrix products, in turns."""
    X, y, _ = make_ground_truth("ring", 1000, 4000, random_state=0)
    find_pairs(X[:, :600], y, n_permutations=1, random_state=0)  # compiles
    rounds = []
    for _ in range(15):
        bare = best_of(lambda: bare_products(1000, 4000, 2), 1)
        rounds.append((bare, best_of(lambda: find_pairs(X, y, n_permutations=0, random_state=0), 1)))
    bare, search = np.array(rounds).min(axis=0)
    whole = best_of(lambda: find_pairs(X, y, n_permutations=5, random_state=0), 2)
    for place, clock in enumerate(("time", "processor time")):
        show(f"one search / bare products, 4,000 columns, 1,000 rows, {clock}", search[place] / bare[place], "1.5")
        show(f"one permutation / bare products, {clock}", (whole[place] - search[place]) / 5 / bare[place], "none")
    show("bare products, seconds", bare[0], "none")


PEER = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
from interpret.utils import measure_interactions
data = np.load(sys.argv[1])
began, began_processor = time.perf_counter(), time.process_time()
found = measure_interactions(data["X"], data["y"], interactions=3)
seconds, processor = time.perf_counter() - began, time.process_time() - began_processor
pairs = [list(map(int, pair)) for pair, _ in found]
print(json.dumps({"seconds": seconds, "processor": processor, "pairs": pairs}))
"""


def peers(python: str | None = None) -> None:
    """Compare with measure_interactions of InterpretML at 512 columns."""
    if python is None:
        print("  left out: name an interpreter that has interpret-core with --peers-python", flush=True)
        return
    X, y, truth = make_ground_truth("ring+xor", 834, 512, random_state=0)
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
    show("InterpretML / one search, 512 columns, 834 rows, time", peer["seconds"] / search[0], "at least 100")
    show("the same, processor time", peer["processor"] / search[1], "at least 100")
    show("InterpretML / search with 20 permutations", peer["seconds"] / with_permutations[0], "none")
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
    show("largest memory beyond the table, 20,000 columns, 1,000 rows, MB", float(run.stdout), "at most 400")


def truth() -> None:
    """Count how many of the true columns come first."""
    for name in ("ring", "xor", "ring+xor", "ring+xor+sum"):
        shares = []
        for n_features in (64, 256, 1024, 2048):
            for seed in range(3):
                X, y, true = make_ground_truth(name, 834, n_features, random_state=seed)
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


def madelon() -> None:
    """Count the relevant columns of MADELON, and measure how well a forest predicts from the first 20."""
    from sklearn.ensemble import RandomForestClassifier

    try:
        data = load_dataset("madelon", download=False)
    except Exception as error:
        print(f"  left out: {error}", flush=True)
        return
    X, y = np.asarray(data.data), np.asarray(data.target)
    # Each of the 20 relevant columns goes with another one; the 480 others go with none.
    correlation = np.abs(np.corrcoef(X.T)) - np.eye(X.shape[1])
    relevant = np.flatnonzero(correlation.max(axis=0) > 0.5)
    found = find_pairs(X, y, random_state=0)
    share = np.isin(relevant, found.ranking[: len(relevant)]).mean()
    show(f"share of the {len(relevant)} relevant columns of MADELON that come first", share, "1")
    show("columns with corrected p < 0.05", len(found.significant_columns()), "20 or 21")
    scores = []
    for seed in range(3):
        first = find_pairs(X[data.train], y[data.train], n_permutations=0, random_state=seed).ranking[:20]
        forest = RandomForestClassifier(500, random_state=seed, n_jobs=1).fit(X[data.train][:, first], y[data.train])
        scores.append(roc_auc_score(y[data.test], forest.predict_proba(X[data.test][:, first])[:, 1]))
    show("AUROC of a forest on 20 columns, validation part, mean of 3 forests", float(np.mean(scores)), ">= 0.964")


PARTS = {
    "products": products,
    "peers": peers,
    "memory": memory,
    "truth": truth,
    "sketch": sketch,
    "madelon": madelon,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--peers-python", help="interpreter of an environment with interpret-core")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {sorted(unknown)[0]!r}; choose from {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        print(f"{part}: {PARTS[part].__doc__}", flush=True)
        if part == "peers":
            peers(options.peers_python)
        else:
            PARTS[part]()


if __name__ == "__main__":
    main()
