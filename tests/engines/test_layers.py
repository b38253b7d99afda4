"""Numbers of the layers."""

import numpy as np
import pytest

from tamiz.engines.layers import PADDING, Row, new_layers, padded, views


@pytest.mark.parametrize("units", [1, 7, 8, 9, 50])
def test_padding_is_the_least_that_is_enough(units):
    assert units <= padded(units) < units + PADDING
    assert padded(units) % PADDING == 0


def test_views_cover_all_parameters_and_share_their_memory():
    layers = new_layers((5, 3), 2, 10, np.random.default_rng(0))
    parts = views(layers, Row.VALUE, 0)
    n_parameters = sum(scale.size + shift.size + weights.size for scale, shift, weights, _, _ in parts)
    assert n_parameters + 2 == layers.parameters.shape[1]
    parts[1][2][...] = 7.0
    assert (layers.parameters[Row.VALUE] == 7.0).sum() == parts[1][2].size


def test_padded_units_do_nothing():
    layers = new_layers((5,), 2, 10, np.random.default_rng(0))
    ((scale, _, weights, _, variance),) = views(layers, Row.VALUE, 0)
    assert (scale[:5] == 1).all()
    assert (scale[5:] == 0).all()
    assert (weights[5:] == 0).all()
    assert np.abs(weights[:5]).max() <= 5**-0.5
    assert (variance == 1).all()
