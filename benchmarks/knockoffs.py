"""False discovery rate and power of KnockoffSelection by simulation, beside other selectors with an error bound.

    python benchmarks/knockoffs.py [--tables 200] [--design AR ...] [--method knockoffs ...] [--fdr 0.2] [--jobs 2]

Each table has 15 true columns with effects of both signs. The false discovery rate is the mean share of false columns among
those kept (0 if none is kept); it should be at most ``fdr`` + 0.02. The standard error of the mean is given beside it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import stats

N_TRUE = 15
DESIGNS = {  # name: rows, columns, kind of columns, effect of a true column, kind of target
    "independent": (300, 100, "independent", 0.25, "numbers"),
    "AR(.7)": (300, 100, "ar", 0.25, "numbers"),
    "blocks of .7": (300, 100, "block", 0.3, "numbers"),
    "factors": (300, 100, "factor", 0.25, "numbers"),
    "heavy tails (t3 margins)": (300, 100, "heavy", 0.25, "numbers"),
    "binary columns": (300, 100, "binary", 0.25, "numbers"),
    "AR(.7), two classes": (300, 100, "ar", 0.8, "classes"),
    "no effect": (200, 100, "ar", 0.0, "numbers"),
    "common scale (multivariate t3)": (300, 100, "t3", 0.25, "numbers"),
    "n < p: 200 x 400, AR(.7)": (200, 400, "ar", 0.5, "numbers"),
    "n < p: 200 x 400, blocks of .7": (200, 400, "block", 0.5, "numbers"),
    "n < p: 200 x 2,000, factors": (200, 2000, "factor", 0.5, "numbers"),
}


def make_table(design: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a table, its target and the true columns."""
    n, p, kind, effect, target = DESIGNS[design]
    random = np.random.default_rng([seed, list(DESIGNS).index(design)])
    X = random.normal(size=(n, p))
    if kind in ("ar", "heavy", "binary", "t3"):
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    if kind == "heavy":
        X = stats.t.ppf(stats.norm.cdf(X), 3)
    elif kind == "binary":
        X = (X > 0.5).astype(float)
    elif kind == "t3":
        X = X / np.sqrt(random.chisquare(3, size=(n, 1)) / 3)
    elif kind == "block":
        X = np.sqrt(0.7) * np.repeat(random.normal(size=(n, p // 5)), 5, axis=1) + np.sqrt(0.3) * X
    elif kind == "factor":
        X = random.normal(size=(n, 3)) @ random.normal(size=(3, p)) / np.sqrt(3) + X
    true = random.permutation(p)[:N_TRUE]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = scaled[:, true] @ (effect * np.where(np.arange(N_TRUE) % 2, -1.0, 1.0))
    if target == "classes":
        return X, (random.random(n) < 1 / (1 + np.exp(-signal))).astype(int), true
    return X, signal + random.normal(size=n), true


def select(method: str, X: np.ndarray, y: np.ndarray, fdr: float) -> np.ndarray:
    """Return the columns that a method keeps."""
    from tamiz import E2EFSClassifier, E2EFSRegressor, KnockoffSelection, StabilitySelection

    network = E2EFSClassifier if y.dtype.kind == "i" else E2EFSRegressor
    selectors = {
        "knockoffs": lambda: KnockoffSelection(fdr=fdr),
        "one draw": lambda: KnockoffSelection(fdr=fdr, n_draws=1),
        "equicorrelated": lambda: KnockoffSelection(fdr=fdr, n_draws=1, construction="equicorrelated"),
        "screened to 100": lambda: KnockoffSelection(fdr=fdr, n_draws=1, n_screened=100),
        "E2E-FS, one draw": lambda: KnockoffSelection(network(2 * N_TRUE, random_state=0), fdr=fdr, n_draws=1),
        "E2E-FS": lambda: KnockoffSelection(network(2 * N_TRUE, random_state=0), fdr=fdr),
        "StabilitySelection": lambda: StabilitySelection(network(10, random_state=0), random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selectors[method]().fit(X, y).get_support(indices=True)


def one_table(design: str, method: str, fdr: float, seed: int) -> tuple[float, int]:
    """Return the share of false columns among those kept, and the number of true ones."""
    X, y, true = make_table(design, seed)
    kept = select(method, X, y, fdr)
    if DESIGNS[design][3] == 0.0:
        return float(len(kept) > 0), 0
    n_true = len(np.intersect1d(kept, true))
    return (len(kept) - n_true) / max(1, len(kept)), n_true


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200, help="tables of each design")
    parser.add_argument("--design", action="append", choices=list(DESIGNS), help="may be repeated; default: all")
    parser.add_argument("--method", action="append", help="may be repeated; default: knockoffs")
    parser.add_argument("--fdr", type=float, default=0.2)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{'design':<34}{'method':<20}{'tables':>7}{'FDR':>7}{'s.e.':>7}{'found of ' + str(N_TRUE):>13}", flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for design in options.design or DESIGNS:
            for method in options.method or ["knockoffs"]:
                n = options.tables
                arguments = [design] * n, [method] * n, [options.fdr] * n, range(n)
                outcome = np.array(list(pool.map(one_table, *arguments, chunksize=2)))
                rate, error = outcome[:, 0].mean(), outcome[:, 0].std() / np.sqrt(n)
                row = f"{design:<34}{method:<20}{n:>7}{rate:>7.3f}{error:>7.3f}{outcome[:, 1].mean():>13.1f}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
