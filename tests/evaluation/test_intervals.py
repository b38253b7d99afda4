"""Intervals of mean scores, and tests of methods, against hand-worked cases and scipy."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.intervals import (
    Interval,
    corrected_interval,
    corrected_t_test,
    friedman_ranks,
    holm,
    mean_share_reach,
    wilcoxon_pairs,
    wilson_interval,
)
from tamiz.evaluation.metrics import SCORINGS, Metric, balanced_accuracy
from tamiz.evaluation.results import FACTOR_OF_HITS, interval_of_parts


@pytest.mark.parametrize(
    ("values", "test_share", "n_folds", "factor"),
    [
        ([0.1, 0.3, 0.2, 0.2, 0.2], 0.2, None, 1 / 5 + 1 / 4),
        ([0.7, 0.8, 0.9, 0.8], None, None, 1 / 4),  # Student's t
        (np.tile([0.7, 0.8, 0.9, 0.8, 0.6], 4), 0.2, 5, 1 / 20 + 1 / 4),  # repeats share all rows
    ],
)
def test_corrected_interval_by_hand(values, test_share, n_folds, factor):
    found = corrected_interval(values, test_share, n_folds=n_folds)
    degrees = (n_folds or len(values)) - 1
    reach = stats.t.ppf(0.975, degrees) * math.sqrt(np.var(values, ddof=1) * factor)
    assert found.low == pytest.approx(np.mean(values) - reach)
    assert found.high == pytest.approx(np.mean(values) + reach)
    variance = np.var(values, ddof=1) * 0.75  # a quarter of it is beyond what the rows tell
    beyond = corrected_interval(values, test_share, n_folds=n_folds, reach=(0.0, 0.1), variance=variance)
    assert beyond.value - beyond.low == pytest.approx(reach / 2)
    assert beyond.high - beyond.value == pytest.approx(math.hypot(0.1, reach / 2))


def test_what_is_not_known_is_nan_and_limits_cut():
    nothing, single, equal = (corrected_interval(v, 0.2) for v in ([], [0.5, float("nan")], [1.0] * 5))
    assert (nothing.is_known, nothing.has_ends, single.is_known, single.has_ends) == (False, False, True, False)
    assert not equal.has_ends
    assert Interval(0.5, 0.4, 0.6).has_ends
    assert corrected_interval([0.9, 1.0, 0.8], 0.3, limits=(0, 1)).high == 1


@pytest.mark.parametrize(("hits", "n_rows"), [(0, 10), (3, 10), (10, 10), (18, 20)])
def test_wilson_interval_agrees_with_scipy(hits, n_rows):
    expected = stats.binomtest(hits, n_rows).proportion_ci(method="wilson")
    assert wilson_interval(hits, n_rows) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_one_share_reaches_as_far_as_wilson_and_a_rare_class_dominates():
    low, high = wilson_interval(18, 20)
    assert mean_share_reach([18], [20]) == pytest.approx((0.9 - low, high - 0.9))
    down, _ = mean_share_reach([95, 5], [95, 5])  # all right: the five rows of the rare class tell little
    assert down == pytest.approx((1 - wilson_interval(5, 5)[0]) / 2, rel=0.01)
    assert mean_share_reach([5, 0], [5, 0]) == mean_share_reach([5], [5])
    assert math.isnan(mean_share_reach([0], [0])[0])


def interval_of(hits_by_fold, n_by_fold=4):
    parts = [(hits / n_by_fold, hits, n_by_fold) for hits in hits_by_fold]
    return interval_of_parts(SCORINGS["accuracy"], parts, 0.2, len(hits_by_fold))


@pytest.mark.parametrize("hits", [[4] * 5, [3] * 5, [4, 4, 3, 4, 3], [3, 3, 2, 3, 2]])
def test_folds_that_vary_no_more_than_chance_have_the_interval_of_their_rows(hits):
    found, (low, high) = interval_of(hits), wilson_interval(sum(hits), 20)
    assert found.value - found.low == pytest.approx(FACTOR_OF_HITS * (found.value - low))
    assert found.high == pytest.approx(min(1.0, found.value + FACTOR_OF_HITS * (high - found.value)))
    mirrored = interval_of([4 - own for own in hits])
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))


def test_folds_that_vary_more_widen_the_interval_and_folds_without_a_score_do_not_count():
    even, uneven = interval_of([20] * 5, 40), interval_of([0, 10, 20, 30, 40], 40)
    assert uneven.high - uneven.low > 3 * (even.high - even.low)
    area, parts = SCORINGS["roc_auc"], [(0.8, 16, 20, 16, 20)] * 4
    without = interval_of_parts(area, [*parts, (math.nan, math.nan, 0, math.nan, 40)], 0.2, 5)
    assert without == interval_of_parts(area, parts, 0.2, 4)


@cache
def _intervals_of_20_rows():
    """For every number of right rows in five folds of four: in how many orders it occurs, and the interval."""
    found = {}
    for hits in combinations_with_replacement(range(5), 5):
        orders = math.factorial(5) // math.prod(math.factorial(n) for n in Counter(hits).values())
        found[hits] = orders, interval_of(hits)
    return found


@pytest.mark.parametrize("truth", [0.5, 0.8, 0.94, 0.95, 0.97, 0.985])
def test_coverage_near_a_limit_is_neither_low_nor_certain(truth):
    """Exact, over all outcomes of 20 independent rows; a symmetric interval over the folds covers in all of them."""
    chance = stats.binom.pmf(np.arange(5), 4, truth)
    covered = sum(
        orders * math.prod(chance[list(hits)])
        for hits, (orders, interval) in _intervals_of_20_rows().items()
        if interval.low <= truth <= interval.high
    )
    assert 0.92 < covered < 0.9985


@pytest.mark.parametrize("spread", [0.02, 0.04])
def test_coverage_where_models_of_other_tables_differ(spread):
    """600 tables of 120 rows, mean score .75 (standard error of the coverage .01): .865 at a spread of .04 without the factor."""
    generator, covered = np.random.default_rng(0), 0
    for share in generator.normal(0.75, spread, 600):
        hits = generator.binomial(12, share, (5, 2))
        parts = [(own.mean() / 12, own[0], 12, own[1], 12) for own in hits]
        found = interval_of_parts(SCORINGS["balanced_accuracy"], parts, 0.2, 5)
        covered += found.low <= 0.75 <= found.high
    assert 0.90 < covered / 600 < 0.995


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.5]).tolist() == pytest.approx([0.08, 0.03, 0.5])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_wilcoxon_pairs_agree_with_scipy_before_the_correction():
    generator = np.random.default_rng(3)
    scores = {name: generator.normal(shift, 1, 12) for name, shift in (("a", 0.0), ("b", 3.0))}
    (only,) = wilcoxon_pairs(scores)
    assert only.p_value == pytest.approx(stats.wilcoxon(scores["a"], scores["b"]).pvalue)
    assert only.significant
    assert only.difference == pytest.approx((scores["a"] - scores["b"]).mean())


def test_wilcoxon_pairs_with_ties_missing_splits_and_equal_methods():
    scores = {"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0], "c": [0.0, 0.0, 0.0, 0.0]}
    tests = wilcoxon_pairs(scores)
    assert [(t.first, t.second) for t in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert tests[0].p_value == 1.0
    assert not any(t.significant for t in tests)  # three or four splits cannot be significant
    with pytest.raises(ValueError, match="same splits"):
        wilcoxon_pairs({"a": [1.0], "b": [1.0, 2.0]})
    assert wilcoxon_pairs({"a": [1.0]}) == []


def test_friedman_agrees_with_scipy_and_the_published_critical_value():
    table = np.random.default_rng(4).normal(size=(14, 4)) + [0, 0, 1, 2]
    ranks, p_value, critical = friedman_ranks(dict(zip("abcd", table.T)))
    assert p_value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    # Demsar's table: q_0.05 for four methods is 2.569.
    assert critical == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert sum(ranks.values()) == pytest.approx(10)
    assert min(ranks, key=ranks.get) == "d"


def test_friedman_with_ties_two_methods_and_nothing():
    assert friedman_ranks({"a": [1, 1], "b": [1, 1], "c": [1, 1]})[:2] == ({"a": 2.0, "b": 2.0, "c": 2.0}, 1.0)
    assert math.isnan(friedman_ranks({"a": [1, 2], "b": [2, 3]})[1])
    assert math.isnan(friedman_ranks({"a": [np.nan], "b": [1]})[0]["a"])
    rounded = {"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.5]}  # rounding breaks no tie
    assert friedman_ranks(rounded)[0] == {"a": 1.5, "b": 1.5}
    assert wilcoxon_pairs(rounded)[0].p_value == 1.0


@pytest.mark.parametrize(("greater", "best"), [(True, "a"), (False, "c")])
def test_the_best_rank_has_no_test_and_only_what_is_worse_is_marked(greater, best):
    noise = np.array([0.0, 0.01, -0.01, 0.01, -0.01])
    scores = np.array([0.91 + noise, 0.895 + 2 * noise[::-1], 0.5 + np.roll(noise, 1)])[:, None]
    metric = Metric("score", balanced_accuracy, greater_is_better=greater)
    found = Comparison(metric, ("a", "b", "c"), (2,), scores, test_share=0.2)
    ranks = {rank.method: rank for rank in found.ranks}
    assert ranks[best].p_value is None
    assert {name for name, rank in ranks.items() if rank.significant} == ({"c"} if greater else {"a", "b"})


def test_corrected_t_test_by_hand():
    values = np.array([0.1, 0.3, 0.2, 0.2])
    p_value, interval = corrected_t_test(values, test_share=0.25)
    error = math.sqrt(values.var(ddof=1) * (1 / 4 + 1 / 3))
    assert p_value == pytest.approx(2 * stats.t.sf(0.2 / error, 3))
    assert interval.high - 0.2 == pytest.approx(stats.t.ppf(0.975, 3) * error)
    assert corrected_t_test(values, test_share=None)[0] == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    for nothing in ([], [0.1 + 0.2 - 0.3] * 5):
        assert corrected_t_test(nothing, 0.2)[0] == 1.0
    assert corrected_t_test([0.5] * 5, 0.2)[0] == pytest.approx(2 / 32)


def test_repeating_the_same_folds_is_no_more_evidence():
    folds = np.array([0.05, 0.0, 0.04, 0.06, -0.04])
    once, _ = corrected_t_test(folds, 0.2)
    often, _ = corrected_t_test(np.tile(folds, 20), 0.2, n_folds=5)
    assert once > often > 0.15
    assert stats.ttest_1samp(np.tile(folds, 20), 0).pvalue < 1e-6  # as if they were independent
