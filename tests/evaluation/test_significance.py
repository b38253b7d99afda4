"""Tests of methods against hand-worked cases and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tamiz.evaluation import intervals as significance
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.metrics import Metric, balanced_accuracy


def test_holm_by_hand():
    assert significance.holm([0.04, 0.01, 0.5]).tolist() == pytest.approx([0.08, 0.03, 0.5])
    assert significance.holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_wilcoxon_pairs_agree_with_scipy_before_the_correction():
    generator = np.random.default_rng(3)
    scores = {name: generator.normal(shift, 1, 12) for name, shift in (("a", 0.0), ("b", 3.0))}
    (only,) = significance.wilcoxon_pairs(scores)
    assert only.p_value == pytest.approx(stats.wilcoxon(scores["a"], scores["b"]).pvalue)
    assert only.significant
    assert only.difference == pytest.approx((scores["a"] - scores["b"]).mean())


def test_wilcoxon_pairs_with_ties_missing_splits_and_equal_methods():
    scores = {"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0], "c": [0.0, 0.0, 0.0, 0.0]}
    tests = significance.wilcoxon_pairs(scores)
    assert [(t.first, t.second) for t in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert tests[0].p_value == 1.0
    assert not any(t.significant for t in tests)  # three or four splits cannot be significant
    with pytest.raises(ValueError, match="same splits"):
        significance.wilcoxon_pairs({"a": [1.0], "b": [1.0, 2.0]})
    assert significance.wilcoxon_pairs({"a": [1.0]}) == []


def test_friedman_agrees_with_scipy_and_the_published_critical_value():
    generator = np.random.default_rng(4)
    table = generator.normal(size=(14, 4)) + [0, 0, 1, 2]
    scores = dict(zip("abcd", table.T))
    found = significance.friedman_ranks(scores)
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    # Demsar's table: q_0.05 for four methods is 2.569.
    assert found.critical_difference == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert sum(found.mean_ranks.values()) == pytest.approx(10)
    assert min(found.mean_ranks, key=found.mean_ranks.get) == "d"


def test_friedman_with_ties_two_methods_and_nothing():
    tied = significance.friedman_ranks({"a": [1, 1], "b": [1, 1], "c": [1, 1]})
    assert tied.mean_ranks == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert tied.p_value == 1.0
    assert math.isnan(significance.friedman_ranks({"a": [1, 2], "b": [2, 3]}).p_value)
    assert math.isnan(significance.friedman_ranks({"a": [np.nan], "b": [1]}).mean_ranks["a"])


@pytest.mark.parametrize(("greater", "best"), [(True, "a"), (False, "c")])
def test_the_best_rank_has_no_test_and_only_what_is_worse_is_marked(greater, best):
    noise = np.array([0.0, 0.01, -0.01, 0.01, -0.01])
    scores = np.array([0.91 + noise, 0.895 + 2 * noise[::-1], 0.5 + np.roll(noise, 1)])[:, None]
    metric = Metric("score", balanced_accuracy, greater_is_better=greater)
    found = Comparison(metric, ("a", "b", "c"), (2,), scores, test_share=0.2)
    ranks = {rank.method: rank for rank in found.ranks}
    assert ranks[best].p_value is None
    assert {name for name, rank in ranks.items() if rank.significant} == ({"c"} if greater else {"a", "b"})
    nothing = Comparison(metric, ("a", "b"), (2,), np.full((2, 1, 4), np.nan))
    assert nothing.ranks == nothing.tests == ()


def test_corrected_t_test_by_hand():
    values = np.array([0.1, 0.3, 0.2, 0.2])
    p_value, interval = significance.corrected_t_test(values, test_share=0.25)
    error = math.sqrt(values.var(ddof=1) * (1 / 4 + 1 / 3))
    assert p_value == pytest.approx(2 * stats.t.sf(0.2 / error, 3))
    assert interval.high - 0.2 == pytest.approx(stats.t.ppf(0.975, 3) * error)
    plain, _ = significance.corrected_t_test(values, test_share=None)
    assert plain == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_corrected_t_test_of_nothing_of_ties_and_of_a_constant():
    assert significance.corrected_t_test([], 0.2)[0] == 1.0
    assert significance.corrected_t_test([0.1 + 0.2 - 0.3] * 5, 0.2)[0] == 1.0
    assert significance.corrected_t_test([0.5] * 5, 0.2)[0] == pytest.approx(2 / 32)


def test_repeating_the_same_folds_is_no_more_evidence():
    folds = np.array([0.05, 0.0, 0.04, 0.06, -0.04])
    once, _ = significance.corrected_t_test(folds, 0.2)
    often, _ = significance.corrected_t_test(np.tile(folds, 20), 0.2, n_folds=5)
    assert once > often > 0.15
    assert stats.ttest_1samp(np.tile(folds, 20), 0).pvalue < 1e-6  # as if they were independent


def test_rounding_breaks_no_tie():
    scores = {"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.5]}
    assert significance.friedman_ranks(scores).mean_ranks == {"a": 1.5, "b": 1.5}
    assert significance.wilcoxon_pairs(scores)[0].p_value == 1.0


def test_nemenyi_tells_whether_ranks_can_differ_by_as_much():
    few = significance.friedman_ranks({"a": [3, 3], "b": [2, 2], "c": [1, 1]})
    assert not few.can_differ
    many = significance.friedman_ranks({"a": [3] * 30, "b": [2] * 30, "c": [1] * 30})
    assert many.can_differ
