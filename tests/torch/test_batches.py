"""Batches of the trainer: their sizes, their order, and where they stand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tamiz.torch.batches import LoaderBatches, TensorBatches, equal_sizes, full_sizes, make_batches


@pytest.mark.parametrize("sizes", [equal_sizes, full_sizes])
@pytest.mark.parametrize(
    ("n_rows", "batch_size"), [(1, 1), (1, 5), (2, 2), (5, 2), (7, 3), (11, 3), (64, 64), (65, 64)]
)
def test_an_epoch_has_every_row_once_and_no_batch_of_a_single_row(sizes, n_rows, batch_size):
    found = sizes(n_rows, batch_size)
    assert sum(found) == n_rows
    if n_rows > 1 and batch_size > 1:
        assert min(found) > 1


def test_sizes():
    assert equal_sizes(10, 4) == [5, 5]
    assert full_sizes(10, 4) == [4, 4, 2]
    assert full_sizes(7, 3) == [3, 4]
    assert full_sizes(3, 1) == [1, 1, 1]
    assert full_sizes(1, 5) == [1]


@pytest.mark.parametrize("sizes", [equal_sizes, full_sizes])
def test_every_epoch_has_another_order_and_a_stored_place_is_found_again(sizes):
    rows = torch.arange(9)
    batches = TensorBatches((rows, rows * 2), 2, 0, sizes)
    n_batches = len(batches.sizes)
    epochs = [torch.cat([next(batches)[0] for _ in range(n_batches)]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == rows.tolist()
    assert epochs[0] != epochs[1]
    next(batches)
    state = batches.state()
    other = TensorBatches((rows, rows * 2), 2, 7, sizes)
    other.load(state)
    for _ in range(n_batches + 1):
        assert torch.equal(next(other)[1], next(batches)[1])


def test_what_data_become():
    like = torch.zeros(1, dtype=torch.float64)
    x = np.ones((4, 2), dtype=np.float32)
    batches = make_batches((x, np.arange(4)), like, 2, 0)
    assert [part.dtype for part in batches.parts] == [torch.float64, torch.int64]
    assert make_batches(batches, like, 3, 1) is batches
    assert isinstance(make_batches([x], like, 2, 0), LoaderBatches)
