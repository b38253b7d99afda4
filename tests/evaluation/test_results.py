"""What an evaluation says: verdicts, held-out effects and predictions, scores of further rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, E2EFSRegressor, evaluate
from tamiz.evaluation.cross_validation import score_held_out
from tamiz.evaluation.metrics import BALANCED_ACCURACY, METRICS, SCORINGS
from tamiz.evaluation.null import Null
from tamiz.evaluation.results import Evaluation, FoldResult

PLAIN_R2 = replace(METRICS["regression"], combine_parts=None)
SHUFFLED = Null(np.zeros(99), np.zeros(99), 0.01)


def make(kept, all_features, *, metric=BALANCED_ACCURACY, null=SHUFFLED, n_kept=2, n_features=5):
    """An evaluation of five folds of 40 rows with these mean scores, the difference varying a little over the folds."""
    noise = np.array([-0.01, 0.01, 0.0, 0.01, -0.01])
    y = np.resize([0, 1], 200)
    support = np.arange(n_features) < n_kept
    folds = [FoldResult((kept + e,), (all_features,), (0.5,), support, np.flatnonzero(support), y[:40]) for e in noise]
    splits = [(np.setdiff1d(np.arange(200), part), part) for part in np.split(np.arange(200), 5)]
    names = [f"x{i}" for i in range(n_features)]
    return Evaluation(
        metric, metric.tasks[0], "model", folds, splits, y, names, 5, n_kept, np.arange(n_features), n_features, null
    )


VERDICTS = [  # evaluation, beginning and part of the verdict
    (make(0.9, 0.9), "2 of 5 columns predict as well as all, within 0.03 (at most 0.0", "p <= 0.010"),
    (make(0.88, 0.9), "2 of 5 columns predict worse than all, by 0.020", "at most"),
    (make(0.95, 0.9), "2 of 5 columns predict better than all, by 0.050", "at least"),
    (make(0.9, 0.9, null=None), "2 of 5 columns", "not compared with shuffled targets"),
    (make(0.9, 0.9, n_kept=5), "All 5 columns were kept", "better than shuffled"),
    (make(0.9, 0.9, n_kept=1), "1 of 5 columns predicts as well as all", ""),
    (make(0.9, 0.9, n_kept=1, n_features=1), "The only column was kept", ""),
    (make(0.49, 0.4), "No sign of signal: balanced accuracy of 0.490 is not above chance (0.500)", ""),
    (make(-0.0001, -0.4, metric=PLAIN_R2), "No sign of signal: R² of -0.000 is not above chance", ""),
    (
        make(0.6, 0.6, null=replace(SHUFFLED, p_value=0.3)),
        "No sign of signal: shuffled targets do as well (p = 0.30",
        "",
    ),
    (make(0.9, 0.9, null=Null(*np.zeros((2, 9)), 0.1)), "None of 9 shuffled targets", "too few"),
]


@pytest.mark.parametrize(("evaluation", "beginning", "part"), VERDICTS)
def test_verdicts(evaluation, beginning, part):
    assert evaluation.verdict.startswith(beginning)
    assert part in evaluation.verdict


def test_an_evaluation_is_shown_in_one_line():
    assert repr(make(0.9, 0.9)).startswith("Evaluation(2 of 5 columns, balanced accuracy 0.900 (0.")


def test_as_well_is_said_within_a_margin_only():
    """60 rows, ten equally good columns, two kept: truly worse, and never called as good as all."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        y = np.resize([0, 1], 60)
        X = generator.normal(size=(60, 10)) + 0.6 * y[:, None]
        verdict = evaluate(SelectKBest(k=2), X, y, n_permutations=0, n_random=1, random_state=seed).verdict
        assert "as well as all" not in verdict
        assert "worse than all" in verdict or "No sign" in verdict


def test_effects_are_those_of_held_out_rows():
    """A true effect is shown in its size; what is kept of 500 columns of noise is shown smaller than on all rows."""
    generator = np.random.default_rng(0)
    y = np.resize([0, 1], 80)
    X = generator.normal(size=(80, 500))
    X[:, 0] += 1.5 * y
    found = evaluate(SelectKBest(k=8), X, y, n_permutations=0, n_random=1)
    assert found.effects[0] == pytest.approx(1.5, abs=0.4)
    Z = StandardScaler().fit_transform(X)
    raw = {j: Z[y == 1, j].mean() - Z[y == 0, j].mean() for j in found.effects if j}
    noise = [effect * np.sign(raw[j]) for j, effect in found.effects.items() if j]
    assert np.mean(noise) < 0.7 * np.mean(np.abs(list(raw.values())))
    assert found.effect_name == "mean of 1 minus mean of 0 in standard deviations, on held-out rows"
    numbers = evaluate(E2EFSRegressor(2), X[:, :5], X[:, 0] - X[:, 1], cv=3, n_permutations=0)
    assert numbers.effects[0] > 0.4
    assert numbers.effects[1] < -0.4
    assert numbers.effect_name == "correlation with the target on held-out rows"


def test_held_out_predictions_are_those_of_the_first_repeat():
    generator = np.random.default_rng(0)
    y = np.resize(["a", "b", "c"], 60)
    X = generator.normal(size=(60, 6)) + 2 * (y == "a")[:, None] * (np.arange(6) == 1)
    found = evaluate(E2EFSClassifier(2, loss="softmax"), X, y, cv=3, repeats=2, n_permutations=0, sizes=[1, 2])
    held = found.held_out
    assert held.rows.tolist() == list(range(60))
    assert held.truth.tolist() == y.tolist()
    for fold, (_, test) in zip(found.folds[:3], found.splits):
        assert held.predicted[test].tolist() == fold.predicted.tolist()
    assert held.outputs["kept"].shape == (60, 3)
    assert [size for size, _ in found.curve()] == [1, 2]
    assert found.curve()[1][1] == found.score


@pytest.mark.parametrize(("n_rare", "n_rows"), [(4, 40), (5, 100), (10, 200)])
def test_coverage_of_a_test_file_with_a_rare_class(n_rare, n_rows):
    """400 draws at a true recall of .9: the percentile bootstrap covered in .48 to .62 of them."""
    generator = np.random.default_rng(0)
    y = (np.arange(n_rows) < n_rare).astype(int)
    covered = 0
    for _ in range(400):
        response = np.where(generator.random(n_rows) < 0.9, y, 1 - y)
        found = score_held_out(BALANCED_ACCURACY, y, response, y)
        covered += found.low <= 0.9 <= found.high
    assert 0.90 <= covered / 400 <= 0.995


def test_scores_of_further_rows_of_numbers_have_a_bootstrap_interval():
    generator = np.random.default_rng(0)
    y = generator.normal(size=200)
    found = score_held_out(SCORINGS["mae"], y, y + 0.5 * generator.normal(size=200), y)
    assert found.low < found.value < found.high
    assert found.high - found.low < 0.15
    assert not score_held_out(SCORINGS["mae"], y[:1], y[:1], y).has_ends
