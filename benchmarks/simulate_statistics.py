"""Simulations of what the evaluation prints: false positives, coverage of intervals, p values, bias of R².

    python benchmarks/simulate_statistics.py [--repetitions 300] [--coverage]

Selectors and models are small linear ones, so that hundreds of repetitions take minutes on one core. Every line is a
property, the measured number and what it should be.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tamiz import E2EFSClassifier, StabilitySelection
from tamiz.baselines import FisherScore, Lasso
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.cross_validation import holdout_interval
from tamiz.evaluation.fold_work import FoldTask
from tamiz.evaluation.folds import count_test_rows, make_folds, mean_test_share
from tamiz.evaluation.intervals import corrected_interval
from tamiz.evaluation.metrics import BALANCED_ACCURACY, R_SQUARED, SCORINGS
from tamiz.evaluation.null import permutation_null
from tamiz.evaluation.stability import nogueira_stability
from tamiz.selection import Selection


class RidgeOnBest:
    """Keep the M columns with the largest correlation with the target, and fit a ridge regression on them."""

    def __init__(self, m: int, seed: int) -> None:
        self.m = m

    def fit(self, X: np.ndarray, y: np.ndarray) -> RidgeOnBest:
        self.classes = np.unique(y) if y.dtype.kind in "iU" else None
        target = (y == self.classes[-1]).astype(float) if self.classes is not None else y
        centred = X - X.mean(axis=0)
        scores = np.abs(centred.T @ (target - target.mean())) / np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
        ranking = np.empty(X.shape[1], dtype=int)
        ranking[np.argsort(-scores, kind="stable")] = np.arange(1, X.shape[1] + 1)
        self.selection_ = Selection(ranking <= self.m, ranking)
        self.columns = np.flatnonzero(ranking <= self.m)
        self.weights = fit_ridge(X[:, self.columns], target)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        scores = self.scores(X)
        return scores if self.classes is None else self.classes[(scores > 0.5).astype(int)]

    def scores(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.columns] @ self.weights[:-1] + self.weights[-1]


def fit_ridge(X: np.ndarray, target: np.ndarray, strength: float = 1.0) -> np.ndarray:
    """Return weights and intercept."""
    mean = X.mean(axis=0)
    centred = X - mean
    weights = np.linalg.solve(centred.T @ centred + strength * np.eye(X.shape[1]), centred.T @ (target - target.mean()))
    return np.append(weights, target.mean() - mean @ weights)


def score_columns(X: np.ndarray, y: np.ndarray, folds: list, columns: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return balanced accuracy per fold of a ridge classifier on the columns that a fold uses."""
    scores = []
    for number, (train, test) in enumerate(folds):
        chosen = columns(number)
        weights = fit_ridge(X[train][:, chosen], (y[train] == 1).astype(float))
        predicted = (X[test][:, chosen] @ weights[:-1] + weights[-1] > 0.5).astype(int)
        scores.append(BALANCED_ACCURACY(y[test], predicted))
    return np.array(scores)


def false_positives(repetitions: int, n_repeats: int, kind: str, n_methods: int, m_values=(2, 4, 8)) -> float:
    """Return how often a comparison of equally good methods marks one of them.

    "random": random sets of noise, drawn in each fold. "noise": methods that select by noisy correlations from noise.
    "equal": disjoint sets of equally informative columns.
    """
    marked = 0
    for seed in range(repetitions):
        generator = np.random.default_rng([seed, n_repeats, n_methods])
        y = np.repeat([0, 1], 30)
        X = generator.normal(size=(60, 40))
        if kind == "equal":
            X[:, : 8 * n_methods] += 0.35 * y[:, None]
        folds = make_folds(y, "classification", 5, n_repeats, seed)
        scores = np.empty((n_methods, len(m_values), len(folds)))
        for method in range(n_methods):
            disturbance = generator.normal(scale=0.1, size=X.shape[1])
            for position, m in enumerate(m_values):
                if kind == "random":
                    draws = [generator.choice(40, m, replace=False) for _ in folds]
                elif kind == "noise":
                    draws = [
                        np.argsort(-np.abs(np.corrcoef(X[train].T, y[train])[-1, :-1] + disturbance))[:m]
                        for train, _ in folds
                    ]
                else:
                    draws = [np.arange(method * 8, method * 8 + m)] * len(folds)
                scores[method, position] = score_columns(X, y, folds, draws.__getitem__)
        names = tuple(f"method {i}" for i in range(n_methods))
        found = Comparison(BALANCED_ACCURACY, names, m_values, scores, test_share=mean_test_share(folds))
        marked += any(test.significant for test in found.tests)
    return marked / repetitions


