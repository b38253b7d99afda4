"""Fits on tables that are read in blocks: the same columns as in memory, whatever the source, its order and its blocks."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.estimators import base, passes
from tamiz.estimators.training import Training
from tamiz.rows.sources import as_source

pl = pytest.importorskip("polars", reason="polars is not installed")
N, F, TRUE = 4000, 40, [3, 11, 17, 25, 38]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, F)).astype(np.float32)
SIGNAL = X[:, TRUE] @ np.array([2, -1.5, 1.5, 1, -1])
Y = (SIGNAL + RNG.normal(size=N) > 0).astype(int)
FRAME = pl.DataFrame({f"x{j}": X[:, j] for j in range(F)}).with_columns(y=pl.Series(Y))


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Samples of 1,000 rows, so that a table of 4,000 rows takes all passes."""
    monkeypatch.setattr(passes, "SELECTION_ROWS", 1000)
    monkeypatch.setattr(base, "SELECTION_ROWS", 1000)


def memory_map(folder, table=X):
    np.save(folder / "x.npy", table)
    return np.load(folder / "x.npy", mmap_mode="r")


def parquet(folder, frame=FRAME):
    frame[:1500].write_parquet(folder / "a.parquet")
    frame[1500:].write_parquet(folder / "b.parquet")
    return folder


def test_a_memory_map_gives_the_true_columns_and_a_model_of_all_rows(tmp_path):
    clf = E2EFSClassifier(5, random_state=0).fit(memory_map(tmp_path), Y)
    assert clf.get_support(indices=True).tolist() == TRUE
    assert sorted(clf.ranking_.tolist()) == list(range(1, F + 1))
    assert set(clf.gamma_) == {0, 1}
    assert [(one.n_columns, one.n_rows, one.n_sampled) for one in clf.passes_] == [(F, N, 1000), (5, N, N)]
    whole = clone(clf).fit(X[:, TRUE], Y)
    assert clf.score(X, Y) == pytest.approx(whole.score(X[:, TRUE], Y), abs=0.005)
    assert clf.transform(X).shape == (N, 5)


def test_every_source_gives_the_same_selection_bit_by_bit(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    clf = E2EFSClassifier(5, l2=0.1, random_state=0)
    reference = clone(clf).fit(memory_map(tmp_path), Y)
    sources = {
        "array": (X, Y),
        "sparse": (sp.csr_matrix(X), Y),
        "files": (parquet(tmp_path), "y"),
        "lazy": (FRAME.lazy(), "y"),
        "dask": (da.from_array(X, chunks=(700, 9)), da.from_array(Y, chunks=700)),
        "dask, other partitions": (dd.from_pandas(FRAME.to_pandas(), npartitions=3), "y"),
    }
    for name, (table, target) in sources.items():
        other = clone(clf).fit(table, target)
        np.testing.assert_array_equal(other.ranking_, reference.ranking_, err_msg=name)
        np.testing.assert_array_equal(other.coef_, reference.coef_, err_msg=name)
    assert other.feature_names_in_.tolist() == [f"x{j}" for j in range(F)]
    assert other.predict(FRAME.to_pandas()[other.get_feature_names_out()]).tolist() == reference.predict(X).tolist()


def test_a_table_sorted_by_class_gives_the_same_columns(tmp_path):
    order = np.argsort(Y, kind="stable")
    clf = E2EFSClassifier(5, random_state=0).fit(memory_map(tmp_path, X[order]), Y[order])
    assert clf.get_support(indices=True).tolist() == TRUE


def test_wide_tables_lose_columns_before_they_get_more_rows(tmp_path):
    training = Training(max_memory=400 * passes.BYTES_PER_VALUE * F)
    reg = E2EFSRegressor(1, random_state=0, training=training).fit(memory_map(tmp_path), SIGNAL)
    assert [(one.n_columns, one.n_sampled) for one in reg.passes_] == [(F, 400), (13, 1000), (1, N)]
    assert reg.get_support(indices=True).tolist() == TRUE[:1]
    assert sorted(reg.ranking_.tolist()) == list(range(1, F + 1))


def test_a_table_that_fits_is_fitted_as_a_whole(tmp_path):
    few = slice(0, 900)
    clf = E2EFSClassifier(5, random_state=0).fit(memory_map(tmp_path, X[few]), Y[few])
    plain = E2EFSClassifier(5, random_state=0).fit(X[few], Y[few])
    np.testing.assert_array_equal(clf.ranking_, plain.ranking_)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)


def test_a_rare_class_of_a_table_in_memory_is_not_lost():
    rare = np.where(np.arange(N) == 7, 2, Y)
    clf = E2EFSClassifier(5, random_state=0).fit(X, rare)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert not hasattr(clf, "passes_")


