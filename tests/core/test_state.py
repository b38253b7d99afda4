"""Names and places that histories, counters and checkpoints share."""

import numpy as np

from tamiz.core.rule import HISTORY_COLUMNS, N_SLOTS, Phase, Slot


def test_slots_number_an_array_without_gaps():
    assert [slot.value for slot in Slot] == list(range(N_SLOTS))
    counters = np.arange(N_SLOTS)
    assert counters[Slot.KEPT] == Slot.KEPT.value


def test_phases_are_in_the_order_of_a_run():
    assert Phase.WARM_UP < Phase.SELECTION < Phase.CLOSING < Phase.REFINEMENT
    assert len({phase.label for phase in Phase}) == len(Phase)


def test_a_history_has_each_column_once():
    assert len(set(HISTORY_COLUMNS)) == len(HISTORY_COLUMNS)
    assert {"step", "phase"} <= set(HISTORY_COLUMNS)
