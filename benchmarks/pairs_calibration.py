"""Family-wise error of the pair search on tables without pairs, by kind of table.

    python benchmarks/pairs_calibration.py [--tables 30] [--jobs 2] [--part nothing] [--part strong] [--part power]

Part "nothing": tables without any effect; the share of tables with a pair, and with a column, whose corrected p value is
below 0.05. Part "strong": tables whose target depends strongly on a few columns, each on its own, or whose spread does, or
with wrong labels, and on no pair; the share of tables with a pair. It should be 0.05, and at most 0.07 over all tables of a
part. For one kind with n tables the standard error is sqrt(0.05 * 0.95 / n). Part "power": the share of tables in which a
true pair is found, and that of a t test of the product given both columns, with Bonferroni's correction.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import stats

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


def _drawn(random: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    """Draw two classes."""
    return (random.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)


def _two_strong(
    n: int, strength: float, shift: float = 0.0, columns: Callable[..., np.ndarray] = _normal
) -> Callable[[np.random.Generator], Table]:
    """Return what makes tables of 30 columns, of which two move the log odds."""

    def make(random: np.random.Generator) -> Table:
        X = columns(random, n, 30)
        return X, _drawn(random, strength * (X[:, 0] + X[:, 1]) + shift)

    return make


def _separated(random: np.random.Generator) -> Table:
    X = _normal(random, 400, 30)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def _steps(random: np.random.Generator) -> Table:
    X = _normal(random, 600, 30)
    return X, _drawn(random, 3.0 * (X[:, 0] > 0.8) + 3.0 * (X[:, 1] > -0.3) - 3.0)


def _strong_counts(random: np.random.Generator) -> Table:
    X = _counts(random, 300, 30)
    X[:, :2] = random.poisson(1.0, size=(300, 2))
    return X, _drawn(random, 2 * (X[:, 0] + X[:, 1]) - 4)


def _softmax(random: np.random.Generator) -> Table:
    X = _normal(random, 500, 30)
    logits = np.stack([2 * X[:, 0], 2 * X[:, 1], np.zeros(500)], axis=1)
    return X, (logits + random.gumbel(size=(500, 3))).argmax(axis=1)


def _ordered(random: np.random.Generator) -> Table:
    X = _normal(random, 500, 30)
    return X, np.digitize(X[:, 0] + X[:, 1] + 0.5 * random.logistic(size=500), [-0.8, 0.8])


def _ten(random: np.random.Generator) -> Table:
    X = _normal(random, 600, 60)
    return X, _drawn(random, 1.5 * X[:, :10].sum(axis=1))


def _shifted(random: np.random.Generator) -> Table:
    """Draw 60 rows of 200 columns, 15 of which have another mean in the second class."""
    X, y = _normal(random, 60, 200), np.arange(60) % 2
    X[:, :15] += 1.5 * y[:, None]
    return X, y


def _sum(
    columns: Callable[..., np.ndarray], spread: Callable[[np.ndarray], Any] = lambda X: 1.0
) -> Callable[[np.random.Generator], Table]:
    """Return what makes regressions on the sum of two columns, with errors of a given spread."""

    def make(random: np.random.Generator) -> Table:
        X = columns(random, 300, 30)
        return X, 3 * (X[:, 0] + X[:, 1]) + random.normal(size=300) * spread(X)

    return make


STRONG: dict[str, Callable[[np.random.Generator], Table]] = {
    "60 rows, log odds 5 (x0 + x1)": _two_strong(60, 5.0),
    "100 rows, log odds 3 (x0 + x1)": _two_strong(100, 3.0),
    "400 rows, log odds 3 (x0 + x1)": _two_strong(400, 3.0),
    "400 rows, log odds 10 (x0 + x1)": _two_strong(400, 10.0),
    "1,000 rows, log odds 3 (x0 + x1)": _two_strong(1000, 3.0),
    "100 rows, 8 % positive": _two_strong(100, 3.0, -6.0),
    "300 rows, 5 % positive": _two_strong(300, 3.0, -8.0),
    "400 rows, correlated": _two_strong(400, 3.0, 0.0, _correlated),
    "400 rows, separated: x0 + x1 > 0": _separated,
    "600 rows, steps": _steps,
    "300 rows, counts": _strong_counts,
    "500 rows, 3 classes": _softmax,
    "500 rows, 3 classes in order": _ordered,
    "600 rows, ten strong columns": _ten,
    "60 rows, 15 of 200 shifted": _shifted,
    "300 rows, regression": _sum(_normal),
    "300 rows, regression, spread grows": _sum(_normal, lambda X: np.exp(0.5 * X[:, 0])),
    "300 rows, regression, far values": _sum(lambda g, n, f: np.exp(1.5 * g.normal(size=(n, f)))),
}


def _spread(n: int, spread: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.random.Generator], Table]:
    """Return what makes tables in which a column changes the spread of the target, and nothing else."""

    def make(random: np.random.Generator) -> Table:
        X = _normal(random, n, 30)
        return X, random.normal(size=n) * spread(X[:, 0])

    return make


def _wrong_labels(n: int, strength: float, share: float) -> Callable[[np.random.Generator], Table]:
    """Return what makes tables of two strong columns and labels some of which are wrong."""

    def make(random: np.random.Generator) -> Table:
        X, y = _two_strong(n, strength)(random)
        return X, np.where(random.random(n) < share, 1 - y, y)

    return make


STRONG |= {
    "300 rows, spread .3 + x0^2 alone": _spread(300, lambda c: 0.3 + c**2),
    "300 rows, spread exp(x0) alone": _spread(300, np.exp),
    "100 rows, spread exp(x0) alone": _spread(100, np.exp),
    "1,000 rows, 6 (x0 + x1), 10 % wrong": _wrong_labels(1000, 6.0, 0.1),
    "1,000 rows, 4 (x0 + x1), 5 % wrong": _wrong_labels(1000, 4.0, 0.05),
    "300 rows, 6 (x0 + x1), 10 % wrong": _wrong_labels(300, 6.0, 0.1),
}


def _product(n: int, f: int, kind: str) -> Callable[[np.random.Generator], Table]:
    """Return what makes tables in which columns 0 and 1 act together."""

    def make(random: np.random.Generator) -> Table:
        X = _normal(random, n, f)
        product, noise = X[:, 0] * X[:, 1], random.normal(size=n)
        if kind == "classes":
            return X, _drawn(random, 1.2 * product)
        if kind == "ring":
            return X, _drawn(random, 8 * (np.hypot(X[:, 0], X[:, 1]) - 1.2))
        other = {"strong": 2 * X[:, 2], "crossing": 0.5 * (X[:, 0] + X[:, 1])}.get(kind, 0.0)
        return X, 0.45 * product + other + noise * (0.3 + X[:, 3] ** 2 if kind == "spread" else 1.0)

    return make


POWER: dict[str, Callable[[np.random.Generator], Table]] = {
    "150 rows, regression, product": _product(150, 30, "plain"),
    "150 rows, product beside a strong column": _product(150, 30, "strong"),
    "300 rows, product, uneven spread": _product(300, 30, "spread"),
    "300 rows, product and own effects": _product(300, 30, "crossing"),
    "200 rows, two classes, product": _product(200, 30, "classes"),
    "200 rows, two classes, ring": _product(200, 30, "ring"),
}
PARTS = {"nothing": KINDS, "strong": STRONG, "power": POWER}


def product_test(X: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a t test of the product of columns 0 and 1, given both, is significant after Bonferroni's correction."""
    n, f = X.shape
    design = np.linalg.qr(np.column_stack([np.ones(n), X[:, :2]]))[0]
    product, target = X[:, 0] * X[:, 1], y.astype(float)
    product, target = (v - design @ (design.T @ v) for v in (product, target))
    r = product @ target / np.sqrt(product @ product * (target @ target))
    return bool(2 * stats.t.sf(abs(r) * np.sqrt((n - 4) / (1 - r * r)), n - 4) < 0.05 / (f * (f - 1) / 2))


