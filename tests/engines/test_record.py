"""What the compiled engines share: numbers for compiled code, the record and its warning."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import Rule, Slot
from tamiz.core.history import new_history
from tamiz.core.rule import N_SLOTS
from tamiz.engines import network_schedule
from tamiz.engines.record import final_ranking, record_selection, training_numbers


def test_numbers_are_plain_and_averages_begin_where_the_schedule_says():
    schedule = network_schedule(100, 5, "classification")
    numbers = training_numbers(Rule(50, 5, warmup_steps=7, max_steps=9), schedule)
    assert numbers.step_limit == 16
    assert numbers.average_from == int(schedule.refinement_steps * 0.3)
    assert all(type(value) in (int, float, bool) for value in numbers)


def test_ranks_of_kept_and_dropped_features_join():
    assert final_ranking(np.array([3, 1, 0, 2]), np.array([2, 1])).tolist() == [3, 1, 4, 2]


@pytest.mark.parametrize("forced", [False, True])
def test_the_record_tells_whether_the_limit_decided(forced):
    counters = np.zeros(N_SLOTS, dtype=np.int64)
    counters[[Slot.STEP, Slot.FORCED, Slot.KEPT]] = 12, int(forced), 1
    make = lambda: record_selection(  # noqa: E731
        Rule(3, 1, max_steps=4), np.array([2, 1, 3]), counters, 10, new_history(3), seed=5, started=0.0, engine="toy"
    )
    if forced:
        with pytest.warns(ConvergenceWarning, match="did not settle within 4 steps; the 1 largest were kept"):
            selection = make()
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            selection = make()
    assert (selection.converged, selection.n_steps, selection.closed_at, selection.seed) == (not forced, 12, 10, 5)
    assert selection.indices.tolist() == [1]
