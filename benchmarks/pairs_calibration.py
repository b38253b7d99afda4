"""Family-wise error of the pair search on tables without effect, by kind of table.

    python benchmarks/pairs_calibration.py [--tables 30] [--jobs 2]

For each kind the share of tables with a pair, and with a column, whose corrected p value is below 0.05. It should be 0.05; the
target is 0.02 to 0.08 over all tables. For one kind with n tables the standard error is sqrt(0.05 * 0.95 / n).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

Table = tuple[np.ndarray, np.ndarray]


def _classes(random: np.random.Generator, n: int, share: float = 0.5) -> np.ndarray:
    """Draw exactly ``share`` of the rows as positives."""
    return random.permutation(np.arange(n) < round(share * n)).astype(int)


def _normal(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    return random.normal(size=(n, f))


def _correlated(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    """Draw clusters of ten columns that correlate by 0.9."""
    centres = np.repeat(random.normal(size=(n, -(-f // 10))), 10, axis=1)[:, :f]
    return np.sqrt(0.9) * centres + np.sqrt(0.1) * random.normal(size=(n, f))


def _counts(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    return random.poisson(random.uniform(0.1, 2.0, size=f), size=(n, f)).astype(float)


def _rare(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    """Draw binary columns with 2 to 30 % ones."""
    return (random.random((n, f)) < random.uniform(0.02, 0.3, size=f)).astype(float)


def _ties(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    return np.round(random.normal(size=(n, f)) * 1.5)


def _skewed(random: np.random.Generator, n: int, f: int) -> np.ndarray:
    return np.exp(2 * random.normal(size=(n, f)))


KINDS: dict[str, Callable[[np.random.Generator], Table]] = {
    "40 rows, balanced": lambda g: (_normal(g, 40, 40), _classes(g, 40)),
    "40 rows, 200 columns": lambda g: (_normal(g, 40, 200), _classes(g, 40)),
    "100 rows, balanced": lambda g: (_normal(g, 100, 40), _classes(g, 100)),
    "100 rows, 5 % positive": lambda g: (_normal(g, 100, 40), _classes(g, 100, 0.05)),
    "300 rows, 5 % positive": lambda g: (_normal(g, 300, 40), _classes(g, 300, 0.05)),
    "1,000 rows, 5 % positive": lambda g: (_normal(g, 1000, 40), _classes(g, 1000, 0.05)),
    "1,000 rows, balanced": lambda g: (_normal(g, 1000, 60), _classes(g, 1000)),
    "200 rows, ties": lambda g: (_ties(g, 200, 40), _classes(g, 200)),
    "200 rows, counts": lambda g: (_counts(g, 200, 40), _classes(g, 200)),
    "200 rows, counts, 10 % positive": lambda g: (_counts(g, 200, 40), _classes(g, 200, 0.1)),
    "200 rows, rare binary": lambda g: (_rare(g, 200, 40), _classes(g, 200)),
    "200 rows, rare binary, 5 % positive": lambda g: (_rare(g, 200, 40), _classes(g, 200, 0.05)),
    "200 rows, correlated": lambda g: (_correlated(g, 200, 40), _classes(g, 200)),
    "60 rows, correlated, 20 % positive": lambda g: (_correlated(g, 60, 40), _classes(g, 60, 0.2)),
    "200 rows, 4 classes": lambda g: (_normal(g, 200, 40), g.integers(0, 4, 200)),
    "200 rows, 3 classes, counts": lambda g: (_counts(g, 200, 40), g.choice(3, 200, p=[0.6, 0.3, 0.1])),
    "200 rows, regression": lambda g: (_skewed(g, 200, 40), np.exp(g.normal(size=200))),
    "60 rows, regression, counts": lambda g: (_counts(g, 60, 40), g.standard_t(2, size=60)),
    "200 rows, regression, correlated": lambda g: (_correlated(g, 200, 40), g.normal(size=200)),
}


def one_table(kind: str, seed: int) -> tuple[bool, bool, bool]:
    """Return whether a pair, a column on its own, and a column in any way is found on one table."""
    from tamiz import find_pairs

    random = np.random.default_rng([seed, list(KINDS).index(kind)])
    X, y = KINDS[kind](random)
    found = find_pairs(X, y, random_state=seed, n_jobs=1)
    return (
        bool(found.significant_pairs()),
        bool((found.marginal_p_values < 0.05).any()),
        len(found.significant_columns()) > 0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=30, help="tables of each kind")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{'kind of table':<40}{'tables':>8}{'a pair':>9}{'alone':>9}{'column':>9}", flush=True)
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for kind in KINDS:
            outcome = np.array(list(pool.map(one_table, [kind] * options.tables, range(options.tables), chunksize=5)))
            rows.append(outcome)
            shares = "".join(f"{share:>9.3f}" for share in outcome.mean(axis=0))
            print(f"{kind:<40}{len(outcome):>8}{shares}", flush=True)
    everything = np.concatenate(rows)
    shares = "".join(f"{share:>9.3f}" for share in everything.mean(axis=0))
    print(f"{'all':<40}{len(everything):>8}{shares}   target 0.02 to 0.08", flush=True)


if __name__ == "__main__":
    main()
