"""Tables beyond memory and many rows: ratios measured in one run, peak memory by the kernel's count.

python benchmarks/scale.py parquet [--rows 1e7]   # Parquet of 100 columns against polars' mean of all columns
python benchmarks/scale.py rows                   # in memory, F = 200: a default fit against logistic regression on all columns
python benchmarks/scale.py wide                   # 20,000 x 20,000 with max_memory 200 MB against no limit
python benchmarks/scale.py dask                   # 2 and 4 workers: the same mask

Data are made in a temporary folder (TMPDIR); the Parquet part takes about 4 GB of disk at 1e7 rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TRUE = {3: 0.6, 17: -0.6, 29: 0.5, 41: -0.5, 55: 0.4, 60: 0.4, 71: -0.4, 77: 0.35, 88: 0.35, 95: -0.3}
CLOCK = (
    "started = time.time(), time.process_time()\n"
    "def taken():\n    return {'wall': time.time() - started[0], 'processor': time.process_time() - started[1]}\n"
)
PEAK = "import resource; print(json.dumps({**found, 'mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))"


def make_rows(rng: np.random.Generator, n_rows: int, n_columns: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows with ten true columns, some correlated with the first of them."""
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    X[:, 10:20] += 0.5 * X[:, 3:4]
    weights = np.zeros(n_columns)
    weights[list(TRUE)] = list(TRUE.values())
    return X, (X @ weights + rng.logistic(size=n_rows) > 0).astype(np.int8)


def in_process(code: str) -> dict:
    """Run code that leaves a dictionary ``found``; add the peak memory of its process."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json\n{code}\n{PEAK}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def parquet(n_rows: int) -> None:
    """Fit on Parquet files and compare with a scan that computes the mean of every column."""
    import polars as pl

    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(0)
        step = 500_000
        for part, start in enumerate(range(0, n_rows, step)):
            X, y = make_rows(rng, min(step, n_rows - start))
            frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y})
            frame.write_parquet(folder / f"part{part:03d}.parquet", compression_level=1, row_group_size=100_000)
        warm = (
            "import numpy as np, time\nfrom tamiz import E2EFSClassifier\nX = np.random.default_rng(0).normal(size=(300, 20))\n"
            "E2EFSClassifier(3, random_state=0).fit(X, X[:, 0] > 0)\n"
        )
        base = in_process(warm + "import polars\nfound = {}")["mb"]
        scan = f"import polars as pl, time\n{CLOCK}frame = pl.scan_parquet('{folder}/*.parquet')\n"
        scan += "frame.select(pl.all().mean()).collect()\nfound = taken()"
        fit = (
            f"{warm}{CLOCK}clf = E2EFSClassifier(10, random_state=0).fit('{folder}', 'y')\n"
            "found = {**taken(), 'kept': clf.get_support(indices=True).tolist(), 'passes': len(clf.passes_)}"
        )
        means, (first, second) = [in_process(scan) for _ in range(2)], [in_process(fit) for _ in range(2)]
        for clock in ("wall", "processor"):
            mean, took = min(one[clock] for one in means), min(first[clock], second[clock])
            print(
                f"{n_rows:,} x 100 from Parquet, {clock}: mean of all columns {mean:.2f} s, fit {took:.2f} s, "
                f"ratio {took / mean:.2f} (2.5)"
            )
        print(f"peak memory beyond the interpreter {second['mb'] - base:.0f} MB (1,500)")
        print(f"true columns kept {len(set(second['kept']) & set(TRUE))} of 10, {second['passes']} passes")


def rows() -> None:
    """Time a default fit and logistic regression on all columns, in memory."""
    from sklearn.linear_model import LogisticRegression

    from tamiz import E2EFSClassifier

    for n_rows in (1_000, 10_000, 100_000, 1_000_000):
        X, y = make_rows(np.random.default_rng(0), n_rows, 200)
        best = {"fit": np.inf, "logistic": np.inf}
        for _ in range(2):
            start = time.process_time()
            clf = E2EFSClassifier(10, random_state=0).fit(X, y)
            best["fit"] = min(best["fit"], time.process_time() - start)
            start = time.process_time()
            LogisticRegression().fit(X, y)
            best["logistic"] = min(best["logistic"], time.process_time() - start)
        found = len(set(clf.get_support(indices=True).tolist()) & set(TRUE))
        ratio = best["fit"] / best["logistic"]
        print(
            f"{n_rows:9,} x 200: fit {best['fit']:.2f} s, logistic {best['logistic']:.2f} s, ratio {ratio:.1f} (2), "
            f"true {found} of 10"
        )


def wide() -> None:
    """Compare selections of a wide table with and without a limit of memory."""
    from tamiz import E2EFSClassifier, Training

    n_rows = n_columns = 20_000
    with tempfile.TemporaryDirectory() as name:
        X = np.memmap(Path(name) / "x", dtype=np.float32, mode="w+", shape=(n_rows, n_columns))
        rng = np.random.default_rng(0)
        for start in range(0, n_rows, 1000):
            X[start : start + 1000] = rng.standard_normal((1000, n_columns), dtype=np.float32)
        true = rng.choice(n_columns, 30, replace=False)
        y = (X[:, true] @ rng.choice([-0.5, 0.5], 30) + rng.logistic(size=n_rows) > 0).astype(int)
        kept = {}
        for limit in (200e6, 4e9):
            start = time.process_time()
            clf = E2EFSClassifier(30, random_state=0, training=Training(max_memory=limit)).fit(X, y)
            kept[limit] = set(clf.get_support(indices=True).tolist())
            print(
                f"max_memory {limit / 1e6:,.0f} MB: {time.process_time() - start:.1f} s, "
                f"true {len(kept[limit] & set(true))} of 30, "
                f"passes {[(one.n_columns, one.n_sampled) for one in clf.passes_]}"
            )
        print(f"columns in common: {len(kept[200e6] & kept[4e9])} of 30 (29)")


def dask() -> None:
    """Compare the masks of fits on 1, 2 and 4 workers and on other partitions."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from tamiz import E2EFSClassifier

    X, y = make_rows(np.random.default_rng(0), 300_000)
    masks = []
    for workers, chunk in ((1, 40_000), (2, 40_000), (4, 30_000)):
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
            start = time.perf_counter()
            clf = E2EFSClassifier(10, random_state=0).fit(
                da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)
            )
            masks.append(clf.coef_.tobytes() + clf.ranking_.tobytes())
            print(f"{workers} workers, partitions of {chunk:,} rows: {time.perf_counter() - start:.1f} s")
    print("masks and weights equal bit by bit:", len(set(masks)) == 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("parquet", "rows", "wide", "dask"))
    parser.add_argument("--rows", type=float, default=1e7)
    options = parser.parse_args()
    {"parquet": lambda: parquet(int(options.rows)), "rows": rows, "wide": wide, "dask": dask}[options.part]()