def r_squared_of_truth(repetitions: int, n_rows: int) -> tuple[float, float, float]:
    """Return the mean R² of the true function (which is .5), that of R² per fold, and the coverage of the interval."""
    pooled, by_fold, covered = [], [], 0
    for seed in range(repetitions):
        generator = np.random.default_rng([seed, n_rows])
        signal = generator.normal(size=n_rows)
        y = signal + generator.normal(size=n_rows)
        folds = make_folds(y, "regression", 5, seed=seed)
        parts = [R_SQUARED.measure(y[test], signal[test], y[train]) for train, test in folds]
        interval = corrected_interval(R_SQUARED.combine(parts), 0.2, limits=R_SQUARED.limits)
        pooled.append(interval.value)
        by_fold.append(np.mean([R_SQUARED(y[test], signal[test]) for _, test in folds]))
        covered += interval.low <= 0.5 <= interval.high
    return float(np.mean(pooled)), float(np.mean(by_fold)), covered / repetitions


#: Distances between the classes, from none to so large that nearly every row is right.
SEPARATIONS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
#: Scores, rows and columns whose intervals are tried over all separations.
COVERAGE_SETTINGS = (
    *(("balanced_accuracy", n_rows, 5) for n_rows in (20, 60, 200)),
    *(("balanced_accuracy", n_rows, 100) for n_rows in (20, 60)),
    *(("roc_auc", n_rows, 5) for n_rows in (20, 60, 200)),
    ("f1", 60, 5),
)


@dataclass(frozen=True)
class Coverage:
    """Hold how often an interval covers the mean score on new rows of models trained on as many rows."""

    share: float
    truth: float
    all_right: float


def coverage(
    repetitions: int, n_rows: int, shift: float, scoring: str = "balanced_accuracy", n_columns: int = 5
) -> Coverage:
    """Return the coverage of the interval of a score; of more than five columns the best five are selected in each fold."""
    metric = SCORINGS[scoring]
    truth, intervals = [], []
    fresh = np.random.default_rng(12345)
    for seed in range(repetitions):
        new_X, new_y = _two_classes(fresh, 500, shift, n_columns)
        X, y = _two_classes(np.random.default_rng([seed, n_rows, n_columns]), n_rows, shift, n_columns)
        folds = make_folds(y, "classification", 5, seed=seed)
        values = []
        for train, test in folds:
            model = RidgeOnBest(min(5, n_columns), 0).fit(X[train], y[train])
            read = [
                model.predict(rows) if metric.response == "predict" else model.scores(rows) for rows in (X[test], new_X)
            ]
            values.append(metric(y[test], read[0]))
            truth.append(metric(new_y, read[1]))
        n_test = count_test_rows(metric, y, folds)
        intervals.append(corrected_interval(values, mean_test_share(folds), limits=metric.limits, n_rows=n_test))
    target = float(np.mean(truth))
    covered = float(np.mean([interval.low <= target <= interval.high for interval in intervals]))
    return Coverage(covered, target, float(np.mean([interval.value > 1 - 1e-12 for interval in intervals])))


def attainable(n_rows: int, truth: float) -> str:
    """Return the shares between .90 and .99 that an interval of a number of right rows can cover, or those next to them.

    The number of wrong rows is whole. An interval that holds the truth for up to k wrong rows and not for more covers with
    the probability of up to k wrong rows, and nothing between two such probabilities can be had.
    """
    shares = stats.binom.cdf(np.arange(n_rows + 1), n_rows, 1 - truth)
    inside = shares[(shares >= 0.9) & (shares <= 0.99)]
    if inside.size:
        return ".90 to .99"
    below, above = shares[shares < 0.9], shares[shares > 0.99]
    return f"{below.max():.3f} or {above.min():.3f}: none between" if below.size else f"{above.min():.3f} or more"


