"""Parameters of the penalty on a one-to-one layer."""

import numpy as np
import pytest

pytest.importorskip("torch")
from tamiz.baselines import SFS
from tamiz.baselines.deep.penalized import OneToOneSelector


def test_selectors_with_such_a_layer_share_the_penalty():
    assert issubclass(SFS, OneToOneSelector)
    made = SFS(2, l1=0.5, l2=0.25)
    assert (made.get_params()["l1"], made.get_params()["l2"]) == (0.5, 0.25)


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), "much"])
def test_a_penalty_is_a_number_from_zero_on(name, value):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ValueError, match=name):
        SFS(2, **{name: value}).fit(X, np.arange(12) % 2)
