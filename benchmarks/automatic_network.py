"""``network="auto"``: how often it leaves the linear network, rightly and wrongly, and what it costs.

    python benchmarks/automatic_network.py [--tables 25] [--rule]

Made tables of 100 to 400 rows. In the linear ones the class, or the number, depends on a sum of columns; the others hold a ring,
a product of two columns, a sum of curves, or a product beside a line. "departs" is the share in which another network than the
linear one is taken, "score" the accuracy or R2 on 1,000 new rows, "cost" the CPU time of the automatic fit over that of the fit
that was taken, median and 90 % quantile. ``--rule`` uses the designs and seeds on which the rule was chosen; without it both
are others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tamiz import E2EFSClassifier, E2EFSRegressor

N_TEST = 1000
Signal = Callable[[np.ndarray], np.ndarray]

LINEAR: dict[str, Signal] = {"line": lambda X: X[:, :5].sum(axis=1)}
BENT: dict[str, Signal] = {
    "ring": lambda X: 4 * (X[:, 3] ** 2 + X[:, 8] ** 2 - 1.4),
    "product": lambda X: 6 * X[:, 3] * X[:, 8],
    "curves": lambda X: 3 * (np.abs(X[:, 0]) - 0.67) + 2 * np.cos(2 * X[:, 1]),
    "line and product": lambda X: 1.5 * X[:, 0] + 3 * X[:, 1] * X[:, 2],
}


def draw(kind: str, n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """Draw columns of variance 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows + N_TEST, n_columns))
    if kind.startswith("AR"):
        rho = float(kind[2:])
        for j in range(1, n_columns):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    elif kind == "t3":
        X = random.standard_t(3, size=X.shape)
    elif kind == "skewed":
        X = np.exp(X)
    elif kind == "counts":
        X = random.poisson(1.0, size=X.shape).astype(float)
    elif kind == "gamma":
        X = random.gamma(2.0, size=X.shape)
    elif kind == "half binary":
        X[:, ::2] = X[:, ::2] > 0
    return (X - X.mean(axis=0)) / X.std(axis=0)


def run(design: tuple[str, int, int, int, str], signal: Signal, n_tables: int, first: int) -> list[tuple[Any, ...]]:
    """Fit linear and auto on tables of a design; list what was taken, both scores and the cost."""
    kind, n_rows, n_columns, m, target = design
    found = []
    for seed in range(first, first + n_tables):
        X = draw(kind, n_rows, n_columns, seed)
        score = signal(X)
        if target == "numbers":
            y, make = score + score.std() * np.random.default_rng(seed).normal(size=len(X)), E2EFSRegressor
        else:
            score = score + np.random.default_rng(seed).logistic(size=len(X))
            y, make = score > np.quantile(score, 0.8 if target == "rare" else 0.5), E2EFSClassifier
        train, test = slice(n_rows), slice(n_rows, None)
        began = time.process_time()
        auto = make(m, network="auto", random_state=0).fit(X[train], y[train])
        middle = time.process_time()
        auto.copy_for(m).fit(X[train][::-1], y[train][::-1])  # in another order, or its search for pairs would be known
        cost = (middle - began) / (time.process_time() - middle)
        linear = make(m, random_state=0).fit(X[train], y[train])
        scores = [model.score(X[test], y[test]) for model in (linear, auto)]
        found.append((auto.selection_.choices["network"]["chosen"], *scores, cost))
    return found


def show(title: str, found: list[tuple[Any, ...]]) -> None:
    """Print a line."""
    taken, linear, auto, cost = zip(*found, strict=True)
    counts = Counter(taken)
    error = np.subtract(auto, linear).std() / np.sqrt(len(found))
    print(
        f"{title:44} {len(found):4} tables  departs {1 - counts['linear'] / len(found):.3f}  score {np.mean(linear):.3f} -> "
        f"{np.mean(auto):.3f} (se {error:.3f})  cost {np.median(cost):.1f}, {np.quantile(cost, 0.9):.1f}  "
        + ", ".join(f"{name} {count}" for name, count in counts.most_common()),
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=25, help="tables of each design")
    parser.add_argument("--rule", action="store_true", help="the designs on which the rule was chosen")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.rule:
        kinds, first = ("normal", "AR0.7", "t3", "skewed", "counts"), 7000
        sizes = [(100, 20, 5), (300, 50, 5)]
        bent_sizes = [(100, 20, 2), (400, 100, 2)]
    else:
        kinds, first = ("normal", "AR0.5", "gamma", "half binary"), 50_000
        sizes = [(120, 30, 4), (250, 150, 8)]
        bent_sizes = [(100, 30, 3), (300, 200, 4)]
    for name in BENT:  # compiles
        for target in ("classes", "numbers"):
            run(("normal", 500, 10, 2, target), BENT[name], 1, 0)
    every: list[tuple[Any, ...]] = []
    for kind in kinds:
        for target in ("classes", "rare", "numbers"):
            found = []
            for i, size in enumerate(sizes):
                found += run((kind, *size, target), LINEAR["line"], options.tables // 2 + (i == 0), first)
            show(f"linear, {kind}, {target}", found)
            every += found
    show("linear, all", every)
    for name, signal in BENT.items():
        for size in bent_sizes:
            for target in ("classes", "numbers"):
                title = f"{name}, {size[0]} x {size[1]}, M = {size[2]}, {target}"
                show(title, run(("normal", *size, target), signal, options.tables, first))


if __name__ == "__main__":
    main()
