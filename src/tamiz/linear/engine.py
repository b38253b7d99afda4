"""The compiled training loop: a linear model and its mask, one pass forward, one backward, one fused update a step.

With the mask folded into the weights (``v = gamma * w``) the gradient of ``w`` is ``gamma * g`` and that of gamma is
``w * g`` for the same ``g = X^T d``, so no gradient with respect to the input is ever formed. The loop runs in pieces:
Python looks in between for an interrupt, for progress, and for dead columns to drop.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamiz.linear.gamma import (
    AGE,
    CLOSED,
    NOT_FINITE,
    OPEN,
    STEP,
    Drive,
    adam,
    adam_constants,
    mixture,
    settle,
)
from tamiz.linear.losses import evaluate
from tamiz.linear.matrix import FAST, scores_of, slopes_of
from tamiz.linear.state import (
    CLOSED_AT,
    CLOSING_PHASE,
    COMPACT,
    DIVERGED,
    DONE,
    HARD,
    POSITION,
    RECORDS,
    REFINED,
    REFINEMENT_PHASE,
    RUNNING,
    SELECTION_PHASE,
    SINCE,
    SOFT,
    STRIDE,
    WARMUP_PHASE,
    WEIGHT_AGE,
    WIDTH,
)


@njit(cache=True, nogil=True)
def next_random(state):
    """SplitMix64: a small generator of our own, so that a seed means the same on every machine and thread."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def shuffle(rows, state):
    """Fisher and Yates; the bias of the remainder is below 1e-9 for any number of rows that fits in memory."""
    for i in range(rows.shape[0] - 1, 0, -1):
        j = np.int64(next_random(state) % np.uint64(i + 1))
        rows[i], rows[j] = rows[j], rows[i]


