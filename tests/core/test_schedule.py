"""alpha and the targets of the variants, step by step."""

import numpy as np
import pytest

from tamiz.core.rule import VARIANTS, Rule, ranking_target, selection_schedule, soft_target


def test_alpha_rises_to_one_and_stays():
    assert selection_schedule(Rule(3, 1, ramp_steps=4), 0, 7)[0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_the_soft_target_is_the_papers_until_the_ramp_ends_and_falls_to_zero_after_it():
    rule = Rule(50, 10, rho=0.5, ramp_steps=10)
    assert soft_target(np.array([0, 10, 15, 20, 99]), rule).tolist() == [5.0, 5.0, 2.5, 0.0, 0.0]


def test_rho_reaches_one_by_a_step_limit_that_comes_before_the_end_of_the_ramp():
    """The paper's images: 70 epochs of selection, T = 250. With a constant rho the mask would never close in them."""
    rule = Rule(784, 40, ramp_steps=25_000, max_steps=7_000, warmup_steps=100)
    assert soft_target(np.array([0, 5_250, 6_125, 7_000, 7_050]), rule).tolist() == [10.0, 10.0, 5.0, 0.0, 0.0]
    # A limit of four ramps, the default, changes nothing.
    late = np.array([500, 2_000, 3_000, 4_000, 8_000])
    assert soft_target(late, Rule(784, 40, ramp_steps=2_000)).tolist() == [10.0, 10.0, 5.0, 0.0, 0.0]


def test_the_ranking_target_falls_geometrically():
    falling = ranking_target(np.arange(30), Rule(1000, 10, ramp_steps=100))
    assert falling[0] == 1000
    assert falling[25:].tolist() == [1.0] * 5
    assert np.allclose(np.diff(np.log(falling[:26])), np.log(falling[1] / falling[0]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_chunk_of_the_schedule_is_the_schedule_of_its_steps(variant):
    rule = Rule(100, 7, variant, warmup_steps=3, ramp_steps=20)
    alphas, targets = selection_schedule(rule, 1, 60)
    assert alphas[:3].tolist() == [0.0, 0.0, 0.0]
    for step in (1, 4, 17, 60):
        one = selection_schedule(rule, step, 1)
        assert (one[0][0], one[1][0]) == (alphas[step - 1], targets[step - 1])
