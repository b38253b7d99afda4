"""Gamma trained on rows that did not train the weights, against the paper's joint gradient.

    python benchmarks/honest_gamma.py [noise] [true] [madelon] [truth] [rows] [--runs 100]

Without names all parts run. ``noise``: how often a category of noise is kept among 20 numbers of noise, with the rate of chance
and the distance from it in standard errors. ``true``: how often a true category is found. ``madelon``: true columns at M = 5, 10,
20 in three folds (needs TAMIZ_DATA_HOME). ``truth``: tables of known columns. ``rows``: CPU seconds against a logistic
regression on all columns.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.paper import load_dataset, make_ground_truth

GAMMA_ROWS = ("joint", "auto")
N_NUMBERS = 20


def make_table(n_levels: int, seed: int, task: str, n_true: int = 0, effect: float = 0.0, n: int = 500):
    """Numbers and a category as indicators; the targets; the groups."""
    rng = np.random.default_rng((n_levels, seed))
    X, level, means = rng.normal(size=(n, N_NUMBERS)), rng.integers(0, n_levels, n), rng.normal(size=n_levels)
    means = (means - means.mean()) / means.std()
    y = 0.15 * X[:, :n_true].sum(axis=1) + effect * means[level] + rng.normal(size=n)
    if task == "classes":
        y = (y > np.median(y)).astype(int)
    groups = np.concatenate([np.arange(N_NUMBERS), np.full(n_levels, N_NUMBERS)])
    return np.hstack([X, np.eye(n_levels)[level]]), y, groups


def count(network: str, gamma_rows: str, n_levels: int, m: int, task: str, runs: int, **table) -> tuple[int, int]:
    """Runs that kept the category, and true numbers kept in all."""
    kept = found = 0
    training = Training(gamma_rows=gamma_rows, refinement_epochs=1)
    for seed in range(runs):
        X, y, groups = make_table(n_levels, 10_000 + seed, task, **table)
        kind = E2EFSClassifier if task == "classes" else E2EFSRegressor
        support = (
            kind(m, network=network, groups=groups, training=training, random_state=seed).fit(X, y).selection_.support
        )
        kept, found = kept + int(support[-1]), found + int(support[: table.get("n_true", 0)].sum())
    return kept, found


def noise(runs: int) -> None:
    for network in ("linear", "additive", "pairs", "mlp"):
        for n_levels in (3, 10, 50):
            for m in (1, 5):
                for task in ("regression", "classes"):
                    share = m / (N_NUMBERS + 1)
                    n = runs if network == "linear" else max(10, runs // 4)
                    joint, held_out = (count(network, rows, n_levels, m, task, n)[0] for rows in GAMMA_ROWS)
                    z = (held_out - n * share) / np.sqrt(n * share * (1 - share))
                    print(
                        f"  {network:<9}{n_levels:>3} levels, M = {m}, {task:<11} of {n}: joint {joint:>3}, held-out "
                        f"{held_out:>3}, chance {n * share:.1f} ({z:+.1f} standard errors)",
                        flush=True,
                    )


def true(runs: int) -> None:
    for n_levels in (3, 10, 25):
        for task in ("regression", "classes"):
            shown = [count("linear", rows, n_levels, 4, task, runs, n_true=3, effect=0.15) for rows in GAMMA_ROWS]
            text = ", ".join(f"{rows} {k} and {f} of {3 * runs} numbers" for rows, (k, f) in zip(GAMMA_ROWS, shown))
            print(f"  {n_levels:>3} levels, {task:<11} of {runs}: {text}", flush=True)


def madelon(runs: int) -> None:
    data = load_dataset("madelon")
    X, y = np.asarray(data.data, dtype=np.float32), data.target
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    correlation = np.abs(np.corrcoef(X.T)) - np.eye(X.shape[1])
    relevant = np.flatnonzero((correlation > 0.3).any(axis=0))  # the relevant columns correlate with each other
    for network in ("mlp", "pairs"):
        for m in (5, 10, 20):
            for rows in GAMMA_ROWS:
                found, own, judged = [], [], []
                for train, test in StratifiedKFold(3, shuffle=True, random_state=42).split(X, y):
                    model = E2EFSClassifier(m, network=network, training=Training(gamma_rows=rows), random_state=0)
                    kept = model.fit(X[train], y[train]).get_support(indices=True)
                    found.append(int(np.isin(kept, relevant).sum()))
                    own.append(balanced_accuracy_score(y[test], model.predict(X[test])))
                    judge = SVC().fit(X[train][:, kept], y[train])
                    judged.append(balanced_accuracy_score(y[test], judge.predict(X[test][:, kept])))
                print(
                    f"  {network:<6} M = {m:<3} {rows:<6} true {found}, own predictions {np.mean(own):.3f}, RBF SVM "
                    f"{np.mean(judged):.3f}",
                    flush=True,
                )


def truth(runs: int) -> None:
    tables = [
        ("ring", 400, 200),
        ("ring", 1000, 64),
        ("xor", 400, 200),
        ("ring+xor", 1000, 64),
        ("ring+xor+sum", 1000, 64),
    ]
    for network in ("additive", "pairs", "mlp"):
        for name, n, f in tables:
            shown = []
            for rows in GAMMA_ROWS:
                shares = []
                for seed in range(6):
                    X, y, known = make_ground_truth(name, n, f, random_state=700 + seed)
                    training = Training(gamma_rows=rows)
                    model = E2EFSClassifier(known.relevant.size, network=network, training=training, random_state=seed)
                    shares.append(known.share_found(model.fit(X, y).get_support(indices=True)))
                shown.append(f"{rows} {np.mean(shares):.2f}")
            print(f"  {network:<9}{name} {n} x {f}: {', '.join(shown)}", flush=True)


def rows(runs: int) -> None:
    rng = np.random.default_rng(0)
    for n in (20_000, 100_000, 500_000):
        X = rng.normal(size=(n, 200)).astype(np.float32)
        y = (X[:, :15] @ np.linspace(1, 0.2, 15) + 2 * rng.normal(size=n) > 0).astype(int)
        seconds = []
        for model in (
            LogisticRegression(),
            E2EFSClassifier(10, l2=100 / n, random_state=0),
            E2EFSClassifier(10, random_state=0),
        ):
            began = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - began)
        print(
            f"  {n} x 200: logistic regression {seconds[0]:.2f} s, decay fixed {seconds[1]:.2f}, default {seconds[2]:.2f}",
            flush=True,
        )


def main() -> None:
    parts = {part.__name__: part for part in (noise, true, madelon, truth, rows)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="PART")
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.parts or parts:
        print(name)
        parts[name](given.runs)


if __name__ == "__main__":
    main()