def test_weights_groups_and_forced_columns_go_along(tmp_path):
    table = memory_map(tmp_path)
    weights = np.where(np.arange(N) < N // 2, 0.0, 1.0)
    clf = E2EFSClassifier(5, random_state=0).fit(table, Y, sample_weight=weights)
    half = E2EFSClassifier(5, random_state=0).fit(X[N // 2 :], Y[N // 2 :])
    assert clf.get_support(indices=True).tolist() == half.get_support(indices=True).tolist() == TRUE
    named = E2EFSClassifier(3, keep=["x7"], drop=["x3"], random_state=0).fit(parquet(tmp_path), "y")
    assert named.get_support(indices=True).tolist()[0] == 7
    assert 3 not in named.get_support(indices=True)


def test_batches_that_are_pushed_end_in_exactly_m(tmp_path):
    clf = E2EFSClassifier(5, random_state=0)
    for start in range(0, N, 250):
        clf.partial_fit(X[start : start + 250], Y[start : start + 250], classes=[0, 1])
        assert clf.get_support().sum() == 5
    assert clf.finish().get_support(indices=True).tolist() == TRUE
    again = E2EFSClassifier(5, random_state=0)
    for start in range(0, N, 400):
        again.partial_fit(X[start : start + 400], Y[start : start + 400])
    np.testing.assert_array_equal(again.finish().ranking_, clf.ranking_)


def test_a_first_batch_of_one_class_waits_for_the_others():
    order = np.argsort(Y, kind="stable")
    clf = E2EFSClassifier(5, random_state=0)
    clf.partial_fit(X[order[:300]], Y[order[:300]], classes=[0, 1])
    assert not hasattr(clf, "selection_")
    clf.partial_fit(X[order[-900:]], Y[order[-900:]], classes=[0, 1])
    assert clf.get_support().sum() == 5


def with_value(folder, value):
    table = X.copy()
    table[-1, 4] = value
    return memory_map(folder, table)


RARE = np.where(np.arange(N) == 7, 2, Y)
BAD = [
    (lambda folder: E2EFSClassifier(3).fit(with_value(folder, np.nan), Y), "Column 4 has missing values"),
    (lambda folder: E2EFSClassifier(3).fit(with_value(folder, np.inf), Y), "Column 4 has infinite values"),
    (lambda folder: E2EFSClassifier(3, random_state=0).fit(memory_map(folder), RARE), "No row of the class 2"),
    (lambda folder: E2EFSClassifier(3).fit(parquet(folder), "z"), "There is no column 'z'"),
    (
        lambda folder: E2EFSClassifier(3, training=Training(max_memory=1000)).fit(memory_map(folder), Y),
        "not enough for 50 rows of 40 columns",
    ),
    (lambda folder: E2EFSClassifier(3).finish(), "call partial_fit first"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)


def test_a_worker_that_is_killed_in_each_pass_costs_its_blocks_not_the_fit(tmp_path):
    """Three real workers; while blocks of a pass wait for it, one is killed with SIGKILL. The selection is the same."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    training = Training(max_memory=400 * passes.BYTES_PER_VALUE * F)
    reference = E2EFSClassifier(1, l2=0.1, random_state=0, training=training).fit(memory_map(tmp_path), Y)
    killed = []

    class Deadly:
        """A Dask source, of which each pass loses a worker."""

        def __init__(self, source, client):
            self.source, self.client = source, client
            self.n_columns, self.n_rows, self.names = source.n_columns, source.n_rows, source.names

        def map_blocks(self, function, columns=None):
            marker = tmp_path / f"pass {len(killed)}"

            def wait(rows, targets, start):
                while not marker.exists():
                    time.sleep(0.01)
                return function(rows, targets, start)

            def kill():
                while not (busy := [worker for worker, tasks in self.client.processing().items() if tasks]):
                    time.sleep(0.01)
                killed.append(self.client.run(os.getpid, workers=busy[:1])[busy[0]])
                os.kill(killed[-1], signal.SIGKILL)
                marker.touch()

            thread = threading.Thread(target=kill)
            thread.start()
            yield from self.source.map_blocks(wait, columns)
            thread.join()

    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        table = as_source(da.from_array(X, chunks=(200, F)), da.from_array(Y, chunks=200))
        clf = clone(reference).fit(Deadly(table, client), None)
    assert [(one.n_columns, one.n_sampled) for one in clf.passes_] == [(F, 400), (13, 1000), (1, N)]
    assert len(set(killed)) == 3
    np.testing.assert_array_equal(clf.ranking_, reference.ranking_)
    np.testing.assert_array_equal(clf.coef_, reference.coef_)
