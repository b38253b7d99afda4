"""Nulls by permutation: what is shuffled, the sequential p value, false positives and stability of noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

from tamiz import E2EFSClassifier, evaluate
from tamiz.evaluation.null import ENOUGH, Null, permuted_orders, sequential_p_value
from tamiz.rows.rows import Rows

Y = np.array([0, 0, 1, 1, 0, 0, 1, 1])


def quick(k):
    return make_pipeline(SelectKBest(k=k), NearestCentroid())


def orders(**roles):
    return permuted_orders(Rows(np.zeros((8, 1)), Y, **roles), np.random.default_rng(0))


def test_orders_respect_groups_time_and_rows_of_weight_zero():
    features, targets = orders()
    assert targets is None
    assert sorted(features) == list(range(8))
    features, targets = orders(groups=[1, 1, 2, 2, 3, 3, 4, 4])
    assert features is None
    assert np.all(Y[targets][::2] == Y[targets][1::2])  # a group still has one target
    uneven = np.array([1, 1, 1, 2, 2, 2, 2, 3])
    _, targets = orders(groups=uneven)
    assert all(np.unique(uneven[targets[uneven == group]]).size == 1 for group in (1, 2, 3))
    features, _ = orders(sample_weight=[1, 1, 1, 1, 1, 1, 0, 0])
    assert features[6:].tolist() == [6, 7]
    assert sorted(features[:6]) == list(range(6))


def test_in_time_no_shift_has_a_jump_that_the_targets_do_not_have():
    rows = Rows(np.zeros((8, 1)), np.arange(8.0), time=np.arange(8)[::-1])
    for seed in range(20):
        _, targets = permuted_orders(rows, np.random.default_rng(seed))
        assert np.abs(np.diff(targets)).max() <= 1  # neighbours in time stay neighbours, there and back


@pytest.mark.parametrize("seed", range(5))
def test_the_sequential_p_value_never_rises_with_the_score(seed):
    scores = np.random.default_rng(seed).normal(size=99)
    p_values = [sequential_p_value(scores, observed)[0] for observed in np.linspace(-3, 6, 80)]
    assert np.all(np.diff(p_values) <= 1e-12)
    assert p_values[-1] == 0.01
    assert sequential_p_value(scores, -3.0)[1] == ENOUGH  # noise costs few permutations
    assert np.isnan(sequential_p_value(scores, np.nan)[0])


def test_the_sequential_p_value_is_uniform_enough():
    """20,000 simulated nulls: P(p <= .05) within three standard errors of at most .05, also with ties."""
    generator = np.random.default_rng(0)
    for draw in (generator.normal, lambda size: generator.integers(0, 6, size).astype(float)):
        p_values = np.array([sequential_p_value(scores[1:], scores[0])[0] for scores in draw(size=(20_000, 60))])
        assert np.mean(p_values <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20_000)
        assert np.mean(p_values <= 0.5) == pytest.approx(0.5, abs=0.12)


def test_a_signal_is_told_from_noise_and_the_floor_of_p_is_written_as_such():
    generator = np.random.default_rng(1)
    y = np.resize([0, 1], 60)
    X = generator.normal(size=(60, 50))
    noise = evaluate(quick(5), X, y)
    assert noise.null.p_value > 0.05
    assert noise.verdict.startswith("No sign of signal: ")
    X[:, :3] += 2.0 * y[:, None]
    signal = evaluate(quick(3), X, y)
    assert signal.null.n_permutations == 99
    assert "better than shuffled targets, p <= 0.010" in signal.verdict
    assert signal.stability > signal.null.highest_stability
    assert "not compared with shuffled targets" in evaluate(quick(3), X, y, n_permutations=0).verdict
    assert signal.null.as_record()["p_text"] == "p <= 0.010"
    assert Null(np.zeros(20), np.zeros(20), 0.2).p_text == "p = 0.200"


def test_noise_gives_few_signals_and_a_stability_beyond_zero():
    """40 tables of noise; at most .05 + three standard errors of 40 runs."""
    p_values, stability, null = [], [], []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(40, 40))
        found = evaluate(quick(5), X, np.resize([0, 1], 40), n_random=0, n_permutations=39, random_state=seed)
        p_values.append(found.null.p_value)
        stability.append(found.stability)
        null.append(found.null.stability)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert np.mean(stability) == pytest.approx(np.mean(null), abs=0.05)
    assert np.mean(null) > 0.2


def test_every_fold_keeps_its_classes_and_choices_when_targets_are_shuffled():
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], [48, 12])
    X = generator.normal(size=(60, 8)) + 1.5 * np.outer(y, np.arange(8) == 2)
    found = evaluate(E2EFSClassifier("auto"), X, y, cv=3, n_random=1, n_permutations=4)
    assert found.null.n_permutations == 4
    assert np.isfinite(found.null.scores).all()


def test_large_tables_are_tested_over_two_folds_with_their_own_score(monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 10)), np.arange(60) % 2
    X[:, 4] += 0.5 * y
    whole = evaluate(quick(2), X, y, n_permutations=30)
    monkeypatch.setattr("tamiz.evaluation.cross_validation.MOST_CELLS", 599)
    found = evaluate(quick(2), X, y, n_permutations=30)
    assert found.score == whole.score
    observed = found.values("kept")[:2].mean()
    assert found.null.p_value == sequential_p_value(found.null.scores, observed)[0]
    assert not np.array_equal(found.null.scores[:5], whole.null.scores[:5])
