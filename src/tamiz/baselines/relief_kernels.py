"""Compiled loops of ReliefF: Manhattan distances block by block, neighbours by class, weights."""

from __future__ import annotations

import numpy as np
from numba import njit

# Rows of a block are compared with every other row while that row is in the cache.
_ROWS_AT_A_TIME = 16
_REORDER = {"reassoc", "contract", "nsz"}  # lets the compiler sum in vector lanes; NaN keeps its meaning


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _manhattan(a, b):
    total = a[0] - a[0]
    for f in range(a.size):
        total += abs(a[f] - b[f])
    return total


@njit(cache=True, nogil=True)
def distance_block(X, first, last, out):
    """Write the distances of rows first .. last-1 to all rows into ``out``."""
    for top in range(first, last, _ROWS_AT_A_TIME):
        bottom = min(top + _ROWS_AT_A_TIME, last)
        for j in range(X.shape[0]):
            for i in range(top, bottom):
                out[i - first, j] = _manhattan(X[i], X[j])


@njit(cache=True, nogil=True)
def _expected_difference(value, ordered, sums, start, end, f):
    """Return the mean of |value - v| over the known values v of a class, which are sorted, with running sums."""
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if ordered[middle, f] <= value:
            low = middle + 1
        else:
            high = middle
    below, total = sums[low, f] - sums[start, f], sums[end, f] - sums[start, f]
    return (value * (low - start) - below + (total - below) - value * (end - low)) / (end - start)


@njit(cache=True, nogil=True)
def difference(X, i, j, f, codes, starts, ends, ordered, sums, both_missing):
    """Return |x_if - x_jf|, or its expectation under the class of the row whose value is missing."""
    a, b = X[i, f], X[j, f]
    if not np.isnan(a) and not np.isnan(b):
        return abs(a - b)
    if np.isnan(a) and np.isnan(b):
        return both_missing[codes[i], codes[j], f]
    if np.isnan(a):
        return _expected_difference(b, ordered, sums, starts[codes[i], f], ends[codes[i], f], f)
    return _expected_difference(a, ordered, sums, starts[codes[j], f], ends[codes[j], f], f)


@njit(cache=True, nogil=True)
def distance_block_missing(X, first, last, out, codes, known):
    """Write the same where some entries are NaN; ``known`` holds the tables for missing values."""
    starts, ends, ordered, sums, both_missing = known
    for i in range(first, last):
        for j in range(X.shape[0]):
            total = 0.0
            for f in range(X.shape[1]):
                total += difference(X, i, j, f, codes, starts, ends, ordered, sums, both_missing)
            out[i - first, j] = total


@njit(cache=True, nogil=True)
def nearest_by_class(distances, anchor, codes, k, neighbours, nearness, counts):
    """Find the k nearest rows of every class to the anchor, itself left out; of equal distances the earlier row."""
    counts[:] = 0
    for j in range(distances.size):
        if j == anchor:
            continue
        c, distance = codes[j], distances[j]
        place = counts[c]
        if place == k:
            if distance >= nearness[c, k - 1]:
                continue
            place = k - 1
        else:
            counts[c] += 1
        while place > 0 and nearness[c, place - 1] > distance:
            nearness[c, place] = nearness[c, place - 1]
            neighbours[c, place] = neighbours[c, place - 1]
            place -= 1
        nearness[c, place] = distance
        neighbours[c, place] = j


@njit(cache=True, nogil=True)
def _add_differences(weights, X, i, j, factor, codes, known, missing):
    if missing:
        starts, ends, ordered, sums, both_missing = known
        for f in range(X.shape[1]):
            weights[f] += factor * difference(X, i, j, f, codes, starts, ends, ordered, sums, both_missing)
    else:
        a, b = X[i], X[j]
        for f in range(a.size):
            weights[f] += factor * abs(a[f] - b[f])


@njit(cache=True, nogil=True)
def classification_block(X, codes, priors, k, first, distances, known, missing, weights):
    """Add the weights of the anchors of a block: distant misses count for a feature, distant hits against it."""
    n_classes = priors.size
    neighbours = np.empty((n_classes, k), dtype=np.int64)
    nearness = np.empty((n_classes, k), dtype=distances.dtype)
    counts = np.empty(n_classes, dtype=np.int64)
    for row in range(distances.shape[0]):
        i = first + row
        nearest_by_class(distances[row], i, codes, k, neighbours, nearness, counts)
        own = codes[i]
        for c in range(n_classes):
            if counts[c] == 0:
                continue
            factor = -1.0 if c == own else priors[c] / (1.0 - priors[own])
            for n in range(counts[c]):
                _add_differences(weights, X, i, neighbours[c, n], factor / counts[c], codes, known, missing)


@njit(cache=True, nogil=True)
def regression_block(X, y, k, first, distances, known, missing, difference_sum, joint_sum):
    """Add a block of anchors to the sums of RReliefF; return the block's sum of target differences."""
    n_rows = X.shape[0]
    codes = np.zeros(n_rows, dtype=np.int64)
    neighbours = np.empty((1, k), dtype=np.int64)
    nearness = np.empty((1, k), dtype=distances.dtype)
    counts = np.empty(1, dtype=np.int64)
    target_sum = 0.0
    for row in range(distances.shape[0]):
        i = first + row
        nearest_by_class(distances[row], i, codes, k, neighbours, nearness, counts)
        for n in range(counts[0]):
            j = neighbours[0, n]
            target = abs(y[i] - y[j])
            share = 1.0 / counts[0]
            target_sum += share * target
            _add_differences(difference_sum, X, i, j, share, codes, known, missing)
            _add_differences(joint_sum, X, i, j, share * target, codes, known, missing)
    return target_sum
