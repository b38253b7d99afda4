"""Memory of the loop of pairs: sizes, and what stays when features go."""

import numpy as np
import pytest

from tamiz.engines.memory import LoopSlot
from tamiz.engines.pair_loop import count_coefficients, drop_features, new_pair_memory

CURVES, FUNCTIONS = np.array([0, 3, 5, 9]), np.array([0, 2, 3, 5])


def test_coefficients_are_curves_and_products_of_different_features():
    by_hand = CURVES[-1] + 2 * 1 + 2 * 2 + 1 * 2
    assert count_coefficients(CURVES, FUNCTIONS) == by_hand
    assert count_coefficients(CURVES[:2], FUNCTIONS[:2]) == 3


@pytest.mark.parametrize("m", [2, 3])
def test_a_run_starts_with_open_gates(m):
    memory = new_pair_memory(np.arange(10), 2, m, 4, 0, CURVES, FUNCTIONS)
    assert memory.weights.shape == (2, count_coefficients(CURVES, FUNCTIONS))
    assert not memory.weights.any()
    assert (memory.gamma == 1).all()
    assert memory.batch.scores.shape == (4, 2)


def test_what_belongs_to_living_features_moves_to_the_front():
    memory = new_pair_memory(np.arange(10), 1, 2, 4, 0, CURVES, FUNCTIONS)
    memory.weights[0] = np.arange(memory.weights.shape[1])
    memory.rank[:] = [0, 3, 0]  # the second feature is eliminated
    stay = drop_features(memory, 2)
    # Curves of features 0 and 2, then their functions, which stand behind the nine curve columns.
    assert stay.tolist() == [0, 1, 2, 5, 6, 7, 8, 9, 10, 12, 13]
    width = int(memory.loop_counters[LoopSlot.WIDTH])
    assert width == count_coefficients(np.array([0, 3, 7]), np.array([0, 2, 4]))
    # Products of the two functions of feature 0 with one of feature 1 and two of feature 2, then those of feature 1.
    assert memory.weights[0, :width].tolist() == [0, 1, 2, 5, 6, 7, 8, 10, 11, 13, 14]
    assert memory.feature.tolist() == [0, 2, 1]
