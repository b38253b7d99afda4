"""Scores, stability and statistics against hand-worked cases, scipy and scikit-learn."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, r2_score

from tamiz.evaluation import metrics


def test_balanced_accuracy_agrees_with_scikit_learn():
    generator = np.random.default_rng(0)
    truth, guess = generator.integers(0, 4, 200), generator.integers(0, 4, 200)
    assert metrics.balanced_accuracy(truth, guess) == pytest.approx(balanced_accuracy_score(truth, guess))
    names = np.array(["a", "b", "c", "d"])
    assert metrics.balanced_accuracy(names[truth], names[guess]) == pytest.approx(balanced_accuracy_score(truth, guess))


def test_balanced_accuracy_bears_a_predicted_class_that_the_fold_lacks():
    assert metrics.balanced_accuracy([0, 0, 1, 1], [0, 2, 1, 1]) == 0.75


def test_balanced_accuracy_needs_rows():
    with pytest.raises(ValueError, match="no rows"):
        metrics.balanced_accuracy([], [])


def test_r_squared_agrees_with_scikit_learn_and_is_nan_for_a_constant_target():
    generator = np.random.default_rng(1)
    truth = generator.normal(size=50)
    guess = truth + generator.normal(size=50)
    assert metrics.r_squared(truth, guess) == pytest.approx(r2_score(truth, guess))
    assert math.isnan(metrics.r_squared([2.0, 2.0], [1.0, 3.0]))


def test_nogueira_by_hand():
    # F=4, two selections {0,1} and {0,2}: shares 1, .5, .5, 0; s2 = 2*(.25+.25) = 1 over 4 features = .25;
    # by chance k/F (1-k/F) = .25: stability 0.
    assert metrics.nogueira_stability([[1, 1, 0, 0], [1, 0, 1, 0]]) == pytest.approx(0.0)
    # Three selections of sizes 1, 2, 3 out of 5: shares 1, 2/3, 1/3, 0, 0; s2 = 1.5*(2/9+2/9) = 2/3, mean
    # 2/15; chance .4*.6 = .24: 1 - (2/15)/.24 = 4/9.
    supports = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert metrics.nogueira_stability(supports) == pytest.approx(4 / 9)


def test_stability_is_undefined_when_there_is_nothing_to_choose():
    assert math.isnan(metrics.nogueira_stability(np.ones((3, 4))))
    assert math.isnan(metrics.kuncheva_index(np.ones((3, 4))))


def test_stability_refuses_one_selection():
    with pytest.raises(ValueError, match="at least two"):
        metrics.nogueira_stability([[1, 0]])
    with pytest.raises(ValueError, match="one size"):
        metrics.kuncheva_index([[1, 0, 0], [1, 1, 0]])


@given(st.integers(2, 6), st.integers(3, 12), st.integers(0, 10_000))
def test_kuncheva_is_the_mean_over_pairs_and_equals_nogueira_for_equal_sizes(n_selections, n_features, seed):
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, n_features))
    supports = np.zeros((n_selections, n_features), dtype=bool)
    for row in supports:
        row[generator.choice(n_features, size, replace=False)] = True
    by_pairs = [
        ((a & b).sum() * n_features - size**2) / (size * (n_features - size)) for a, b in combinations(supports, 2)
    ]
    assert metrics.kuncheva_index(supports) == pytest.approx(np.mean(by_pairs))
    assert metrics.nogueira_stability(supports) == pytest.approx(np.mean(by_pairs))


def test_corrected_interval_by_hand_is_wider_than_the_plain_one():
    values = np.array([0.1, 0.3, 0.2, 0.2, 0.2])
    found = metrics.corrected_interval(values, test_share=0.2)
    reach = stats.t.ppf(0.975, 4) * math.sqrt(values.var(ddof=1) * (1 / 5 + 1 / 4))
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, 0.2 - reach, 0.2 + reach))
    plain = stats.t.interval(0.95, 4, 0.2, stats.sem(values))
    assert found.high - found.low > plain[1] - plain[0]


def test_corrected_interval_of_one_value_of_nothing_and_with_limits():
    assert metrics.corrected_interval([0.5], 0.2).mean == 0.5
    assert math.isnan(metrics.corrected_interval([0.5], 0.2).low)
    assert math.isnan(metrics.corrected_interval([np.nan], 0.2).mean)
    assert metrics.corrected_interval([0.9, 1.0, 0.8], 0.3, limits=(0, 1)).high == 1


def test_holm_by_hand():
    assert metrics.holm([0.04, 0.01, 0.5]).tolist() == pytest.approx([0.08, 0.03, 0.5])
    assert metrics.holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_wilcoxon_pairs_agree_with_scipy_before_the_correction():
    generator = np.random.default_rng(3)
    scores = {name: generator.normal(shift, 1, 12) for name, shift in (("a", 0.0), ("b", 3.0))}
    (only,) = metrics.wilcoxon_pairs(scores)
    assert only.p_value == pytest.approx(stats.wilcoxon(scores["a"], scores["b"]).pvalue)
    assert only.significant
    assert only.difference == pytest.approx((scores["a"] - scores["b"]).mean())


def test_wilcoxon_pairs_with_ties_missing_splits_and_equal_methods():
    scores = {"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0], "c": [0.0, 0.0, 0.0, 0.0]}
    tests = metrics.wilcoxon_pairs(scores)
    assert [(t.first, t.second) for t in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert tests[0].p_value == 1.0
    assert not any(t.significant for t in tests)  # three or four splits cannot be significant
    with pytest.raises(ValueError, match="same splits"):
        metrics.wilcoxon_pairs({"a": [1.0], "b": [1.0, 2.0]})
    assert metrics.wilcoxon_pairs({"a": [1.0]}) == []


def test_friedman_agrees_with_scipy_and_the_published_critical_value():
    generator = np.random.default_rng(4)
    table = generator.normal(size=(14, 4)) + [0, 0, 1, 2]
    scores = dict(zip("abcd", table.T))
    found = metrics.friedman_ranks(scores)
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    # Demsar's table: q_0.05 for four methods is 2.569.
    assert found.critical_difference == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert sum(found.mean_ranks.values()) == pytest.approx(10)
    assert min(found.mean_ranks, key=found.mean_ranks.get) == "d"


def test_friedman_with_ties_two_methods_and_nothing():
    tied = metrics.friedman_ranks({"a": [1, 1], "b": [1, 1], "c": [1, 1]})
    assert tied.mean_ranks == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert tied.p_value == 1.0
    assert math.isnan(metrics.friedman_ranks({"a": [1, 2], "b": [2, 3]}).p_value)
    assert math.isnan(metrics.friedman_ranks({"a": [np.nan], "b": [1]}).mean_ranks["a"])
