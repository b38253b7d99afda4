"""Normalisation and missing values: every kind, type, order and scale against the formula in float64."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from scipy.special import erf
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import ErfScaler
from tamiz.rows import kernels as _kernels
from tamiz.rows.exact import DEVIATIONS, FARTHEST, WITH_ERF, normalize_exact
from tamiz.rows.scaling import (
    CHUNK,
    ColumnStatistics,
    apply_normalization,
    column_statistics,
    learn_missing,
    normalize_dense,
    normalize_sparse,
    prepare_table,
)

X = np.random.default_rng(0).normal(3, 2, size=(300, 17))


def by_hand(X, kind="erf", mean=True):
    X = np.asarray(X, dtype=np.float64)
    deviation = X.std(axis=0, ddof=1)
    z = np.where(deviation > 0, (X - mean * X.mean(axis=0)) / np.where(deviation > 0, deviation, 1), 0)
    return {"erf": erf(z / np.sqrt(2)), "erf2": erf(z / 2), "standard": z}[kind]


@pytest.mark.parametrize("kind", DEVIATIONS)
def test_the_exact_normalisation_is_its_formula_and_stays_finite(kind):
    z = (3.5 - 1.25) / 0.75
    wanted = {"standard": z, "erf": math.erf(z / math.sqrt(2)), "erf2": math.erf(z / 2)}[kind]
    found = normalize_exact(np.array([[3.5]], dtype=np.float32), 1.25, 0.75, kind)
    assert found.dtype == np.float64
    assert found[0, 0] == pytest.approx(wanted, rel=1e-15)
    far = normalize_exact(
        np.array([[1.0, 1e308], [-1e308, 5.0]]), np.array([1.0, -1e308]), np.array([0.0, 1e-300]), kind
    )
    assert np.isfinite(far).all()
    assert np.abs(far).max() <= (1.0 if kind in WITH_ERF else FARTHEST)
    assert far[0, 0] == 0.0
    plain = normalize_exact(np.array([[1, 2]]), None, None, None)
    assert (plain.dtype, plain.tolist()) == (np.float64, [[1.0, 2.0]])


@pytest.mark.parametrize("kind", DEVIATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_tables_of_any_order_agree_with_the_formula(dtype, kind):
    for table in (X, X[:7], X[:2, :1], X[::2, ::3], np.random.default_rng(0).normal(size=(3000, 150))):
        results = []
        for order in "CF":
            given = np.array(table, dtype=dtype, order=order)
            before = given.copy()
            out = normalize_dense(given, column_statistics(given), kind)
            assert out.dtype == np.float32
            assert out.flags.c_contiguous
            np.testing.assert_allclose(out, by_hand(given, kind), atol=2e-6)
            np.testing.assert_array_equal(given, before)
            results.append(out)
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("scale", [1e300, 1e30, 1e-30, 1e-300])
def test_scales_of_any_size_give_the_same(scale):
    for table in (X * scale, sp.csr_matrix(X * scale)):
        found = prepare_table(table, "erf")
        np.testing.assert_allclose(found.dense(), by_hand(X), atol=1e-6)
    np.testing.assert_allclose(ErfScaler().fit_transform(X * scale), by_hand(X), atol=1e-12)


def test_large_means_and_numbers_next_to_the_largest():
    table = 1e8 + X[:, :2]
    np.testing.assert_allclose(column_statistics(table).deviation, table.std(axis=0, ddof=1), rtol=1e-6)
    wide = np.array([[5e307], [-5e307], [0.0]])
    assert normalize_dense(wide, column_statistics(wide), "erf").ravel() == pytest.approx(
        [0.6827, -0.6827, 0], abs=1e-4
    )
    scaler = ErfScaler().fit(np.array([[-1.7e308, 3.0], [-1.6e308, 3.0]]))
    assert scaler.transform(np.array([[1.7e308, -1.7e308]])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 1e-320])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_are_zero_whatever_comes_later(value, make):
    table = np.full((9, 2), value)
    table[:, 1] = np.arange(9)
    statistics = column_statistics(make(table))
    assert statistics.deviation[0] == 0
    later = np.array([[1.7e308, 4.0], [-1.7e308, 4.0]])
    np.testing.assert_array_equal(normalize_dense(later, statistics, "erf"), np.zeros((2, 2)))


@pytest.mark.parametrize("kind", DEVIATIONS)
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_sparse_tables_are_the_centred_dense_ones(kind, make):
    for dtype in (np.float32, np.float64):
        dense = sp.random(60, 25, density=0.2, random_state=0).toarray().astype(dtype)
        dense[:, 4] = 2.5  # constant and full
        sparse = make(dense)
        before = sparse.copy()
        table, offset = normalize_sparse(sparse, column_statistics(sparse), kind)
        np.testing.assert_allclose(table.toarray() + offset, by_hand(dense, kind), atol=3e-6)
        assert table.nnz == sparse.nnz
        assert abs(sparse - before).nnz == 0
        assert not np.shares_memory(table.indices, sparse.indices)


def test_rows_may_be_longer_than_a_chunk():
    long = sp.random(4, 2 * CHUNK + 5, density=0.3, format="csr", random_state=0, dtype=np.float32)
    np.testing.assert_allclose(prepare_table(long, "standard").dense(), by_hand(long.toarray(), "standard"), atol=2e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_second_copy_of_the_table_is_held(order):
    table = np.asarray(np.random.default_rng(0).normal(size=(2000, 500)), order=order)
    prepare_table(table[:10], "erf")  # compiled before memory is watched
    tracemalloc.start()
    prepare_table(table, "erf")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * table.size * 4


def test_without_normalisation_only_constant_columns_change():
    table = X.astype(np.float32)
    found = prepare_table(table, None)
    assert np.shares_memory(found.values, table)
    assert not found.owned
    table = np.array([[1.0, 2.0], [1.0, 3.0]], dtype=np.float32)
    for given in (table, sp.csr_matrix(table)):
        assert prepare_table(given, None).dense().tolist() == [[0.0, 2.0], [0.0, 3.0]]
    assert table[0, 0] == 1.0
    with pytest.raises(ValueError, match=r"beyond the range of float32.*normalize='erf'"):
        prepare_table(np.array([[1e39], [0.0]]), None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_weighted_statistics_follow_the_formula_for_all_columns_and_for_some(layout, weighted):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 40)) * (rng.random((30, 40)) > 0.4)
    table[:, 7] = 2.5
    weights = rng.uniform(0.1, 3, size=30) if weighted else np.ones(30)
    statistics = column_statistics(layout(table), weights)
    mean = np.average(table, axis=0, weights=weights)
    variance = np.average((table - mean) ** 2, axis=0, weights=weights) * 30 / 29
    np.testing.assert_allclose(statistics.mean, mean, atol=1e-12)
    np.testing.assert_allclose(statistics.deviation, np.sqrt(variance), atol=1e-12)
    columns = np.array([2, 7, 31])
    later = column_statistics(layout(table)[:, columns], weights)
    np.testing.assert_array_equal(later.mean, statistics.mean[columns])
    np.testing.assert_array_equal(later.deviation, statistics.deviation[columns])


def test_entries_of_the_same_cell_are_added_up_first():
    """The error function of a sum is not the sum of the error functions."""
    whole = sp.csr_matrix(np.random.default_rng(0).normal(size=(30, 5)))
    halves = sp.csr_matrix(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    statistics = column_statistics(halves.copy())
    np.testing.assert_array_equal(statistics.deviation, column_statistics(whole).deviation)
    table = normalize_sparse(halves, statistics, "erf")[0]
    np.testing.assert_array_equal(table.toarray(), normalize_sparse(whole, statistics, "erf")[0].toarray())
    assert halves.nnz == 2 * whole.nnz  # the table of the user is as it was


def test_each_kernel_is_compiled_once_whatever_the_table():
    """Read-only arrays are what joblib hands to its workers."""
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
    assert len(kernels) == 4
    assert {kernel.py_func.__name__: len(kernel.signatures) for kernel in kernels if len(kernel.signatures) > 1} == {}


@parametrize_with_checks([ErfScaler(), ErfScaler(kind="erf2", with_mean=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_scaler_keeps_types_statistics_and_sparsity():
    new = X[:3] + 1
    scaler = ErfScaler().fit(X)
    z = (new - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    np.testing.assert_allclose(scaler.transform(new), erf(z / np.sqrt(2)), rtol=1e-12)
    np.testing.assert_allclose(ErfScaler(kind="erf2").fit_transform(X), by_hand(X, "erf2"), rtol=1e-12, atol=1e-13)
    assert scaler.n_samples_seen_ == 300
    small = ErfScaler().fit_transform(X.astype(np.float32))
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, by_hand(X), atol=2e-6)
    sparse = sp.random(50, 8, density=0.3, random_state=0, format="csr")
    found = ErfScaler(with_mean=False).fit(sparse)
    assert found.mean_ is None
    assert found.transform(sparse).nnz == sparse.nnz
    for table in (found.transform(sparse).toarray(), found.transform(sparse.toarray())):
        np.testing.assert_allclose(table, by_hand(sparse.toarray(), mean=False), atol=1e-12)


BAD = [
    (lambda: ErfScaler(with_mean="no").fit(np.eye(3)), "The 'with_mean' parameter of ErfScaler must be"),
    (lambda: ErfScaler(kind="standard").fit(np.eye(3)), "The 'kind' parameter of ErfScaler must be"),
    (lambda: ErfScaler().fit(sp.csr_matrix(np.eye(3))), "pass with_mean=False"),
    (lambda: ErfScaler().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 1.0]})), "contains NaN in column 'b'"),
    (lambda: learn_missing(np.array([[1.0, np.nan], [2.0, np.nan]])), "column 1 holds missing values only"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_means_of_what_is_there_and_indicators_of_what_is_not(make):
    dense = np.array([[1.0, 0.0, np.nan], [np.nan, 2.0, 3.0], [3.0, 0.0, 5.0], [8.0, 4.0, np.nan]])
    table = make(dense.copy())
    missing = learn_missing(table, np.array([1.0, 1.0, 2.0, 1.0]))
    np.testing.assert_allclose(missing.fill, [15 / 4, 6 / 5, 13 / 3])
    assert missing.indicated.tolist() == [0, 2]
    filled = missing.apply(table)
    filled, after = (one.toarray() if sp.issparse(one) else one for one in (filled, table))
    np.testing.assert_allclose(filled[:, :3], np.where(np.isnan(dense), missing.fill, dense))
    np.testing.assert_array_equal(filled[:, 3:], np.isnan(dense[:, [0, 2]]))
    np.testing.assert_array_equal(after, dense)
    some = learn_missing(dense).of(np.array([1, 2]))
    assert some.apply(np.array([[np.nan, np.nan]])).tolist() == [[1.5, 4.0, 1.0]]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_a_scaler_learns_from_a_stream_what_it_learns_from_all_rows(make):
    X = np.random.default_rng(0).normal(5, 3, size=(50, 4)).round(1) * [1, 0, 1, 1] + [0, 7, 0, 0]
    whole, stream = (ErfScaler(with_mean=make is np.asarray) for _ in range(2))
    whole.fit(make(X))
    for part in (X[:1], X[1:20], X[20:21], X[21:]):
        stream.partial_fit(make(part))
    np.testing.assert_allclose(stream.scale_, whole.scale_, atol=1e-12)
    assert stream.scale_[1] == 0
    assert stream.n_samples_seen_ == 50
    if stream.mean_ is not None:
        np.testing.assert_allclose(stream.mean_, whole.mean_)
    with pytest.raises(ValueError, match="features"):
        stream.partial_fit(make(X[:, :2]))
