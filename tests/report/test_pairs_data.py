"""Record of a search for pairs."""

import numpy as np
import pytest

from tamiz import find_pairs
from tamiz.report.pairs_data import FEWEST_PICTURES, MOST_PICTURES, pairs_report


@pytest.fixture(scope="module")
def search():
    X = np.random.default_rng(0).normal(size=(150, 6))
    return find_pairs(X, X[:, 1] * X[:, 3] > 0, random_state=0, n_permutations=0)


def test_the_strongest_pairs_are_drawn(search):
    page = pairs_report(search, title="table", target="y", notes=["a"], settings={"k": 1}, seed=3)
    assert FEWEST_PICTURES <= len(page.pictures) <= MOST_PICTURES
    assert [picture.pair for picture in page.pictures] == list(search.pairs[: len(page.pictures)])
    assert page.pictures[0].pair.indices == (1, 3)
    assert (page.title, page.target, page.notes, page.settings, page.seed) == ("table", "y", ("a",), {"k": 1}, 3)
    assert "numpy" in page.versions
