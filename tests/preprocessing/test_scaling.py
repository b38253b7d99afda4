from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from scipy.special import erf

from tamiz.rows import kernels as _kernels
from tamiz.rows.exact import normalize_exact
from tamiz.rows.scaling import (
    CHUNK,
    ColumnStatistics,
    apply_normalization,
    column_statistics,
    normalize_dense,
    normalize_sparse,
    prepare_table,
)


def by_hand(X, kind="erf"):
    X = np.asarray(X, dtype=np.float64)
    deviation = X.std(axis=0, ddof=1)
    z = np.where(deviation > 0, (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1), 0)
    return {"erf": erf(z / np.sqrt(2)), "erf2": erf(z / 2), "standard": z}[kind]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["erf", "erf2", "standard"])
@pytest.mark.parametrize("shape", [(300, 17), (7, 100), (2, 1)])
def test_dense_tables_of_any_order_agree_with_the_formula(order, dtype, kind, shape):
    X = np.asarray(np.random.default_rng(0).normal(3, 2, size=shape), dtype=dtype, order=order)
    before = X.copy()
    out = normalize_dense(X, column_statistics(X), kind)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_allclose(out, by_hand(X, kind), atol=2e-6)
    np.testing.assert_array_equal(X, before)


def test_a_view_with_strides_is_taken():
    X = np.random.default_rng(0).normal(size=(40, 20))[::2, ::3]
    np.testing.assert_allclose(normalize_dense(X, column_statistics(X), "erf"), by_hand(X), atol=1e-6)


@pytest.mark.parametrize("scale", [1e300, 1e30, 1e-30, 1e-300])
def test_scales_of_any_size_give_the_same(scale):
    X = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(normalize_dense(X * scale, column_statistics(X * scale), "erf"), by_hand(X), atol=1e-6)


def test_a_large_mean_does_not_drown_the_deviation():
    X = 1e8 + np.random.default_rng(0).normal(size=(200, 2))
    np.testing.assert_allclose(column_statistics(X).deviation, X.std(axis=0, ddof=1), rtol=1e-6)


def test_numbers_close_to_the_largest_do_not_overflow():
    X = np.array([[5e307], [-5e307], [0.0]])
    assert normalize_dense(X, column_statistics(X), "erf").ravel().round(4).tolist() == pytest.approx(
        [0.6827, -0.6827, 0.0]
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 1e-320])
def test_constant_columns_are_zero_whatever_comes_later(value):
    X = np.full((9, 2), value)
    X[:, 1] = np.arange(9)
    statistics = column_statistics(X)
    assert statistics.deviation[0] == 0
    later = np.array([[1.7e308, 4.0], [-1.7e308, 4.0]])
    np.testing.assert_array_equal(normalize_dense(later, statistics, "erf"), np.zeros((2, 2)))


@pytest.mark.parametrize("kind", ["erf", "erf2", "standard"])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_tables_are_the_centred_dense_ones(kind, make, dtype):
    X = sp.random(60, 25, density=0.2, random_state=0).toarray().astype(dtype)
    X[:, 4] = 2.5  # constant and full
    sparse = make(X)
    before = sparse.copy()
    table, offset = normalize_sparse(sparse, column_statistics(sparse), kind)
    np.testing.assert_allclose(table.toarray() + offset, by_hand(X, kind), atol=3e-6)
    assert table.nnz == sparse.nnz
    assert abs(sparse - before).nnz == 0
    assert not np.shares_memory(table.indices, sparse.indices)


def test_entries_stored_twice_are_added():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    table = prepare_table(X, "standard")
    np.testing.assert_allclose(table.dense(), by_hand([[3.0, 0.0], [0.0, 5.0]], "standard"), atol=1e-6)
    assert X.nnz == 3  # the caller's matrix is as it was


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_second_copy_of_the_table_is_held(order):
    X = np.asarray(np.random.default_rng(0).normal(size=(2000, 500)), order=order)
    prepare_table(X[:10], "erf")  # compiled before memory is watched
    tracemalloc.start()
    prepare_table(X, "erf")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * X.size * 4


def test_without_normalisation_float32_rows_are_used_in_place():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    table = prepare_table(X, None)
    assert np.shares_memory(table.values, X)
    assert not table.owned


def test_without_normalisation_constant_columns_say_nothing_and_the_table_stays():
    X = np.array([[1.0, 2.0], [1.0, 3.0]], dtype=np.float32)
    table = prepare_table(X, None)
    assert table.values.tolist() == [[0.0, 2.0], [0.0, 3.0]]
    assert X[0, 0] == 1.0
    assert prepare_table(sp.csr_matrix(X), None).dense().tolist() == [[0.0, 2.0], [0.0, 3.0]]


