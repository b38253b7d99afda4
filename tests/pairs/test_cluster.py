"""The search on a real Dask cluster, with a worker that is lost."""

import os
import signal

import numpy as np
import pytest

from tamiz import find_pairs
from tamiz.pairs import cluster as pairs_cluster
from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import run_blocks, search_all, split
from tamiz.pairs.columns import read_columns

distributed = pytest.importorskip("distributed")


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 600))
    return X, (X[:, 3] * X[:, 500] > 0).astype(int)


def test_a_cluster_gives_the_same_result(table):
    X, y = table
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found = find_pairs(X, y, client=client, n_permutations=2, random_state=0)
    expected = find_pairs(X, y, n_permutations=2, random_state=0)
    assert found.pairs == expected.pairs
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_lost_worker_loses_nothing(table):
    X, _ = table
    blocks = split(make_basis(read_columns(X), np.full(150, 1 / 150)), 100)
    weights = np.random.default_rng(1).normal(size=(1, 1, 150)).astype(np.float32)
    expected = search_all(blocks, weights, np.ones(150), 600, 50, run_blocks(1))[0]
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "silence_logs": 50,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        victims = [worker.process.pid for worker in cluster.workers.values()][:1]

        def progress(done, total):
            if done == 2:
                os.kill(victims.pop(), signal.SIGKILL)

        run, make = pairs_cluster.run_blocks_on_cluster(client)
        variance = np.ones(150, dtype=np.float32)
        work = make(blocks, weights, variance, 50)
        found = search_all(blocks, weights, variance, 600, 50, run, progress, work)[0]
    assert victims == []
    np.testing.assert_array_equal(found.pairs(), expected.pairs())
    np.testing.assert_array_equal(found.partner, expected.partner)