@njit(cache=True, nogil=True)
def aim_of(plan, since, n_open):
    """``tamiz.core.target``."""
    if n_open == 0 or plan.variant == HARD:
        return float(plan.m)
    if plan.variant == SOFT:
        rho = min(1.0, plan.rho + (1.0 - plan.rho) * max(0.0, since / plan.ramp_steps - 1.0))
        return (1.0 - rho) * plan.m
    return float(plan.n_features) ** max(0.0, 1.0 - 4.0 * since / plan.ramp_steps)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _pull_of(weights, gradient, pull):
    """Gradient by gamma: w * g, added over the outputs."""
    outputs, width = weights.shape
    for j in range(width):
        pull[j] = weights[0, j] * gradient[0, j]
    for c in range(1, outputs):
        for j in range(width):
            pull[j] += weights[c, j] * gradient[c, j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _update_weights(w, g, first, second, gamma, constants, l2):
    """Adam on one row of weights."""
    for j in range(w.shape[0]):
        slope = gamma[j] * g[j] + l2 * w[j]
        first[j], second[j], step = adam(first[j], second[j], slope, True, constants)
        w[j] = w[j] - step


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _fold(w, v, gamma):
    for j in range(w.shape[0]):
        v[j] = max(gamma[j], np.float32(0.0)) * w[j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _update_with_gamma(w, v, g, first, second, gamma, gamma_first, gamma_second, rank, constants, l2, counters, drive):
    """The fused update of one row of weights, gamma and all their moments; returns how many gamma fell to zero.

    ``v`` comes in as the gradient of the loss by gamma and goes out as gamma * w.
    """
    of_loss, of_penalty, lift, finite = mixture(gamma, rank, v, drive)
    if not finite:
        return NOT_FINITE
    counters[AGE] += 1
    mask = adam_constants(drive.learning_rate, drive.beta1, drive.beta2, drive.epsilon, counters[AGE])
    one, two, zero = np.float32(1.0), np.float32(2.0), np.float32(0.0)
    m = np.int32(drive.m)
    n_low = 0
    for j in range(w.shape[0]):
        alive = rank[j] <= m
        old = gamma[j]
        first[j], second[j], step = adam(first[j], second[j], old * g[j] + l2 * w[j], alive, constants)
        w[j] = w[j] - step
        mixed = of_loss * v[j] + of_penalty * (lift - two * old)
        gamma_first[j], gamma_second[j], step = adam(gamma_first[j], gamma_second[j], mixed, alive, mask)
        value = old - step
        new = min(value, one) if alive else zero
        gamma[j] = new
        v[j] = max(new, zero) * w[j]
        n_low += 1 if alive and value <= zero else 0
    return n_low


@njit(cache=True, nogil=True)
def _thin(history, path, half):
    """Keep every other line."""
    for r in range(half):
        for i in range(history.shape[1]):
            history[r, i] = history[2 * r + 1, i]
        for i in range(path.shape[1]):
            path[r, i] = path[2 * r + 1, i]


@njit(cache=True, nogil=True)
def _record(history, path, counters, tally, gamma, rank, column, m, phase, weight):
    """Add a line to the history; when it is full, every other line goes and the stride doubles."""
    counters[SINCE] += 1
    if counters[STEP] % counters[STRIDE] != 0:
        return
    if counters[RECORDS] == history.shape[0]:
        counters[RECORDS] = history.shape[0] // 2
        _thin(history, path, counters[RECORDS])
        counters[STRIDE] *= 2
        if counters[STEP] % counters[STRIDE] != 0:
            return
    r = counters[RECORDS]
    total = 0.0
    n_alive = 0
    for j in range(gamma.shape[0]):
        if rank[j] <= m:
            total += gamma[j]
            n_alive += 1
    history[r, 0] = counters[STEP]
    history[r, 1] = phase
    history[r, 2] = tally[0] / counters[SINCE]
    history[r, 3] = n_alive
    history[r, 4] = total
    history[r, 5] = weight
    if path.shape[1] > 0:
        for j in range(path.shape[1]):
            path[r, j] = 0
        for j in range(gamma.shape[0]):
            path[r, column[j]] = np.uint8(gamma[j] * 255.0 + 0.5)
    counters[RECORDS] += 1
    tally[0] = 0.0
    counters[SINCE] = 0


@njit(cache=True, nogil=True)
def _batch(rows, counters, random, batch_size, targets, weights, batch_targets, batch_weights):
    """The rows of the next batch; a new order when the epoch is over. The last batch of an epoch may be smaller."""
    n = rows.shape[0]
    if counters[POSITION] >= n:
        shuffle(rows, random)
        counters[POSITION] = 0
    begin = counters[POSITION]
    end = min(n, begin + batch_size)
    counters[POSITION] = end
    # Entry by entry: the compiler takes four seconds longer over the assignment of a row.
    for i in range(begin, end):
        for c in range(targets.shape[1]):
            batch_targets[i - begin, c] = targets[rows[i], c]
        batch_weights[i - begin] = weights[rows[i]]
    return rows[begin:end]


@njit(cache=True, nogil=True)
def _update_intercept(intercept, slope, constants):
    for c in range(intercept.shape[1]):
        total = np.float32(0.0)
        for i in range(slope.shape[0]):
            total += slope[i, c]
        intercept[1, c], intercept[2, c], step = adam(intercept[1, c], intercept[2, c], total, True, constants)
        intercept[0, c] -= step


@njit(cache=True, nogil=True)
def _refinement_rate(plan, refined):
    """The paper's: a third of the steps each at the full rate, a fifth of it, a fifth of that."""
    third = 3 * refined // max(1, plan.refinement_steps)
    return plan.learning_rate / 5.0 ** min(third, 2)


@njit(cache=True, nogil=True)
def run(matrix, targets, sample_weights, memory, plan, n_steps):
    """Train for at most ``n_steps`` steps. Returns RUNNING, COMPACT (many dead columns: drop them), DONE or DIVERGED."""
    counters = memory.counters
    k = counters[WIDTH]
    gamma, rank = memory.gamma[:k], memory.rank[:k]
    weights, folded, gradient = memory.weights[:, :k], memory.folded[:, :k], memory.gradient[:, :k]
    gamma_first, gamma_second, order = memory.gamma_first[:k], memory.gamma_second[:k], memory.order[:k]
    # Rows are cut as ``memory.weights[c][:k]``, not ``memory.weights[:, :k][c]``: only of the former does the compiler know
    # that the entries lie side by side, and the update is quicker.
    pull = memory.folded[0][:k]
    outputs = weights.shape[0]
    for _ in range(n_steps):
        counters[STEP] += 1
        rows = _batch(
            memory.rows, counters, memory.random, plan.batch_size, targets, sample_weights,
            memory.batch_targets, memory.batch_weights,
        )  # fmt: skip
        size = rows.shape[0]
        scores, slope = memory.scores[:size], memory.slope[:size]
        scores_of(matrix, rows, folded, memory.intercept[0], scores)
        loss = evaluate(plan.loss, scores, memory.batch_targets[:size], memory.batch_weights[:size], slope)
        if not np.isfinite(loss):
            return DIVERGED
        memory.tally[0] += loss
        slopes_of(matrix, rows, slope, gradient)

        refining = counters[CLOSED] == 1 and counters[STEP] > plan.warmup_steps
        rate, l2 = plan.learning_rate, plan.l2
        if refining:
            rate, l2 = _refinement_rate(plan, counters[REFINED]), plan.refinement_l2
            counters[REFINED] += 1
        counters[WEIGHT_AGE] += 1
        constants = adam_constants(rate, 0.9, 0.999, 1e-7, counters[WEIGHT_AGE])
        decay = np.float32(2.0 * l2)
        if plan.fit_intercept:
            _update_intercept(memory.intercept, slope, constants)

        since = counters[STEP] - plan.warmup_steps
        moving = since > 0 and not refining
        selecting = moving and counters[OPEN] > 0
        weight = min(1.0, max(0, since) / plan.ramp_steps) if counters[OPEN] > 0 else 1.0
        if moving:
            _pull_of(weights, gradient, pull)
        for c in range(1 if moving else 0, outputs):
            _update_weights(
                memory.weights[c][:k], memory.gradient[c][:k], memory.weights_first[c][:k],
                memory.weights_second[c][:k], gamma, constants, decay,
            )  # fmt: skip
        if not moving:
            for c in range(outputs):
                _fold(memory.weights[c][:k], memory.folded[c][:k], gamma)
            phase = REFINEMENT_PHASE if refining else WARMUP_PHASE
            _record(
                memory.history, memory.path, counters, memory.tally, gamma, rank, memory.column, plan.m, phase, weight
            )
            if refining and counters[REFINED] >= plan.refinement_steps:
                return DONE
            continue

        drive = Drive(
            weight,
            aim_of(plan, since, counters[OPEN]),
            plan.mu,
            plan.beta,
            plan.mask_learning_rate,
            plan.mask_beta1,
            plan.mask_beta2,
            plan.mask_epsilon,
            plan.m,
            since >= plan.max_steps,
        )
        n_low = _update_with_gamma(
            memory.weights[0][:k], pull, memory.gradient[0][:k], memory.weights_first[0][:k],
            memory.weights_second[0][:k], gamma, gamma_first, gamma_second, rank, constants, decay, counters, drive,
        )  # fmt: skip
        if n_low == NOT_FINITE:
            return DIVERGED
        settle(gamma, gamma_first, gamma_second, rank, pull, order, counters, drive, n_low)
        # The step that ends the selection sorts with the first row as scratch, which is then folded anew.
        for c in range(0 if selecting and counters[OPEN] == 0 else 1, outputs):
            _fold(memory.weights[c][:k], memory.folded[c][:k], gamma)
        phase = SELECTION_PHASE if selecting else CLOSING_PHASE
        _record(memory.history, memory.path, counters, memory.tally, gamma, rank, memory.column, plan.m, phase, weight)
        if counters[CLOSED] == 1:
            counters[CLOSED_AT] = counters[STEP]
            return COMPACT if plan.refinement_steps > 0 else DONE
        n_alive = counters[OPEN] if counters[OPEN] > 0 else plan.m
        if n_alive < k - k // 8 or (n_alive < k and counters[OPEN] == 0):
            return COMPACT
    return RUNNING


@njit(cache=True, nogil=True)
def compact_vectors(memory, m):
    """Move the living columns to the front of every vector; the numbers of the dead go behind them, by rank.

    Returns the new width; the front of ``order`` then holds the old place of each column that stays.
    """
    k = memory.counters[WIDTH]
    outputs = memory.weights.shape[0]
    free = 0
    for j in range(k):
        if memory.rank[j] > m:
            # The dead of a working set of k columns hold the ranks from k down to one more than are left.
            memory.order[memory.rank[j] - 1] = memory.column[j]
            continue
        memory.order[free] = j
        memory.column[free] = memory.column[j]
        memory.rank[free] = memory.rank[j]
        memory.gamma[free] = memory.gamma[j]
        memory.gamma_first[free] = memory.gamma_first[j]
        memory.gamma_second[free] = memory.gamma_second[j]
        for c in range(outputs):
            memory.weights[c, free] = memory.weights[c, j]
            memory.folded[c, free] = memory.folded[c, j]
            memory.weights_first[c, free] = memory.weights_first[c, j]
            memory.weights_second[c, free] = memory.weights_second[c, j]
        free += 1
    for j in range(free, k):
        memory.column[j] = memory.order[j]
    memory.counters[WIDTH] = free
    return free


@njit(cache=True, nogil=True)
def final_ranking(column, rank):
    """Ranks by original number: ``rank`` those of the columns that were kept, the place of all others is their rank."""
    ranking = np.empty(column.shape[0], dtype=np.int64)
    m = rank.shape[0]
    for j in range(column.shape[0]):
        ranking[column[j]] = rank[j] if j < m else j + 1
    return ranking