def test_without_normalisation_numbers_beyond_float32_are_refused():
    with pytest.raises(ValueError, match=r"beyond the range of float32.*normalize='erf'"):
        prepare_table(np.array([[1e39], [0.0]]), None)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_weighted_statistics_follow_the_formula(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)) * (rng.random((30, 5)) > 0.4)
    weights = rng.uniform(0.1, 3, size=30)
    table = sp.csr_matrix(X) if layout == "csr" else np.array(X, order=layout)
    statistics = column_statistics(table, weights)
    mean = np.average(X, axis=0, weights=weights)
    variance = np.average((X - mean) ** 2, axis=0, weights=weights) * 30 / 29
    np.testing.assert_allclose(statistics.mean, mean, atol=1e-12)
    np.testing.assert_allclose(statistics.deviation, np.sqrt(variance), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_statistics_of_a_few_sparse_columns_come_later_and_are_the_same(layout, weighted):
    rng = np.random.default_rng(0)
    dense = sp.random(50, 40, density=0.3, random_state=rng).toarray()
    dense[:, 7] = 2.5  # constant, no empty cell
    X = sp.csr_matrix(dense)
    weights = rng.random(50) if weighted else None
    everything, columns = column_statistics(X, weights), np.array([2, 7, 31])
    later = prepare_table(layout(X), "erf", weights).statistics.of(columns)
    np.testing.assert_array_equal(later.mean, everything.mean[columns])
    np.testing.assert_array_equal(later.deviation, everything.deviation[columns])


def test_offsets_of_more_columns_than_are_done_at_once():
    X = sp.random(6, 2 * CHUNK + 5, density=1e-3, format="csr", random_state=0, dtype=np.float32)
    statistics = column_statistics(X)
    _, offset = normalize_sparse(X, statistics, "standard")
    scale = np.where(statistics.deviation > 0, statistics.deviation, np.inf)
    np.testing.assert_allclose(offset, -statistics.mean / scale, rtol=1e-6)
    assert offset[-5 - CHUNK :].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_of_the_memory_does_not_matter(dtype):
    X = np.random.default_rng(0).normal(size=(3000, 150)).astype(dtype)
    rows, columns = prepare_table(X, "erf"), prepare_table(np.asfortranarray(X), "erf")
    np.testing.assert_array_equal(rows.values, columns.values)
    np.testing.assert_array_equal(rows.statistics.deviation, columns.statistics.deviation)


@pytest.mark.parametrize("kind", ["erf", "erf2", "standard"])
def test_the_compiled_normalisation_is_the_exact_one(kind):
    X = np.random.default_rng(0).normal(2, 3, size=(50, 6))
    X[:, 2] = 4.0
    statistics = column_statistics(X)
    exact = normalize_exact(X, statistics.mean, statistics.deviation, kind)
    np.testing.assert_allclose(normalize_dense(X, statistics, kind), exact, atol=1e-6)
    np.testing.assert_array_equal(normalize_exact(X, statistics.mean, statistics.deviation, None), X)


def test_sparse_rows_longer_and_shorter_than_a_chunk():
    dense = np.random.default_rng(0).normal(size=(4, CHUNK // 2 + 11))
    dense[1] = 0.0
    dense[3, ::2] = 0.0
    weights = np.array([0.5, 1.0, 2.0, 0.5])
    sparse, full = column_statistics(sp.csr_matrix(dense), weights), column_statistics(dense, weights)
    np.testing.assert_allclose(sparse.mean, full.mean, atol=1e-13)
    np.testing.assert_allclose(sparse.deviation, full.deviation, atol=1e-13)


def test_each_kernel_is_compiled_once_whatever_the_table():
    """Read-only arrays are what joblib hands to its workers."""
    X = np.random.default_rng(0).normal(size=(30, 5)) + 5.0
    for dtype in (np.float32, np.float64):
        for order in "CF":
            table = np.array(X, dtype=dtype, order=order)
            for writeable in (True, False):
                table.flags.writeable = writeable
                prepare_table(table, "erf")
                apply_normalization(table, ColumnStatistics(table.mean(axis=0), table.std(axis=0)), "standard")
        for make in (sp.csr_matrix, sp.csc_matrix):
            sparse = make(X.astype(dtype))
            for part in (sparse.data, sparse.indices, sparse.indptr):
                part.flags.writeable = False
            prepare_table(sparse, "erf")
            sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
            prepare_table(sparse, "erf")
    kernels = [kernel for kernel in vars(_kernels).values() if isinstance(kernel, Dispatcher)]
    kernels.remove(_kernels.column_moments)  # reads blocks of any type and order
    assert len(kernels) == 8
    assert {kernel.py_func.__name__: len(kernel.signatures) for kernel in kernels if len(kernel.signatures) > 1} == {}
