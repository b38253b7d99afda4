"""Features drawn at random."""

from __future__ import annotations

import numpy as np

from tamiz.baselines import RandomSelection


def test_random_selection_draws_every_feature_alike():
    drawn = sum(RandomSelection(3, random_state=seed).fit(np.ones((1, 10))).get_support() for seed in range(400))
    assert drawn.sum() == 1200
    assert drawn.min() > 80  # 120 expected, 9 standard deviation
    assert drawn.max() < 160


def test_random_selection_depends_on_the_seed_alone():
    first = RandomSelection(3, random_state=5).fit(np.zeros((2, 50)))
    again = RandomSelection(3, random_state=5).fit(np.random.default_rng(0).normal(size=(9, 50)), np.arange(9))
    assert np.array_equal(first.ranking_, again.ranking_)
    assert not np.array_equal(first.ranking_, RandomSelection(3, random_state=6).fit(np.zeros((2, 50))).ranking_)
    assert first.selection_.seed == 5
