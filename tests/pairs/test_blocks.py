"""Blocks of matrix products against plain loops, and which pairs are judged exactly."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import Best, search_all, search_block, split
from tamiz.pairs.columns import read_columns
from tamiz.pairs.search import pairs_to_judge


def make(random, n_targets=1):
    X = random.normal(size=(80, 20))
    X[:, 5:10] = random.integers(0, 3, size=(80, 5))
    X[:, 12:16] = random.random((80, 4)) < 0.1
    X[:, 3] = 1.0
    weights = random.normal(size=(2, n_targets, 80)).astype(np.float32)
    return make_basis(read_columns(X), np.full(80, 1 / 80)), weights


def by_loops(basis, weights):
    """Return the evidence of every pair for one replicate."""
    z = np.full((20, 20), -np.inf)
    heavy = basis.kurtosis > 4
    for i in range(20):
        for j in range(i + 1, 20):
            a, b = basis.of_column(i), basis.of_column(j)
            if len(a) == 0 or len(b) == 0:
                continue
            total = 0.0
            for r in weights:
                square = ((a * r) @ b.T) ** 2
                total += (square / ((a**2) @ (b**2).T if heavy[i] and heavy[j] else 80.0)).sum()
            freedom = len(a) * len(b) * len(weights)
            z[i, j] = ((total / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / np.sqrt(2 / (9 * freedom))
    return z


@pytest.mark.parametrize(("n_targets", "threads"), [(1, 1), (3, 2)])
def test_blocks_find_what_loops_find(n_targets, threads):
    basis, weights = make(np.random.default_rng(0), n_targets)
    assert (basis.kurtosis > 4).sum() == 4
    blocks = split(basis, 15)  # 15 light columns, then the 4 with rare values; column 3 is constant
    assert blocks[1][0].tolist() == [12, 13, 14, 15]
    found = search_all(blocks, weights, np.ones(80), 20, 30, threads)
    for best, replicate in zip(found, weights):
        z = by_loops(basis, replicate)
        np.testing.assert_allclose(best.z, np.sort(z[np.isfinite(z)])[::-1][:30], atol=2e-3)
        both = np.maximum(z, z.T)
        assert best.partner[3] == -1
        for column in np.delete(np.arange(20), 3):
            assert both[column, best.partner[column]] == pytest.approx(both[column].max(), abs=2e-3)


def test_sparse_blocks_give_what_dense_ones_give():
    X = sp.random(90, 12, density=0.3, format="csr", random_state=0)
    weights = np.random.default_rng(0).normal(size=(1, 1, 90)).astype(np.float32)
    found = []
    for table in (X, X.toarray()):
        blocks = split(make_basis(read_columns(table), np.full(90, 1 / 90), degree=1), 5)
        found.append(search_all(blocks, weights, np.ones(90), 12, 66)[0])
    np.testing.assert_allclose(found[0].z, found[1].z, atol=1e-3)
    np.testing.assert_array_equal(found[0].partner, found[1].partner)


def test_without_an_effect_the_evidence_is_standard_normal():
    random = np.random.default_rng(0)
    (block,) = split(make_basis(read_columns(random.normal(size=(500, 60))), np.full(500, 1 / 500)))
    weights = stats.zscore(random.normal(size=(1, 1, 500)), axis=2).astype(np.float32)
    z = search_block(block, block, weights, np.ones(500, dtype=np.float32), [Best(5000, 60)])[0][0]
    assert len(z) == 60 * 59 // 2
    assert stats.kstest(z, "norm").statistic < 0.06


def test_the_pair_of_a_column_of_the_model_is_judged_however_weak():
    best = Best(4, 6)
    best.merge_pairs(np.array([9.0, 8.0, 7.0, 6.0], dtype=np.float32), np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]))
    best.partner[5], best.column_z[5] = 2, -3.0
    judged = pairs_to_judge(best, 10**9, np.array([5]))
    assert [2, 5] in judged.tolist()
    assert [2, 5] not in pairs_to_judge(best, 10**9, np.empty(0, dtype=np.int64)).tolist()
    assert (judged[:, 0] < judged[:, 1]).all()
