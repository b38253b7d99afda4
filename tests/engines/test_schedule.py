"""Schedules: what "auto" stands for, and what a value of the user changes."""

import dataclasses

import pytest

from tamiz.engines.schedule import (
    additive_schedule,
    linear_l2,
    linear_schedule,
    network_schedule,
    pair_schedule,
    paper_schedule,
    refinement_part,
)

DECIDE = [linear_schedule, additive_schedule, network_schedule]


def test_the_linear_schedule_is_the_papers_where_it_says_so():
    schedule = linear_schedule(200, 100, "classification")
    assert (schedule.l2, schedule.refinement_l2, schedule.batch_size, schedule.refinement_steps) == (0.5, 0.5, 4, 7500)
    assert schedule.refinement_rates == (3e-3, 3e-3 / 5, 3e-3 / 25)
    # Each output has the decay that it would have alone. Of four classes a quarter of the rows belongs to each.
    assert linear_schedule(1000, 100, "regression", n_outputs=2).l2 == linear_l2(1000) / 2
    assert linear_schedule(1000, 100, "classification", n_outputs=4).l2 == linear_l2(1000) / 4 / 4
    for n, factor in ((45, 1.0), (500, 1.0), (1000, 0.25), (10_000, 0.1)):  # one output in many rows: less decay
        assert linear_schedule(n, 100, "classification").l2 == pytest.approx(factor * linear_l2(n))


@pytest.mark.parametrize("decide", DECIDE)
def test_values_of_the_user_hold_for_the_refinement_too_and_auto_is_the_default(decide):
    schedule = decide(100, 5, "classification", learning_rate=0.5, l2=0.25, refinement_epochs=3, batch_size=10)
    assert (schedule.learning_rate, schedule.refinement_rates[0]) == (0.5, 0.5)
    assert (schedule.l2, schedule.refinement_l2, schedule.refinement_steps) == (0.25, 0.25, 30)
    names = ("learning_rate", "l2", "batch_size", "warmup_steps", "ramp_steps", "refinement_epochs", "max_steps")
    assert decide(100, 5, "regression", **dict.fromkeys(names, "auto")) == decide(100, 5, "regression")


def test_the_additive_schedule_is_the_linear_one_with_a_shorter_ramp_and_less_decay_at_the_end():
    few, many = (additive_schedule(n, 10, "classification") for n in (40, 400))
    line = linear_schedule(40, 10, "classification")
    assert dataclasses.replace(few, ramp_steps=line.ramp_steps) == line
    assert many.l2 == pytest.approx(30 / 400)
    assert many.refinement_l2 == pytest.approx(linear_schedule(400, 10, "classification").refinement_l2 / 4)


@pytest.mark.parametrize(("variant", "selection", "ramp"), [("hard", 300, 300), ("soft", 200, 250)])
def test_the_papers_schedule_is_counted_in_epochs(variant, selection, ramp):
    schedule = paper_schedule(200, 10, "classification", variant=variant)
    epoch = 50
    assert (schedule.batch_size, schedule.l2, schedule.refinement_l2) == (4, 0.5, 0.5)
    assert (schedule.warmup_steps, schedule.ramp_steps) == (5 * epoch, ramp * epoch)
    assert (schedule.max_steps, schedule.selection_steps) == ((selection - 5) * epoch, selection * epoch)
    assert (schedule.learning_rate, schedule.refinement_steps) == (1e-3, 150 * epoch)
    assert schedule.refinement_rates == (1e-3, 1e-3 / 5, 1e-3 / 25)
    network = paper_schedule(200, 10, "classification", variant=variant, rate=0.05)
    assert dataclasses.replace(network, learning_rate=1e-3) == schedule
    assert network.learning_rate == 0.05


def test_values_of_the_user_go_before_the_papers():
    given = {"batch_size": 20, "warmup_steps": 7, "max_steps": 100, "refinement_epochs": 2, "l2": 0.25}
    schedule = paper_schedule(200, 10, "classification", **given)
    assert (schedule.selection_steps, schedule.refinement_steps, schedule.ramp_steps) == (107, 20, 2500)
    assert (schedule.l2, schedule.refinement_l2, schedule.gamma_rows) == (0.25, 0.25, "joint")
    assert network_schedule(100, 5, "classification", gamma_rows="joint").gamma_rows == "joint"
    with pytest.raises(ValueError, match="no recipe for variant='ranking': use 'hard' or 'soft', or leave Training"):
        paper_schedule(200, 10, "classification", variant="ranking")


def test_parts_of_the_refinement():
    assert [refinement_part(done, 9, 3) for done in range(10)] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert refinement_part(0, 0, 3) == 0


@pytest.mark.parametrize("schedule", [linear_schedule, additive_schedule, pair_schedule])
def test_from_50_000_rows_on_a_fit_costs_no_more_with_more_rows(schedule):
    assert schedule(49_999, 10, "regression").batch_size == 999
    for n in (50_000, 10**6, 10**7):
        many = schedule(n, 10, "regression")
        assert many.batch_size == 256
        assert 7500 <= many.refinement_steps <= 7500 + -(-n // 256)