def holdout_coverage(repetitions: int, n_rows: int, shift: float, scoring: str = "balanced_accuracy") -> float:
    """Return how often the interval of the score on a test file covers the score of that model on new rows."""
    metric, covered = SCORINGS[scoring], 0
    new_X, new_y = _two_classes(np.random.default_rng(12345), 4000, shift)
    for seed in range(repetitions):
        X, y = _two_classes(np.random.default_rng([seed, n_rows]), 60, shift)
        test_X, test_y = _two_classes(np.random.default_rng([seed, n_rows, 1]), n_rows, shift)
        model = RidgeOnBest(5, 0).fit(X, y)
        read = [model.predict(rows) if metric.response == "predict" else model.scores(rows) for rows in (test_X, new_X)]
        interval = holdout_interval(metric, test_y, read[0], y, n_draws=300, seed=seed)
        covered += interval.low <= metric(new_y, read[1]) <= interval.high
    return covered / repetitions


def difference_coverage(repetitions: int, n_rows: int, shift: float) -> float:
    """Return how often the interval of a paired difference, five columns minus two, covers that on new rows."""
    truth, intervals = [], []
    fresh = np.random.default_rng(12345)
    for seed in range(repetitions):
        new_X, new_y = _two_classes(fresh, 500, shift)
        X, y = _two_classes(np.random.default_rng([seed, n_rows]), n_rows, shift)
        folds = make_folds(y, "classification", 5, seed=seed)
        values = []
        for train, test in folds:
            models = [RidgeOnBest(m, 0).fit(X[train], y[train]) for m in (5, 2)]
            for rows, target, kept in ((X[test], y[test], values), (new_X, new_y, truth)):
                kept.append(np.subtract(*(BALANCED_ACCURACY(target, model.predict(rows)) for model in models)))
        n_test = count_test_rows(BALANCED_ACCURACY, y, folds)
        intervals.append(corrected_interval(values, mean_test_share(folds), limits=(-1, 1), n_rows=n_test))
    target = float(np.mean(truth))
    return float(np.mean([interval.low <= target <= interval.high for interval in intervals]))


