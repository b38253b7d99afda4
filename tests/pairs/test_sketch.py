"""The sketch: what it finds among many columns, and what it says of itself."""

import numpy as np
import pytest

from tamiz import find_pairs
from tamiz.pairs import search, sketch


@pytest.fixture
def few_repetitions(monkeypatch):
    monkeypatch.setattr(sketch, "N_REPETITIONS", 60)


def test_signs_survive_packing():
    signs = np.random.default_rng(0).random((5, 131)) < 0.5
    np.testing.assert_array_equal(sketch.unpack_signs(sketch.pack_signs(signs), 131), signs)


def test_a_strong_pair_among_many_columns_is_found(few_repetitions, monkeypatch):
    monkeypatch.setattr(search, "MAX_FULL_COLUMNS", 1000)
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3000)).astype(np.float32)
    y = np.where(X[:, 17] * X[:, 2500] + 0.1 * random.normal(size=200) > 0, "yes", "no")
    found = find_pairs(X, y, random_state=0)
    assert found.method == "sketch"
    assert [pair.indices for pair in found.significant_pairs()] == [(17, 2500)]
    assert set(found.significant_columns()) == {17, 2500}
    assert found.n_permutations == 0
    assert "not all of the 4,498,500 pairs were looked at" in found.note
    assert "can be missed" in repr(found)


def test_negative_products_and_unbalanced_classes(few_repetitions):
    random = np.random.default_rng(1)
    X = random.normal(size=(400, 200))
    y = (X[:, 3] * X[:, 7] < -0.6).astype(int)
    found = find_pairs(X, y, method="sketch", random_state=0)
    assert 0.1 < y.mean() < 0.3
    assert found.pairs[0].indices == (3, 7)
    assert found.pairs[0].p_value < 1e-6


def test_the_sketch_judges_as_the_full_search_does(few_repetitions):
    random = np.random.default_rng(2)
    X = random.normal(size=(300, 60))
    y = X[:, 3] * X[:, 7] + X[:, 1] + 0.3 * random.normal(size=300)
    quick = find_pairs(X, y, method="sketch", random_state=0)
    full = find_pairs(X, y, method="full", n_permutations=0, random_state=0)
    assert quick.pairs[0].indices == full.pairs[0].indices == (3, 7)
    assert quick.pairs[0].p_value == pytest.approx(full.pairs[0].p_value, rel=1e-2)
    assert quick.fitted[0] == full.fitted[0] == "x1"


def test_noise_gives_no_pair_and_threads_change_nothing(few_repetitions):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(100, 500)), random.integers(0, 2, 100)
    a, b = (find_pairs(X, y, method="sketch", random_state=0, n_jobs=jobs) for jobs in (1, 2))
    assert a.significant_pairs() == []
    assert a.pairs == b.pairs
