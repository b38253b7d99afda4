"""Intervals of mean scores against hand-worked cases."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from tamiz.evaluation.intervals import Interval, corrected_interval, mean_share_reach, wilson_interval
from tamiz.evaluation.metrics import SCORINGS
from tamiz.evaluation.results import interval_of_parts


def test_corrected_interval_by_hand_is_wider_than_the_plain_one():
    values = np.array([0.1, 0.3, 0.2, 0.2, 0.2])
    found = corrected_interval(values, test_share=0.2)
    reach = stats.t.ppf(0.975, 4) * math.sqrt(values.var(ddof=1) * (1 / 5 + 1 / 4))
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.2 - reach, 0.2 + reach))
    plain = stats.t.interval(0.95, 4, 0.2, stats.sem(values))
    assert found.high - found.low > plain[1] - plain[0]


def test_corrected_interval_of_one_value_of_nothing_and_with_limits():
    assert corrected_interval([0.5], 0.2).value == 0.5
    assert math.isnan(corrected_interval([0.5], 0.2).low)
    assert math.isnan(corrected_interval([np.nan], 0.2).value)
    assert corrected_interval([0.9, 1.0, 0.8], 0.3, limits=(0, 1)).high == 1


def test_without_a_test_share_it_is_students_t():
    found = corrected_interval([0.7, 0.8, 0.9, 0.8], None)
    # Student t with three degrees of freedom: 3.182 standard errors of 0.0408.
    assert found.value == pytest.approx(0.8)
    assert found.high - found.value == pytest.approx(3.1824 * 0.0816497 / 2, rel=1e-4)


def test_what_is_not_known_is_nan():
    nothing, single = corrected_interval([], 0.2), corrected_interval([0.5, float("nan")], 0.2)
    assert (nothing.is_known, nothing.has_ends, single.is_known, single.has_ends) == (False, False, True, False)
    assert Interval(0.5, 0.4, 0.6).has_ends


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


def test_repeats_share_rows_and_have_the_degrees_of_freedom_of_the_folds():
    values = np.tile([0.7, 0.8, 0.9, 0.8, 0.6], 4)
    found = corrected_interval(values, 0.2, n_folds=5)
    reach = stats.t.ppf(0.975, 4) * math.sqrt(values.var(ddof=1) * (1 / 20 + 1 / 4))
    assert found.high - found.value == pytest.approx(reach)
    assert found.high - found.low > 0.95 * (corrected_interval(values[:5], 0.2).high - found.value)


def parts_of(hits_by_fold, n_by_fold):
    """Parts of the accuracy of folds."""
    return [(hits / n_by_fold, hits, n_by_fold) for hits in hits_by_fold]


def interval_of(hits_by_fold, n_by_fold=4):
    return interval_of_parts(SCORINGS["accuracy"], parts_of(hits_by_fold, n_by_fold), 0.2, len(hits_by_fold))


def test_folds_that_do_not_vary_have_the_interval_of_their_rows():
    perfect = interval_of([4] * 5)
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert perfect.low == pytest.approx(wilson_interval(20, 20)[0])
    even = interval_of([3] * 5)
    assert (even.low, even.high) == pytest.approx(wilson_interval(15, 20))
    assert not corrected_interval([1.0] * 5, 0.2, limits=(-math.inf, 1.0)).has_ends


def test_near_a_limit_the_rows_set_the_end_and_elsewhere_the_wider_one():
    plain = corrected_interval([1.0, 1.0, 0.75, 1.0, 0.75], 0.2, limits=(0.0, 1.0))
    found = interval_of([4, 4, 3, 4, 3])  # two of 20 rows wrong
    assert plain.high == 1.0  # which two wrong rows exclude
    assert found.high == pytest.approx(wilson_interval(18, 20)[1])
    assert found.low == min(plain.low, wilson_interval(18, 20)[0])
    mirrored = interval_of([0, 0, 1, 0, 1])
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))
    many = interval_of([36, 37, 38, 38, 38], 40)  # 13 of 200 wrong
    assert (
        many.high
        == corrected_interval(np.array([36, 37, 38, 38, 38]) / 40, 0.2, reach=(0, many.high - many.value)).high
    )


@cache
def _intervals_of_20_rows():
    """For every number of right rows in five folds of four: in how many orders it occurs, and the interval."""
    found = {}
    for hits in combinations_with_replacement(range(5), 5):
        orders = math.factorial(5) // math.prod(math.factorial(n) for n in Counter(hits).values())
        found[hits] = orders, interval_of(hits)
    return found


@pytest.mark.parametrize("truth", [0.8, 0.94, 0.95, 0.97, 0.985])
def test_coverage_near_a_limit_is_neither_low_nor_certain(truth):
    """Exact, over all outcomes of 20 independent rows; a symmetric interval over the folds covers in all of them."""
    chance = stats.binom.pmf(np.arange(5), 4, truth)
    covered = sum(
        orders * math.prod(chance[list(hits)])
        for hits, (orders, interval) in _intervals_of_20_rows().items()
        if interval.low <= truth <= interval.high
    )
    assert 0.92 < covered < 0.995
