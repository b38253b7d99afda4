"""Simulate what is claimed: coverage of intervals, false positives, p values, effects, groups of noise, pairs.

    python benchmarks/simulate_statistics.py [--repetitions 300] [--only coverage,test,compare,null,effects,groups,pairs]

A correlation filter with a ridge regression or a nearest centroid behind it stands for the selectors of the evaluation, so that
300 tables of each kind take minutes on one core; groups and pairs are those of E2E-FS and of the pair search (hours). Every line
is a claim, what was measured and whether it holds.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

from honest_gamma import N_NUMBERS, count
from pairs_calibration import PARTS, one_table
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.cross_validation import FoldTask, score_held_out
from tamiz.evaluation.folds import make_folds, mean_test_share
from tamiz.evaluation.metrics import BALANCED_ACCURACY, SCORINGS
from tamiz.evaluation.null import permutation_null
from tamiz.evaluation.results import effect_of_moments, interval_of_parts, measure_moments
from tamiz.evaluation.subjects import Subject
from tamiz.rows.rows import Rows

#: (claim, measured value, smallest and largest value that hold)
Line = tuple[str, float, float, float]
COVERAGE, FALSE_POSITIVES, WITH_REPEATS = (0.90, 0.99), (0.0, 0.07), (0.0, 0.08)


class Filter(SelectorMixin, BaseEstimator):
    """Keep the k columns with the largest correlation with the target; classes by the nearest centroid, numbers by ridge."""

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def fit(self, X: np.ndarray, y: np.ndarray) -> Filter:
        self.classes_ = np.unique(y) if y.dtype.kind in "iU" else None
        target = (y == self.classes_[-1]).astype(float) if self.classes_ is not None else y
        centred = X - X.mean(axis=0)
        scores = np.abs(centred.T @ (target - target.mean())) / np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
        self.columns_ = np.sort(np.argpartition(-scores, self.k - 1)[: self.k])
        self.n_features_in_ = X.shape[1]
        Z = X[:, self.columns_]
        if self.classes_ is not None:
            low, high = Z[target == 0].mean(axis=0), Z[target == 1].mean(axis=0)
            self.weights_, self.offset_ = high - low, -(high - low) @ (high + low) / 2
        else:
            mean = Z.mean(axis=0)
            A = Z - mean
            self.weights_ = np.linalg.solve(A.T @ A + np.eye(self.k), A.T @ (target - target.mean()))
            self.offset_ = target.mean() - mean @ self.weights_
        return self

    def _get_support_mask(self) -> np.ndarray:
        return np.isin(np.arange(self.n_features_in_), self.columns_)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.columns_] @ self.weights_ + self.offset_

    def predict(self, X: np.ndarray) -> np.ndarray:
        scores = self.decision_function(X)
        return scores if self.classes_ is None else self.classes_[(scores > 0).astype(int)]


def draw_table(generator, n_rows, effect, share=0.5, regression=False, n_columns=50):
    """Draw a table of which five columns tell something."""
    X = generator.normal(size=(n_rows, n_columns))
    if regression:
        return X, effect * X[:, :5].sum(axis=1) / np.sqrt(5) + generator.normal(size=n_rows)
    y = np.zeros(n_rows, dtype=int)
    y[: max(2, round(share * n_rows))] = 1
    X[:, :5] += effect * y[:, None]
    return X, y


#: Rows, and share of the rarer class.
RARE = ((60, 0.1), (120, 0.05), (200, 0.05), (500, 0.05))
#: Metric, rows, share of the rarer class, effect of each of five columns.
SETTINGS = [
    *(("balanced_accuracy", n, 0.5, effect) for n in (30, 60, 200, 500) for effect in (0.0, 0.5, 1.0)),
    *(("balanced_accuracy", n, share, effect) for n, share in RARE for effect in (0.5, 1.0)),
    *(("roc_auc", n, 0.5, 0.5) for n in (60, 200)),
    ("roc_auc", 200, 0.05, 0.5),
    ("accuracy", 60, 0.5, 0.5),
    *((metric, n, 0.5, 1.0) for metric in ("r2", "mae") for n in (60, 200)),
]  # fmt: skip


def coverage(repetitions: int, repeats: int) -> Iterator[Line]:
    """Coverage of the mean score on new rows of models that are trained on as many rows."""
    for scoring, n_rows, share, effect in SETTINGS:
        metric, truth, intervals = SCORINGS[scoring], [], []
        regression = "classification" not in metric.tasks
        task = "regression" if regression else "classification"
        n_folds = min(5, max(2, round(share * n_rows)))
        for seed in range(repetitions):
            generator = np.random.default_rng([seed, n_rows, int(100 * share), int(10 * effect), repeats])
            X, y = draw_table(generator, n_rows, effect, share, regression)
            new_X, new_y = draw_table(generator, 1000, effect, 0.5, regression)
            if scoring == "accuracy":
                new_X, new_y = draw_table(generator, 1000, effect, share, regression)
            folds = make_folds(y, task, n_folds, repeats, seed)
            classes, parts = None if regression else np.unique(y), []
            for number, (train, test) in enumerate(folds):
                model = Filter().fit(X[train], y[train])
                parts.append(metric.measure(y[test], metric.read(model, X[test]), y[train], None, classes))
                if number < n_folds:
                    truth.append(metric.measure(new_y, metric.read(model, new_X), y[train]))
            intervals.append(interval_of_parts(metric, parts, mean_test_share(folds), n_folds))
        true = float(np.nanmean(metric.combine(truth)))
        covered = float(np.mean([one.low <= true <= one.high for one in intervals]))
        kind = f"{scoring}, {n_rows} rows" + (f", {share:.0%} of one class" if share < 0.5 else "")
        yield f"coverage, {kind}, repeats {repeats}, true {true:.2f}", covered, *COVERAGE


def test_coverage(repetitions: int) -> Iterator[Line]:
    """Coverage of the score on a test file: the score of that model on any number of rows."""
    for n_rows, share in ((20, 0.5), (40, 0.1), (100, 0.05), (200, 0.05), (200, 0.5)):
        covered = []
        for seed in range(repetitions):
            generator = np.random.default_rng([seed, n_rows, int(100 * share)])
            X, y = draw_table(generator, 200, 1.2)
            model = Filter().fit(X, y)
            new_X, new_y = draw_table(generator, 20_000, 1.2)
            test_X, test_y = draw_table(generator, n_rows, 1.2, share)
            true = BALANCED_ACCURACY(new_y, model.predict(new_X))
            found = score_held_out(BALANCED_ACCURACY, test_y, model.predict(test_X), y)
            covered.append(found.low <= true <= found.high)
        kind = f"test file of {n_rows} rows, {share:.0%} of one class"
        yield f"coverage, balanced accuracy, {kind}", float(np.mean(covered)), *COVERAGE


def false_positives(repetitions: int, repeats: int, n_methods: int, n_rows: int, selects: bool) -> float:
    """How often a comparison of equally good methods marks one: disjoint halves of the columns, selected or fixed."""
    marked = 0
    for seed in range(repetitions):
        generator = np.random.default_rng([seed, n_rows, n_methods])
        width = 20
        y = np.resize([0, 1], n_rows)
        X = generator.normal(size=(n_rows, width * n_methods))
        X.reshape(n_rows, n_methods, width)[:, :, :5] += 0.5 * y[:, None, None]
        folds = make_folds(y, "classification", 5, repeats, seed)
        scores = np.empty((n_methods, 1, len(folds)))
        for method in range(n_methods):
            own = X[:, width * method : width * (method + 1)]
            own = own if selects else own[:, :5]
            for number, (train, test) in enumerate(folds):
                model = Filter(3 if selects else 5).fit(own[train], y[train])
                scores[method, 0, number] = BALANCED_ACCURACY(y[test], model.predict(own[test]))
        names = tuple(f"method {i}" for i in range(n_methods))
        found = Comparison(BALANCED_ACCURACY, names, (3,), scores, test_share=mean_test_share(folds), n_folds=5)
        marked += any(test.significant for test in found.tests)
    return marked / repetitions


def compare(repetitions: int) -> Iterator[Line]:
    """False positives of ``compare``."""
    for n_methods, n_rows, selects in ((2, 60, True), (2, 200, True), (2, 60, False), (4, 100, True), (8, 60, True)):
        for repeats in (1, 4, 10):
            rate = false_positives(repetitions, repeats, n_methods, n_rows, selects)
            kind = "selectors" if selects else "fixed sets"
            limits = FALSE_POSITIVES if repeats == 1 else WITH_REPEATS
            yield (
                f"false positives of compare, {n_methods} equal {kind}, {n_rows} rows, repeats {repeats}",
                rate,
                *limits,
            )


def _autoregressive(generator: np.random.Generator, n_rows: int, n_columns: int, rho: float) -> np.ndarray:
    X = generator.normal(size=(n_rows, n_columns))
    for row in range(1, n_rows):
        X[row] = rho * X[row - 1] + np.sqrt(1 - rho**2) * X[row]
    return X


def draw_noise(kind: str, generator: np.random.Generator) -> Rows | None:
    """Draw a table without a signal; None if its folds would lack a class."""
    if kind.startswith("time"):
        n_rows, rho = (200, 0.9) if "200" in kind else (80, 0.9)
        X, y = _autoregressive(generator, n_rows, 20, rho), _autoregressive(generator, n_rows, 1, rho)[:, 0]
        if "numbers" not in kind:
            y = (y > 0).astype(int)
            if np.unique(y[: n_rows // 6]).size < 2:
                return None
        return Rows(X, y, time=np.arange(n_rows))
    if kind == "groups":
        patients = np.repeat(np.arange(20), 4)
        X = generator.normal(size=(20, 30))[patients] + 0.2 * generator.normal(size=(80, 30))
        return Rows(X, np.resize([0, 1], 20)[patients], groups=patients)
    n_rows = 60 if kind == "imbalanced" else 40
    y = (np.arange(n_rows) < n_rows // (10 if kind == "imbalanced" else 2)).astype(int)
    return Rows(generator.normal(size=(n_rows, 40)), y)


def null(repetitions: int) -> Iterator[Line]:
    """P values of shuffled targets on tables without a signal."""
    for kind in ("independent rows", "imbalanced", "groups", "time, 80 rows", "time, 200 rows", "time, numbers"):
        p_values: list[float] = []
        for seed in range(10 * repetitions):
            if len(p_values) == repetitions:
                break
            rows = draw_noise(kind, np.random.default_rng([seed, 11]))
            if rows is None:
                continue
            subject = Subject(Filter(3), rows, "regression" if "numbers" in kind else "classification")
            metric = SCORINGS["r2" if "numbers" in kind else "balanced_accuracy"]
            classes = None if "numbers" in kind else np.unique(rows.y)
            folds = make_folds(rows.y, subject.task, 5, seed=seed, groups=rows.groups, time=rows.time)
            task = FoldTask(subject, folds, metric, classes, (), 0, seed)
            parts = []
            for train, test in (rows.fold(*fold) for fold in folds):
                fitted = subject.fit(train, seed)
                parts.append(task.measure(fitted.model, test.X, train, test))
            observed = float(np.nanmean(metric.combine(parts)))
            p_values.append(permutation_null(task, [subject.selector] * len(folds), observed, 59).p_value)
        rate = float(np.mean(np.array(p_values) <= 0.05))
        yield f"permutation p at most .05, {kind} ({len(p_values)} tables)", rate, *FALSE_POSITIVES


def effects(repetitions: int) -> Iterator[Line]:
    """Shown effect of the true column, and of noise columns that are kept: 60 rows, 10 of 2,000 columns."""
    for effect in (1.5, 1.0):
        true, noise, naive = [], [], []
        for seed in range(max(20, repetitions // 5)):
            generator = np.random.default_rng([seed, int(10 * effect)])
            y = np.resize([0, 1], 60)
            X = generator.normal(size=(60, 2000))
            X[:, 0] += effect * y
            sums: dict[int, np.ndarray] = {}
            for train, test in make_folds(y, "classification", 5, seed=seed):
                kept = Filter(10).fit(X[train], y[train]).columns_
                moments = measure_moments(X[test][:, kept], y[test], "classification", np.array([0, 1]))
                for column, own in zip(kept.tolist(), moments, strict=True):
                    sums[column] = sums[column] + own if column in sums else own
            everything = measure_moments(X, y, "classification", np.array([0, 1]))
            for column in Filter(10).fit(X, y).columns_.tolist():
                shown = effect_of_moments(sums[column], "classification") if column in sums else None
                if shown is None:
                    continue
                raw = effect_of_moments(everything[column], "classification") or 0.0
                (true if column == 0 else noise).append(shown * np.sign(raw))
                if column:
                    naive.append(abs(raw))
        yield (
            f"effect of {effect} shown as, 60 rows, 10 of 2,000 columns",
            float(np.mean(true)),
            0.85 * effect,
            1.15 * effect,
        )
        yield f"effect of kept noise columns (on all rows {np.mean(naive):.2f})", float(np.mean(noise)), -0.2, 0.45


def groups(repetitions: int) -> Iterator[Line]:
    """How often a category of noise is kept among 20 numbers of noise: the rate of chance, within two standard errors."""
    for network in ("linear", "additive", "pairs", "mlp"):
        for n_levels, m, kind in itertools.product((2, 10, 50), (1, 5), ("regression", "classes")):
            chance = m / (N_NUMBERS + 1)
            error = 2 * np.sqrt(chance * (1 - chance) / repetitions)
            kept, _ = count(network, "auto", n_levels, m, kind, repetitions)
            claim = f"noise of {n_levels} levels kept, {network}, M = {m}, {kind}"
            yield claim, kept / repetitions, max(0.0, chance - error), chance + error


def pairs(repetitions: int) -> Iterator[Line]:
    """Tables without a pair in which the search finds one."""
    for part in ("nothing", "strong"):
        for kind in PARTS[part]:
            rate = np.mean([one_table(part, kind, seed)[0] for seed in range(repetitions)])
            yield f"false pairs, {part}: {kind}", float(rate), *FALSE_POSITIVES


def main() -> None:
    """Run the simulations and print claim, measured, verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--only", default="coverage,test,compare,null,effects,groups,pairs")
    parser.add_argument("--repeats", default="1,4,10", help="repeats of the folds for the coverage")
    options = parser.parse_args()
    n, started = options.repetitions, time.perf_counter()
    parts = {
        "coverage": lambda: (line for r in options.repeats.split(",") for line in coverage(n, int(r))),
        "test": lambda: test_coverage(n),
        "compare": lambda: compare(n),
        "null": lambda: null(n),
        "effects": lambda: effects(n),
        "groups": lambda: groups(n),
        "pairs": lambda: pairs(n),
    }
    warnings.simplefilter("ignore")
    print("| claim | measured | should be | verdict |\n|---|---:|---:|---|")
    for name in options.only.split(","):
        for claim, measured, low, high in parts[name]():
            # Three standard errors of the simulation itself; the limits of groups are two already.
            slack = 3 * np.sqrt(max(measured * (1 - measured), 0.01) / n) if 0 <= measured <= 1 else 0.0
            slack = 0.0 if name == "groups" else slack
            near = low - slack <= measured <= high + slack
            verdict = "holds" if low <= measured <= high else "within error" if near else "FAILS"
            print(f"| {claim} | {measured:.3f} | {low:.2f} to {high:.2f} | {verdict} |", flush=True)
    print(f"\n{n} repetitions, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
