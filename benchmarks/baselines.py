"""Speed and memory of the filters, as ratios measured in one run.

    TAMIZ_DATA_HOME=... python benchmarks/baselines.py

- ReliefF against skrebate, on LEUKEMIA (7,129 columns) and on rows of MADELON;
- InfFS and ILFS on DEXTER (20,000 columns) against one product of two square float32 matrices of that many columns
  plus one factorisation (LU) of one, measured at a smaller size and scaled by the cube;
- FisherScore against one pass over X;
- MIM against scikit-learn's ``mutual_info_classif``, one thread each, on columns of LEUKEMIA and DEXTER;
- peak memory of InfFS and ILFS, in a process of their own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lu_factor

from tamiz.baselines import make_selector


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set as dense float32 and classes."""
    record = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / f"{name}.npz")
    if "X" in record:
        return record["X"], record["y"]
    X = sp.csr_matrix((record["data"], record["indices"], record["indptr"]), shape=tuple(record["shape"]))
    return X.toarray().astype(np.float32), record["y"]


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of some runs."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def row(what: str, ours: float, other: float, ratio: float, target: str, met: bool) -> None:
    print(f"{what:44s} {ours:10.4f} {other:10.4f} {ratio:9.2f}   {target:14s} {'yes' if met else 'NO'}", flush=True)


def relieff_against_skrebate(name: str, n_rows: int, target: float) -> None:
    """Both with 10 neighbours; skrebate is told to take all columns for numbers, as ours does."""
    from skrebate import ReliefF

    X, y = load(name)
    X, y = X[:n_rows], y[:n_rows]
    make_selector("relieff").fit(X[:10], np.arange(10) % 2)  # compile
    ours = seconds(lambda: make_selector("relieff", n_neighbors=10).fit(X, y))
    peer = ReliefF(n_neighbors=10, categorical_threshold=1, n_jobs=1)
    theirs = seconds(lambda: peer.fit(X.astype(np.float64), y), repeats=1)
    what = f"ReliefF / skrebate, {name} {X.shape[0]} x {X.shape[1]}"
    row(what, ours, theirs, theirs / ours, f">= {target:g} x", theirs / ours >= target)


def _fit_and_measure(name: str, queue: Any) -> None:
    X, y = load("dexter")
    make_selector(name).fit(X[:, :1100], y)  # compile
    took = seconds(lambda: make_selector(name, n_features_to_select=100).fit(X, y), repeats=1)
    queue.put((took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


def product_and_factorisation(size: int, n_features: int) -> float:
    """Seconds of one product and one LU of float32 matrices, scaled by the cube from a feasible size."""
    square = np.random.default_rng(0).random((size, size), dtype=np.float32)
    square @ square
    took = seconds(lambda: square @ square, repeats=2) + seconds(lambda: lu_factor(square, check_finite=False), 2)
    return took * (n_features / size) ** 3


def infinite_selectors_on_dexter(size: int) -> None:
    reference = product_and_factorisation(size, 20_000)
    for name in ("inffs", "ilfs"):
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=_fit_and_measure, args=(name, queue))
        process.start()
        took, gigabytes = queue.get()
        process.join()
        row(f"{name} / product + LU, dexter", took, reference, took / reference, "<= 3 x", took <= 3 * reference)
        row(f"{name} peak memory in GB, dexter", gigabytes, 8.0, gigabytes / 8.0, "<= 8 GB", gigabytes <= 8.0)


def fisher_against_one_pass() -> None:
    """Against the mean of every column, which reads X once."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        X, y = rng.random((4000, 10_000)).astype(dtype), np.arange(4000) % 2
        make_selector("fisher").fit(X[:4], y[:4])  # compile
        ours = seconds(lambda X=X, y=y: make_selector("fisher").fit(X, y), repeats=5)
        one_pass = seconds(lambda X=X: X.mean(axis=0, dtype=np.float64), repeats=5)
        what = f"FisherScore / column means, 4000 x 10000 {np.dtype(dtype).name}"
        row(what, ours, one_pass, ours / one_pass, "<= 2 x", ours <= 2 * one_pass)


def mim_against_scikit_learn(name: str, n_columns: int) -> None:
    """The same figures (to 1e-9); the noise is part of both."""
    from sklearn.feature_selection import mutual_info_classif

    X, y = load(name)
    X = X[:, X.any(axis=0)][:, :n_columns]
    make_selector("mim").fit(X[:, :2], y)  # compile
    ours = seconds(lambda: make_selector("mim", random_state=0).fit(X, y))
    theirs = seconds(lambda: mutual_info_classif(X, y, discrete_features=False, random_state=0), repeats=1)
    row(
        f"MIM / scikit-learn, {name} {X.shape[0]} x {X.shape[1]}",
        ours,
        theirs,
        theirs / ours,
        ">= 10 x",
        theirs / ours >= 10,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--madelon-rows", type=int, default=600, help="skrebate takes minutes on all 2,600")
    parser.add_argument("--matrix-size", type=int, default=4000, help="size at which product and LU are measured")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'what':44s} {'ours, s':>10s} {'other, s':>10s} {'ratio':>9s}   {'target':14s} met")
    fisher_against_one_pass()
    mim_against_scikit_learn("leukemia", 1000)
    mim_against_scikit_learn("dexter", 1000)
    infinite_selectors_on_dexter(arguments.matrix_size)
    relieff_against_skrebate("leukemia", 72, 30.0)
    relieff_against_skrebate("madelon", arguments.madelon_rows, 10.0)


if __name__ == "__main__":
    main()
