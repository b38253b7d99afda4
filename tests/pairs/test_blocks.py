"""Blocks of matrix products against plain loops."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from tamiz.pairs.basis import make_basis
from tamiz.pairs.blocks import Best, inner_products, run_blocks, search_all, search_block, split
from tamiz.pairs.columns import read_columns


def make(random, n_targets=1, heavy=True):
    X = random.normal(size=(80, 20))
    X[:, 5:10] = random.integers(0, 3, size=(80, 5))
    if heavy:
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


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_find_what_loops_find(n_targets, threads):
    basis, weights = make(np.random.default_rng(0), n_targets)
    heavy = basis.kurtosis > 4
    assert heavy.sum() == 4
    blocks = split(basis, 15)  # 15 light columns, then the 4 with rare values; column 3 is constant
    assert [block.is_heavy for block in blocks] == [False, True]
    assert blocks[1].columns.tolist() == [12, 13, 14, 15]
    found = search_all(blocks, weights, np.ones(80), 20, 30, run_blocks(threads))
    for best, replicate in zip(found, weights):
        z = by_loops(basis, replicate)
        expected = np.sort(z[np.isfinite(z)])[::-1][:30]
        np.testing.assert_allclose(best.z, expected, atol=2e-3)
        both = np.maximum(z, z.T)
        assert best.partner[3] == -1
        for column in range(20):
            if column != 3:
                assert both[column, best.partner[column]] == pytest.approx(both[column].max(), abs=2e-3)


def test_a_block_with_itself_is_multiplied_above_the_diagonal():
    random = np.random.default_rng(0)
    basis = make_basis(read_columns(random.normal(size=(60, 350))), np.full(60, 1 / 60))
    (block,) = split(basis)
    weight = random.normal(size=(1, 1, 60)).astype(np.float32)
    out = np.full((700, 700), np.nan, dtype=np.float32)
    inner_products(block, block, weight[0, 0], out)
    expected = (block.functions * weight[0, 0]) @ block.functions.T
    above = np.triu_indices(700)
    np.testing.assert_allclose(out[above], expected[above], atol=1e-3)
    assert np.isnan(out[-1, 0])


def test_blocks_hold_about_as_many_functions_each():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 900))
    for degree, n_blocks in ((1, 2), (2, 3)):
        blocks = split(make_basis(read_columns(X), np.full(40, 1 / 40), degree=degree))
        assert len(blocks) == n_blocks
        assert np.ptp([len(block.columns) for block in blocks]) <= 2
        assert sorted(np.concatenate([block.columns for block in blocks])) == list(range(900))


def test_sparse_blocks_give_what_dense_ones_give():
    X = sp.random(90, 12, density=0.3, format="csr", random_state=0)
    weights = np.random.default_rng(0).normal(size=(1, 1, 90)).astype(np.float32)
    found = []
    for table in (X, X.toarray()):
        blocks = split(make_basis(read_columns(table), np.full(90, 1 / 90), degree=1), 5)
        found.append(search_all(blocks, weights, np.ones(90), 12, 66, run_blocks(1))[0])
    np.testing.assert_allclose(found[0].z, found[1].z, atol=1e-3)
    np.testing.assert_array_equal(found[0].partner, found[1].partner)


def test_without_an_effect_the_evidence_is_standard_normal():
    random = np.random.default_rng(0)
    basis = make_basis(read_columns(random.normal(size=(500, 60))), np.full(500, 1 / 500))
    (block,) = split(basis)
    weights = stats.zscore(random.normal(size=(1, 1, 500)), axis=2).astype(np.float32)
    z = search_block(block, block, weights, np.ones(500, dtype=np.float32), 5000)[0][0]
    assert len(z) == 60 * 59 // 2
    assert stats.kstest(z, "norm").statistic < 0.06


def test_merging_does_not_depend_on_the_order():
    random = np.random.default_rng(0)
    z, i, j = random.integers(0, 5, 40).astype(np.float32), random.integers(0, 9, 40), random.integers(9, 20, 40)
    records = []
    for order in (np.arange(40), np.arange(40)[::-1]):
        best = Best.empty(10, 20)
        for part in np.array_split(order, 4):
            best.merge_pairs(z[part], i[part], j[part])
        records.append(best)
    np.testing.assert_array_equal(records[0].pairs(), records[1].pairs())


def test_an_interrupt_ends_the_search_at_once():
    done = []

    def work(task):
        time.sleep(0.01)
        done.append(task)
        return []

    def interrupted():
        for count, _ in enumerate(run_blocks(2)([(0, k) for k in range(500)], work)):
            if count == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(done) < 20
