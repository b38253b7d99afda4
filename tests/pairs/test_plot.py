"""Pictures of a pair."""

import numpy as np
import pytest

from tamiz import find_pairs

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_a_pair_is_drawn_with_its_names(kind):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    X[:, 2] = random.integers(0, 3, 90)
    y = {"two": X[:, 0] > 0, "three": random.integers(0, 3, 90), "numbers": X[:, 0] * X[:, 1]}[kind]
    found = find_pairs(X, y, random_state=0, n_permutations=0).with_names(["a", "b", "c", "d"])
    axes = found.plot(0, 2)
    assert axes.get_xlabel() == "a (rank)"
    assert axes.get_ylabel() == "c"
    assert len(axes.collections) == 2
    pyplot.close(axes.figure)
