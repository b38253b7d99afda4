"""The memory of the loop: what is alive moves to the front, groups keep their columns together."""

import numpy as np

from tamiz.engines.memory import LoopSlot, compact_vectors, copy_memory, new_memory


def test_columns_that_are_alive_move_to_the_front():
    memory = new_memory(np.arange(4), 2, 5, 2, 2, seed=0)
    memory.weights[:] = np.arange(10).reshape(2, 5)
    memory.rank[:] = [0, 5, 0, 4, 0]
    assert compact_vectors(memory, 2) == 3
    assert memory.feature.tolist() == [0, 2, 4, 3, 1]
    assert memory.weights[:, :3].tolist() == [[0, 2, 4], [5, 7, 9]]
    assert memory.order[:3].tolist() == [0, 2, 4]
    assert memory.loop_counters[LoopSlot.FEATURES] == memory.loop_counters[LoopSlot.WIDTH] == 3


def test_groups_that_are_alive_move_to_the_front_with_their_columns():
    memory = new_memory(np.arange(4), 2, 7, 1, 2, seed=0, starts=np.array([0, 2, 3, 6, 7]))
    memory.weights[:] = np.arange(14).reshape(2, 7)
    memory.gate[:] = np.arange(7)
    memory.rank[:] = [4, 0, 0, 3]
    assert compact_vectors(memory, 1) == 4
    assert memory.feature.tolist() == [1, 2, 3, 0]
    assert memory.starts[:3].tolist() == [0, 1, 4]
    assert memory.weights[:, :4].tolist() == [[2, 3, 4, 5], [9, 10, 11, 12]]
    assert memory.gate[:4].tolist() == [2, 3, 4, 5]
    assert memory.order[:4].tolist() == [2, 3, 4, 5]
    assert memory.loop_counters[LoopSlot.FEATURES] == 2
    assert memory.loop_counters[LoopSlot.WIDTH] == 4


def test_without_groups_no_vector_is_added():
    memory = new_memory(np.arange(4), 1, 5, 2, 2, seed=0)
    assert memory.gate is memory.gamma
    assert np.shares_memory(memory.gamma_gradient, memory.folded)
    assert memory.starts.size == 0


def test_a_copy_shares_within_itself_what_the_memory_does():
    memory = new_memory(np.arange(10), 2, 6, 2, 4, seed=0)
    copied = copy_memory(memory)
    for one in (memory, copied):
        assert one.gate is one.gamma
        assert np.shares_memory(one.gamma_gradient, one.folded)
        assert np.shares_memory(one.order, one.gradient)
    assert not any(np.shares_memory(a, b) for a, b in zip(memory[:-2], copied[:-2], strict=True) if a.size)
    copied.history.lines[0] = 7
    assert not memory.history.lines.any()
