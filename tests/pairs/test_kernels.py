"""Compiled pieces of the search, beside NumPy."""

import heapq

import numpy as np
from scipy import stats

from tamiz.pairs.kernels import push, transform_tables, weighted_leverages


def test_the_transform_makes_chi_square_normal():
    offset, slope = transform_tables(16)
    for freedom in (1, 4, 16):
        for tail in (0.05, 0.001):
            quantile = stats.chi2.isf(tail, freedom)
            z = ((quantile / freedom) ** (1 / 3) - offset[freedom]) * slope[freedom]
            assert abs(z - stats.norm.isf(tail)) < 0.12


def test_a_heap_keeps_the_largest():
    random = np.random.default_rng(0)
    values = random.permutation(50).astype(np.float32)
    heap = np.full(7, -1.0, dtype=np.float32)
    i, j = np.zeros(7, dtype=np.int64), np.zeros(7, dtype=np.int64)
    for place, value in enumerate(values):
        if value > heap[0]:
            push(heap, i, j, value, place, place + 1)
    assert sorted(heap.tolist()) == sorted(heapq.nlargest(7, values.tolist()))
    np.testing.assert_array_equal(values[i], heap)
    np.testing.assert_array_equal(j, i + 1)


def test_leverages_are_those_of_the_projection():
    random = np.random.default_rng(0)
    white = np.stack([np.linalg.qr(random.normal(size=(30, 3)))[0].T for _ in range(2)]).astype(np.float32)
    weights = random.random(30).astype(np.float32)
    out = np.zeros(2)
    weighted_leverages(white, weights, out)
    wanted = [(np.diag(one.T @ one) ** 2 * weights).sum() for one in white]
    np.testing.assert_allclose(out, wanted, rtol=1e-4)
