"""The memory of a fit on a wide sparse table, counted in float32 vectors with one entry a column."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import E2EFSClassifier, E2EFSRegressor, Training

N_ROWS, N_COLUMNS, ENTRIES_A_ROW = 60, 200_000, 50


def wide_table(kind, dtype):
    rng = np.random.default_rng(0)
    n_entries = N_ROWS * ENTRIES_A_ROW
    indices = rng.integers(0, N_COLUMNS, n_entries).astype(np.int32)
    indptr = np.arange(0, n_entries + 1, ENTRIES_A_ROW)
    X = sp.csr_matrix((rng.random(n_entries).astype(dtype), indices, indptr), shape=(N_ROWS, N_COLUMNS))
    X.sum_duplicates()
    return X.asformat(kind)


@pytest.mark.parametrize(
    ("estimator", "kind", "dtype", "normalize"),
    [
        (E2EFSClassifier, "csr", np.float32, "erf"),
        (E2EFSClassifier, "csr", np.float64, "standard"),
        (E2EFSClassifier, "csc", np.float32, "erf"),
        (E2EFSRegressor, "csr", np.float32, None),
    ],
)
def test_a_fit_takes_less_than_four_tables_and_a_few_vectors(estimator, kind, dtype, normalize):
    X, y = wide_table(kind, dtype), np.arange(N_ROWS) % 2
    model = estimator(
        100,
        normalize=normalize,
        training=Training(warmup_steps=5, ramp_steps=40, refinement_epochs=1, batch_size=20),
        random_state=0,
    )
    model.fit(X[:, :500], y)  # compiled and imported before memory is watched
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.get_support().sum() == 100
    assert model.selection_.history["n_alive"].min() == 100  # columns were dropped while memory was watched
    table = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    # The regressor exchanges columns: moments and gains of all of them are a few vectors more.
    n_vectors = 14 if estimator is E2EFSClassifier else 18
    assert peak < 4 * table + n_vectors * 4 * N_COLUMNS