def one_table(part: str, kind: str, seed: int) -> tuple[bool, bool, bool]:
    """Return whether a pair, a column on its own, and a column in any way is found on one table.

    For the part "power": whether the true pair is found, whether a plain test of its product finds it, and any other pair.
    """
    from tamiz import find_pairs

    random = np.random.default_rng([seed, list(PARTS[part]).index(kind), list(PARTS).index(part)])
    X, y = PARTS[part][kind](random)
    found = find_pairs(X, y, random_state=seed, n_jobs=1)
    if part == "power":
        listed = [pair.indices for pair in found.significant_pairs()]
        return (0, 1) in listed, product_test(X, y), any(pair != (0, 1) for pair in listed)
    return (
        bool(found.significant_pairs()),
        bool((found.marginal_p_values < 0.05).any()),
        len(found.significant_columns()) > 0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=30, help="tables of each kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="may be repeated; default: all")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(options.jobs) as pool:
        for part in options.part or PARTS:
            n_shown = 1 if part == "strong" else 3  # beside strong columns it is right to find columns
            names = ("found", "product", "others") if part == "power" else ("a pair", "alone", "column")
            head = "".join(f"{name:>9}" for name in names[:n_shown])
            print(f"{part + ': kind of table':<40}{'tables':>8}{head}", flush=True)
            rows = []
            for kind in PARTS[part]:
                n = options.tables
                outcome = np.array(list(pool.map(one_table, [part] * n, [kind] * n, range(n), chunksize=5)))
                rows.append(outcome)
                print(f"{kind:<40}{n:>8}{_shares(outcome, n_shown)}", flush=True)
            everything = np.concatenate(rows)
            aim = "" if part == "power" else "   target at most 0.07"
            print(f"{'all':<40}{len(everything):>8}{_shares(everything, n_shown)}{aim}", flush=True)


def _shares(outcome: np.ndarray, n_shown: int) -> str:
    return "".join(f"{share:>9.3f}" for share in outcome.mean(axis=0)[:n_shown])


if __name__ == "__main__":
    main()