def _two_classes(
    generator: np.random.Generator, n_rows: int, shift: float, n_columns: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    y = np.resize([0, 1], n_rows)
    X = generator.normal(size=(n_rows, n_columns))
    X[:, 0] += shift * y
    return X, y


def null_p_values(repetitions: int, n_rows: int = 40, n_columns: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p values, stabilities and mean stabilities of the null, on tables of noise."""
    p_values, stabilities, null_stabilities = [], [], []
    for seed in range(repetitions):
        generator = np.random.default_rng([seed, 7])
        X, y = generator.normal(size=(n_rows, n_columns)), np.resize([0, 1], n_rows)
        folds = make_folds(y, "classification", 5, seed=seed)

        def prepare(train: np.ndarray, test: np.ndarray, X: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
            return X[train], X[test]

        task = FoldTask(prepare, y, folds, RidgeOnBest, 5, BALANCED_ACCURACY, "classification", seed=seed)
        scores, supports = [], []
        for train, test in folds:
            model = RidgeOnBest(5, 0).fit(X[train], y[train])
            scores.append(BALANCED_ACCURACY(y[test], model.predict(X[test])))
            supports.append(model.selection_.support)
        null = permutation_null(task, float(np.mean(scores)))
        p_values.append(null.p_value)
        stabilities.append(nogueira_stability(supports))
        null_stabilities.append(null.stability)
    return np.array(p_values), np.array(stabilities), np.array(null_stabilities)


def stability_selection(repetitions: int, max_false: float) -> dict[str, tuple[float, float]]:
    """Return the mean numbers of false columns and of true ones (of 5 among 200, 100 rows), by the inner selector."""
    selectors = {
        "E2E-FS": lambda: E2EFSClassifier(n_features_to_select=10),
        "l1": lambda: Lasso(n_features_to_select=10),
        "Fisher": lambda: FisherScore(n_features_to_select=10),
    }
    counts: dict[str, list[tuple[int, int]]] = {name: [] for name in selectors}
    for seed in range(repetitions):
        generator = np.random.default_rng([seed, 15])
        X = generator.normal(size=(100, 200)).astype(np.float32)
        X[:, 5:15] += 0.7 * X[:, :1]  # false columns that go with a true one
        y = (X[:, :5].sum(axis=1) + generator.normal(size=100) > 0).astype(int)
        for name, make in selectors.items():
            search = StabilitySelection(make(), n_resamples=25, max_false=max_false, random_state=seed)
            support = search.fit(X, y).get_support()
            counts[name].append((int(support[5:].sum()), int(support[:5].sum())))
    return {name: (float(f), float(t)) for name, found in counts.items() for f, t in [np.mean(found, axis=0)]}


def simulate_coverage(repetitions: int) -> Iterator[tuple[str, str, str]]:
    """Yield the coverage of every kind of interval of classes."""
    for scoring, n_rows, n_columns in COVERAGE_SETTINGS:
        which = f"{scoring}, {n_rows} rows" + (f", 5 of {n_columns} columns" if n_columns > 5 else "")
        shares = []
        for shift in SEPARATIONS:
            one = coverage(repetitions, n_rows, shift, scoring, n_columns)
            shares.append(one.share)
            what = (
                f"coverage, {which}, classes {shift:g} apart (true {one.truth:.3f}, all right in {one.all_right:.0%})"
            )
            yield what, f"{one.share:.3f}", attainable(n_rows, one.truth)
        yield f"coverage, {which}, mean over these", f"{np.mean(shares):.3f}", ".90 to .99"
    for shift in (0.0, 1.0, 2.0, 4.0):
        share = holdout_coverage(repetitions, 40, shift)
        yield f"coverage, score on a test file of 40 rows, classes {shift:g} apart", f"{share:.3f}", ".90 to .99"
        share = difference_coverage(repetitions, 60, shift)
        yield f"coverage, difference of two scores, 60 rows, classes {shift:g} apart", f"{share:.3f}", ".90 to .99"


def simulate(repetitions: int) -> Iterator[tuple[str, str, str]]:
    """Yield what is measured, the number, and what it should be."""
    for kind, n_methods, words in (
        ("random", 2, "two random selections"),
        ("noise", 4, "four methods on noise"),
        ("equal", 2, "two equally good sets"),
    ):
        for n_repeats in (1, 4, 20):
            few = max(20, repetitions // (1 if n_repeats < 20 else 3))
            limit = ".07" if n_repeats < 20 else ".12"
            rate = false_positives(few, n_repeats, kind, n_methods)
            yield (
                f"false positives of compare, {words}, repeats {n_repeats} ({few} runs)",
                f"{rate:.3f}",
                f"at most {limit}",
            )
    for n_rows in (20, 30, 60):
        pooled, by_fold, covered = r_squared_of_truth(4 * repetitions, n_rows)
        yield (
            f"R² of the true function, {n_rows} rows (mean of R² per fold: {by_fold:.2f})",
            f"{pooled:.3f}",
            ".50 +- .03",
        )
        yield f"coverage of its interval, {n_rows} rows", f"{covered:.3f}", ".90 to .99"
    yield from simulate_coverage(repetitions)
    p_values, stability, null_stability = null_p_values(repetitions)
    for level in (0.05, 0.1, 0.2, 0.5):
        yield f"permutation p on noise at most {level}", f"{np.mean(p_values <= level):.3f}", f"about {level}"
    yield "stability on noise, and of its null", f"{stability.mean():.2f}, {null_stability.mean():.2f}", "the same"
    few = max(3, repetitions // 20)
    for max_false in (0.5, 1.0):
        for name, (false, true) in stability_selection(few, max_false).items():
            what = f"StabilitySelection of {name}, max_false {max_false} ({few} runs): false columns (true ones of 5)"
            yield what, f"{false:.2f} ({true:.2f})", f"false at most {max_false}"


def main() -> None:
    """Run all simulations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--coverage", action="store_true", help="only the coverage of the intervals of classes")
    options = parser.parse_args()
    repetitions = options.repetitions
    started = time.perf_counter()
    print("| what | measured | should be |\n|---|---:|---:|")
    for what, measured, wanted in (simulate_coverage if options.coverage else simulate)(repetitions):
        print(f"| {what} | {measured} | {wanted} |", flush=True)
    print(f"\n{repetitions} repetitions, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
