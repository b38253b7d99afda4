"""Parameters of the penalty on a one-to-one layer."""

import numpy as np
import pytest

pytest.importorskip("torch")
from tamiz.baselines import DFS, SFSDFS
from tamiz.paper.deep import OneToOneSelector


@pytest.mark.parametrize("kind", [DFS, SFSDFS])
def test_selectors_with_such_a_layer_share_the_penalty(kind):
    assert issubclass(kind, OneToOneSelector)
    made = kind(2, l1=0.5, l2=0.25)
    assert (made.get_params()["l1"], made.get_params()["l2"]) == (0.5, 0.25)


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), "much"])
def test_a_penalty_is_a_number_from_zero_on(name, value):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ValueError, match=name):
        DFS(2, **{name: value}).fit(X, np.arange(12) % 2)


def test_a_strong_penalty_shrinks_the_layer():
    X = np.random.default_rng(0).normal(size=(40, 4))
    y = X[:, 1] > 0
    weak, strong = (DFS(1, l1=l1, l2=0.0, epochs=5, random_state=0).fit(X, y).scores_ for l1 in (0.0, 1.0))
    assert np.abs(strong).sum() < np.abs(weak).sum()
