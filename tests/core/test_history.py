"""The history: bounded, thinned, readable."""

import numpy as np
from numba import njit

from tamiz.core.history import (
    N_LINES,
    HistorySlot,
    history_to_dict,
    is_line_due,
    new_history,
    record_step,
    room_for_steps,
    write_line,
)
from tamiz.core.rule import HISTORY_COLUMNS, Phase


def run(n_steps, n_features=3):
    history = new_history(n_features)
    for step in range(1, n_steps + 1):
        history.counters[HistorySlot.SINCE] += 1
        history.loss_sum[0] += step
        if is_line_due(history, step, False):
            gamma = np.array([1.0, 0.5], dtype=np.float32)
            write_line(history, step, int(Phase.SELECTION), 2, 1.5, 0.25, gamma, np.array([2, 0], dtype=np.int32))
    return history


def test_a_short_run_has_every_step():
    found = history_to_dict(run(10), np.array([2, 3, 1]), 1)
    assert found["step"].tolist() == list(range(1, 11))
    assert found["loss"].tolist() == list(range(1, 11))
    assert set(HISTORY_COLUMNS) <= set(found)


def test_a_long_run_is_thinned_evenly_and_every_loss_counts():
    n_steps = 5000
    found = history_to_dict(run(n_steps), np.array([2, 3, 1]), 1)
    assert N_LINES // 2 <= found["step"].size <= N_LINES
    assert len(set(np.diff(found["step"]))) == 1
    stride = int(found["step"][1] - found["step"][0])
    # A line holds the mean of the losses since the line before it.
    assert found["loss"][-1] == np.arange(found["step"][-1] - stride + 1, found["step"][-1] + 1).mean()


def test_a_forced_line_is_written_whatever_the_stride():
    history = run(300)
    assert history.counters[HistorySlot.STRIDE] == 2
    assert not is_line_due(history, 301, False)
    assert is_line_due(history, 301, True)


def test_compiled_steps_fill_the_history_and_never_overrun_it():
    @njit
    def record(history, first_step, n_steps, gamma, column):
        for step in range(first_step, first_step + n_steps):
            history.loss_sum[0] += step
            record_step(history, step, 1, 2, 0.25, gamma, column)

    expected, history, step = run(2000), new_history(3), 1
    arrays = np.array([1.0, 0.5], dtype=np.float32), np.array([2, 0], dtype=np.int32)
    while step <= 2000:
        n_steps = min(room_for_steps(history), 2001 - step)
        record(history, step, n_steps, *arrays)
        step += n_steps
    n_lines = int(history.counters[HistorySlot.LINES])
    for mine, theirs in zip(history[:2], expected[:2], strict=True):
        np.testing.assert_array_equal(mine[:n_lines], theirs[:n_lines])
    record(history, 1, 10 * N_LINES, *arrays)  # without room
    assert history.counters[HistorySlot.LINES] <= N_LINES


def test_the_path_holds_gamma_by_original_column_the_best_first():
    found = history_to_dict(run(2), np.array([2, 3, 1]), 1)
    assert found["gamma_path_features"].tolist() == [2, 0, 1]
    np.testing.assert_allclose(found["gamma_path"], [[1.0, 0.5, 0.0]] * 2, atol=1 / 255)


def test_a_wide_table_has_no_path():
    assert "gamma_path" not in history_to_dict(new_history(1 << 17), np.arange(1, (1 << 17) + 1), 1)
