"""Stability of selections against hand-worked cases and the mean over pairs."""

from __future__ import annotations

import math
import platform
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamiz
from tamiz._utils.extras import library_versions
from tamiz.evaluation.results import nogueira_stability


def test_nogueira_by_hand():
    # F=4, two selections {0,1} and {0,2}: shares 1, .5, .5, 0; s2 = 2*(.25+.25) = 1 over 4 features = .25;
    # by chance k/F (1-k/F) = .25: stability 0.
    assert nogueira_stability([[1, 1, 0, 0], [1, 0, 1, 0]]) == pytest.approx(0.0)
    # Three selections of sizes 1, 2, 3 out of 5: shares 1, 2/3, 1/3, 0, 0; s2 = 1.5*(2/9+2/9) = 2/3, mean
    # 2/15; chance .4*.6 = .24: 1 - (2/15)/.24 = 4/9.
    supports = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert nogueira_stability(supports) == pytest.approx(4 / 9)


def test_nothing_to_choose_and_one_selection():
    assert math.isnan(nogueira_stability(np.ones((3, 4))))
    with pytest.raises(ValueError, match="at least two"):
        nogueira_stability([[1, 0]])


@given(st.integers(2, 6), st.integers(3, 12), st.integers(0, 10_000))
def test_nogueira_is_the_mean_of_kunchevas_index_over_pairs_of_equal_size(n_selections, n_features, seed):
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, n_features))
    supports = np.zeros((n_selections, n_features), dtype=bool)
    for row in supports:
        row[generator.choice(n_features, size, replace=False)] = True
    by_pairs = [
        ((a & b).sum() * n_features - size**2) / (size * (n_features - size)) for a, b in combinations(supports, 2)
    ]
    assert nogueira_stability(supports) == pytest.approx(np.mean(by_pairs))


def test_versions_are_those_that_run_and_of_what_is_installed():
    found = library_versions()
    assert found["python"] == platform.python_version()
    assert (found["numpy"], found["tamiz"]) == (np.__version__, tamiz.__version__)
    assert list(library_versions(["no-such-package-at-all"])) == ["python"]
