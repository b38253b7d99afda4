"""Measure how time and memory of each method grow with the rows N, the columns F and the number of selected features M.

Each size is doubled twice while the others stay; the exponent is the slope of log(seconds) or log(bytes) against log(size).
Seconds are CPU seconds of this process, the least of a few fits; bytes are the peak of NumPy's allocations beyond the table
itself. Beside them stands what the paper's table of complexities says.

    python benchmarks/complexity.py --methods mim,fisher,relieff,inffs,ilfs,e2efs-soft
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings

import numpy as np

from tamiz.baselines.registry import make_selector

#: The paper's table: time, memory. i: iterations, C: classes, O_f: of the model itself.
PAPER = {
    "mim": ("N^2 F^2", "F^2"),
    "fisher": ("C N F", "F^2"),
    "relieff": ("i F N C", "F"),
    "inffs": ("N^2.37 (1 + F)", "F^2"),
    "ilfs": ("N^2.37 + i N + F + C", "F^2"),
    "dfs": ("O_f", "O_f + F"),
    "sfs": ("i O_f", "O_f + F"),
    "e2efs": ("O_f", "O_f + F"),
    "e2efs-soft": ("O_f", "O_f + F"),
}
METHODS = ("mim", "fisher", "relieff", "inffs", "ilfs", "dfs", "sfs", "e2efs", "e2efs-soft")


def make_table(n_rows, n_columns):
    """Return a table of noise whose first five columns tell two classes apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
    # Filters of the paper see columns in [0, 1].
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def fit(method, sizes):
    """Fit once."""
    X, y = make_table(sizes["N"], sizes["F"])
    selector = make_selector(method, sizes["M"], task="classification", random_state=0, network="linear")
    return selector, X, y


def measure(method, sizes, repeats):
    """Return CPU seconds (the least of some) and the peak of bytes."""
    selector, X, y = fit(method, sizes)
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(X, y)  # compiled before it is measured
        for _ in range(repeats):
            started = time.process_time()
            selector.fit(X, y)
            seconds.append(time.process_time() - started)
        tracemalloc.start()
        selector.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return min(seconds), peak


def exponent(sizes, values):
    """Return the slope in log-log coordinates."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def main():
    """Print one line per method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--doublings", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    start = {"N": options.rows, "F": options.columns, "M": options.features}
    print("| method | time: N, F, M | memory: N, F, M | the paper: time | memory | seconds, MB at the largest F |")
    print("|---|---|---|---|---|---|")
    for method in options.methods.split(","):
        times, memories, last = [], [], None
        for axis in ("N", "F", "M"):
            steps = [start[axis] * 2**i for i in range(options.doublings + 1)]
            found = [measure(method, {**start, axis: size}, options.repeats) for size in steps]
            seconds, peaks = zip(*found, strict=True)
            times.append(f"{exponent(steps, seconds):.1f}")
            memories.append(f"{exponent(steps, peaks):.1f}")
            if axis == "F":
                last = f"{seconds[-1]:.3g} s, {peaks[-1] / 1e6:.3g} MB"
        paper = PAPER.get(method, ("–", "–"))
        print(
            f"| {method} | {', '.join(times)} | {', '.join(memories)} | {paper[0]} | {paper[1]} | {last} |", flush=True
        )


if __name__ == "__main__":
    main()
