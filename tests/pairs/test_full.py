"""The search over all pairs: numbers of pairs, and which are judged."""

import numpy as np

from tamiz.pairs.blocks import Best
from tamiz.pairs.full import count_pairs, kept_pairs, pairs_to_judge


def test_columns_without_functions_make_no_pairs():
    assert count_pairs(np.array([2, 0, 1, 3])) == 3
    assert count_pairs(np.array([0, 1])) == 0


def test_a_pair_for_each_column_is_kept_within_limits():
    assert kept_pairs(5) == 100
    assert kept_pairs(500) == 500
    assert kept_pairs(10**6) == 1000


def test_the_pair_of_a_column_of_the_model_is_judged_however_weak():
    best = Best.empty(4, 6)
    best.merge_pairs(np.array([9.0, 8.0, 7.0, 6.0], dtype=np.float32), np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]))
    best.partner[5], best.column_z[5] = 2, -3.0
    judged = pairs_to_judge(best, 10**9, np.array([5]))
    assert [2, 5] in judged.tolist()
    assert [2, 5] not in pairs_to_judge(best, 10**9, np.empty(0, dtype=np.int64)).tolist()
    assert (judged[:, 0] < judged[:, 1]).all()
