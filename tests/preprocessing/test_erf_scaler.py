from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import erf
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import ErfScaler


@parametrize_with_checks([ErfScaler(), ErfScaler(kind="erf2", with_mean=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="The 'with_mean' parameter of ErfScaler must be"):
        ErfScaler(with_mean="no").fit(np.eye(3))
    with pytest.raises(ValueError, match="The 'kind' parameter of ErfScaler must be"):
        ErfScaler(kind="standard").fit(np.eye(3))


def expected(X, mean=True, deviations=2**0.5):
    X = np.asarray(X, dtype=np.float64)
    centre = X.mean(axis=0) if mean else 0.0
    return erf((X - centre) / (deviations * X.std(axis=0, ddof=1)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_float64_is_exact(order):
    X = np.asarray(np.random.default_rng(0).normal(5, 3, size=(400, 700)), order=order)
    np.testing.assert_allclose(ErfScaler().fit_transform(X), expected(X), rtol=1e-12, atol=1e-13)
    printed = ErfScaler(kind="erf2").fit_transform(X)
    np.testing.assert_allclose(printed, expected(X, deviations=2), rtol=1e-12, atol=1e-13)


def test_float32_stays_float32():
    X = np.random.default_rng(0).normal(5, 3, size=(40, 7)).astype(np.float32)
    out = ErfScaler().fit_transform(X)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected(X), atol=1e-6)


def test_statistics_are_those_of_the_training_table():
    X = np.random.default_rng(0).normal(size=(30, 2))
    scaler = ErfScaler().fit(X)
    new = X[:3] + 1
    np.testing.assert_allclose(
        scaler.transform(new), erf((new - X.mean(axis=0)) / (np.sqrt(2) * X.std(axis=0, ddof=1))), rtol=1e-12
    )
    np.testing.assert_allclose(scaler.mean_, X.mean(axis=0))
    np.testing.assert_allclose(scaler.scale_, X.std(axis=0, ddof=1))
    assert scaler.n_samples_seen_ == 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_become_zero(dtype):
    X = np.array([[7, 1], [7, 2], [7, 3]], dtype=dtype)
    scaler = ErfScaler().fit(X)
    assert scaler.transform(X)[:, 0].tolist() == [0, 0, 0]
    assert scaler.transform(X + 5)[:, 0].tolist() == [0, 0, 0]


def test_without_mean_zeros_stay_in_dense_and_sparse():
    X = sp.random(50, 8, density=0.3, random_state=0, format="csr")
    scaler = ErfScaler(with_mean=False)
    sparse = scaler.fit_transform(X)
    assert sp.issparse(sparse)
    assert sparse.nnz == X.nnz
    np.testing.assert_allclose(sparse.toarray(), expected(X.toarray(), mean=False), atol=1e-12)
    np.testing.assert_allclose(scaler.fit_transform(X.toarray()), sparse.toarray(), atol=1e-12)
    assert scaler.mean_ is None


def test_sparse_with_mean_is_refused():
    with pytest.raises(ValueError, match="pass with_mean=False"):
        ErfScaler().fit(sp.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_their_names(library):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    scaler = ErfScaler().set_output(transform=library).fit(frame)
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]
    assert list(scaler.transform(frame).columns) == ["a", "b"]


def test_scales_of_1e30_and_smaller():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1e30, 1e-30]
    assert np.abs(ErfScaler().fit_transform(X)).max(axis=0) == pytest.approx(np.abs(expected(X)).max(axis=0))


def test_nan_is_refused_by_name():
    with pytest.raises(ValueError, match="contains NaN in column 'b'"):
        ErfScaler().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 1.0]}))


def test_a_difference_beyond_float64_is_just_far_out():
    scaler = ErfScaler().fit(np.array([[-1.7e308, 3.0], [-1.6e308, 3.0]]))
    assert scaler.transform(np.array([[1.7e308, -1.7e308]])).tolist() == [[1.0, 0.0]]
