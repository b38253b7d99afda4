"""Record a run: a bounded number of lines, thinned as the run gets longer, and the paths of gamma. Used by all engines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from tamiz._utils.compiling import njit
from tamiz.core.compiled import IN_PLACE, INLINED
from tamiz.core.rule import HISTORY_COLUMNS

#: Lines that a history holds at most.
N_LINES = 256
#: Paths of gamma are recorded for tables of at most so many columns.
WIDEST_PATH = 1 << 16
#: Paths that are kept at the end, at least; twice as many for a large M.
PATHS_KEPT = 64


class HistorySlots(NamedTuple):
    """Position of a number in ``History.counters``."""

    #: Lines written.
    LINES: int = 0
    #: Steps between two lines.
    STRIDE: int = 1
    #: Steps since the last line.
    SINCE: int = 2


HistorySlot = HistorySlots()


class History(NamedTuple):
    """Lines of a run; arrays only, so that compiled code can write them."""

    #: (N_LINES, columns): ``HISTORY_COLUMNS``.
    lines: np.ndarray
    #: (N_LINES, n_features) gamma in 255 steps; no columns where the table is too wide.
    path: np.ndarray
    #: By :class:`HistorySlot`.
    counters: np.ndarray
    #: Sum of the losses since the last line.
    loss_sum: np.ndarray


def new_history(n_features: int) -> History:
    """Empty history for a mask over ``n_features`` features.

    Examples
    --------
    >>> new_history(10).lines.shape
    (256, 6)
    """
    counters = np.zeros(len(HistorySlot), dtype=np.int64)
    counters[HistorySlot.STRIDE] = 1
    width = n_features if n_features <= WIDEST_PATH else 0
    path = np.zeros((N_LINES, width), dtype=np.uint8)
    return History(np.zeros((N_LINES, len(HISTORY_COLUMNS))), path, counters, np.zeros(1))


def room_for_steps(history: History) -> int:
    """Count the steps that can be recorded; when the history is full, drop every other line and double the stride first.

    Examples
    --------
    >>> room_for_steps(new_history(10))
    256
    """
    counters, half = history.counters, N_LINES // 2
    if counters[HistorySlot.LINES] == N_LINES:
        for array in (history.lines, history.path):
            array[:half] = array[1::2]
            array[half:] = 0
        counters[HistorySlot.LINES] = half
        counters[HistorySlot.STRIDE] *= 2
    return int((N_LINES - counters[HistorySlot.LINES]) * counters[HistorySlot.STRIDE])


def is_line_due(history: History, step: int, forced: bool) -> bool:
    """Check whether ``step`` gets a line, and make room for it.

    Examples
    --------
    >>> is_line_due(new_history(10), 1, False)
    True
    """
    counters = history.counters
    if step % counters[HistorySlot.STRIDE] == 0 or forced:
        room_for_steps(history)
    return bool(step % counters[HistorySlot.STRIDE] == 0 or forced)


@njit(**IN_PLACE)
def write_line(history, step, phase, n_alive, gamma_sum, alpha, gamma, column):
    """Write a line: the mean loss since the last one, and the path of ``gamma``, whose entries are the columns ``column``."""
    counters, lines, path = history.counters, history.lines, history.path
    r = counters[HistorySlot.LINES]
    lines[r, 0] = step
    lines[r, 1] = phase
    lines[r, 2] = history.loss_sum[0] / counters[HistorySlot.SINCE]
    lines[r, 3] = n_alive
    lines[r, 4] = gamma_sum
    lines[r, 5] = alpha
    if path.shape[1] > 0:
        for j in range(gamma.shape[0]):
            path[r, column[j]] = np.uint8(gamma[j] * 255.0 + 0.5)
    counters[HistorySlot.LINES] += 1
    counters[HistorySlot.SINCE] = 0
    history.loss_sum[0] = 0.0


@register_jitable(**INLINED)
def record_step(history, step, phase, n_alive, alpha, gamma, column):
    """Count a step and, if a line is due, write it; a full history gets none (see :func:`room_for_steps`)."""
    counters = history.counters
    counters[HistorySlot.SINCE] += 1
    if step % counters[HistorySlot.STRIDE] != 0 or counters[HistorySlot.LINES] == history.lines.shape[0]:
        return
    total = 0.0
    for j in range(gamma.shape[0]):
        total += gamma[j]  # the eliminated stand at zero
    write_line(history, step, phase, n_alive, total, alpha, gamma, column)


def history_to_dict(history: History, ranking: np.ndarray, n_features_to_select: int) -> dict[str, np.ndarray]:
    """Lines by column name and, of the paths of gamma, those of the best features.

    Examples
    --------
    >>> sorted(history_to_dict(new_history(2), np.array([1, 2]), 1))[:3]
    ['alpha', 'gamma_path', 'gamma_path_features']
    """
    n = int(history.counters[HistorySlot.LINES])
    found = {name: history.lines[:n, i].copy() for i, name in enumerate(HISTORY_COLUMNS)}
    if history.path.shape[1]:
        n_kept = max(PATHS_KEPT, min(2 * n_features_to_select, 2 * PATHS_KEPT))
        best = np.argsort(ranking, kind="stable")[:n_kept]
        found["gamma_path_features"] = best
        found["gamma_path"] = (history.path[:n][:, best] / np.float32(255)).astype(np.float32)
    return found
