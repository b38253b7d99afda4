from __future__ import annotations

import gc

import numpy as np
import pytest

from tamiz.core.step import writeable_view


@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, bool])
def test_a_read_only_array_looks_like_any_other(shape, order, dtype):
    array = np.ones(shape, dtype=dtype, order=order)
    array.flags.writeable = False
    view = writeable_view(array)
    assert view.flags.writeable
    assert (view.dtype, view.shape) == (array.dtype, array.shape)
    assert array.size == 0 or view.strides == array.strides
    np.testing.assert_array_equal(view, array)
    assert array.size == 0 or np.shares_memory(view, array)
    assert not array.flags.writeable


def test_a_strided_part():
    array = np.arange(20.0).reshape(4, 5)[::2, 1::2]
    array.flags.writeable = False
    np.testing.assert_array_equal(writeable_view(array), [[1, 3], [11, 13]])


def test_the_memory_lives_as_long_as_the_view():
    array = np.full(100_000, 7.0)
    array.flags.writeable = False
    view = writeable_view(array)
    del array
    gc.collect()
    assert np.ones(100_000).sum() == 100_000  # would take the memory over if it were free
    assert (view == 7.0).all()
