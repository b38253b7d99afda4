"""Intervals of mean scores against hand-worked cases."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from tamiz.evaluation.intervals import Interval, corrected_interval, exact_interval, mid_p_interval


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


def test_folds_that_do_not_vary_have_an_exact_bound_on_their_rows():
    perfect = corrected_interval([1.0] * 5, 0.2, limits=(0.0, 1.0), n_rows=20)
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert perfect.low == pytest.approx(0.025 ** (1 / 20))
    even = corrected_interval([0.9] * 5, 0.2, limits=(0.0, 1.0), n_rows=20)
    assert even.low < 0.75 < 0.9 < even.high < 1
    same = corrected_interval([0.0] * 5, 0.2, limits=(-1, 1), n_rows=20)
    assert -same.low == same.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert not corrected_interval([1.0] * 5, 0.2, limits=(-math.inf, 1.0)).has_ends


def test_exact_interval_agrees_with_scipy():
    for hits in (0, 3, 10):
        expected = stats.binomtest(hits, 10).proportion_ci(method="exact")
        found = exact_interval(hits / 10, 10)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_mid_p_interval_by_hand(hits):
    """At each end the tail beyond the observed number and half of its own probability are 2.5 %."""
    found, exact = mid_p_interval(hits / 20, 20), exact_interval(hits / 20, 20)
    if hits > 0:
        assert stats.binom.sf(hits, 20, found.low) + stats.binom.pmf(hits, 20, found.low) / 2 == pytest.approx(0.025)
    if hits < 20:
        assert stats.binom.cdf(hits - 1, 20, found.high) + stats.binom.pmf(hits, 20, found.high) / 2 == pytest.approx(
            0.025
        )
    assert exact.low <= found.low <= hits / 20 <= found.high <= exact.high


def test_near_a_limit_the_rows_set_the_ends():
    values = [1.0, 1.0, 0.75, 1.0, 0.75]  # two of 20 rows wrong
    plain = corrected_interval(values, 0.2, limits=(0.0, 1.0))
    found = corrected_interval(values, 0.2, limits=(0.0, 1.0), n_rows=20)
    assert plain.high == 1.0  # which two wrong rows exclude
    assert found.high == pytest.approx(mid_p_interval(0.9, 20).high)
    assert found.low == min(plain.low, exact_interval(0.9, 20).low)
    mirrored = corrected_interval([1 - value for value in values], 0.2, limits=(0.0, 1.0), n_rows=20)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))


@pytest.mark.parametrize(
    ("values", "n_rows"), [([0.75, 0.75, 0.5, 1.0, 0.75], 20), ([0.9, 0.925, 0.95, 0.95, 0.95], 200)]
)
def test_far_from_a_limit_the_folds_set_the_ends(values, n_rows):
    """Five of 20 rows wrong, or 13 of 200."""
    plain = corrected_interval(values, 0.2, limits=(0.0, 1.0))
    assert corrected_interval(values, 0.2, limits=(0.0, 1.0), n_rows=n_rows) == plain


@cache
def _intervals_of_20_rows():
    """For every number of right rows in five folds of four: in how many orders it occurs, and the interval."""
    found = {}
    for hits in combinations_with_replacement(range(5), 5):
        orders = math.factorial(5) // math.prod(math.factorial(n) for n in Counter(hits).values())
        found[hits] = orders, corrected_interval(np.array(hits) / 4, 0.2, limits=(0.0, 1.0), n_rows=20)
    return found


@pytest.mark.parametrize("truth", [0.94, 0.95, 0.97, 0.985, 0.99])
def test_coverage_near_a_limit_is_neither_low_nor_certain(truth):
    """Exact, over all outcomes of 20 independent rows; a symmetric interval over the folds covers in all of them."""
    chance = stats.binom.pmf(np.arange(5), 4, truth)
    covered = sum(
        orders * math.prod(chance[list(hits)])
        for hits, (orders, interval) in _intervals_of_20_rows().items()
        if interval.low <= truth <= interval.high
    )
    assert 0.95 < covered < 0.99
