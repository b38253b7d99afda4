"""Parts of the trainer: batches, optimizers, devices, checkpoints."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.paper.networks import NaiveSVM, ThreeLayerNet
from tamiz.torch.batches import LoaderBatches, TensorBatches, equal_sizes, full_sizes, make_batches
from tamiz.torch.run import (
    check_same_run,
    checked_device,
    decay_groups,
    make_optimizer,
    read_checkpoint,
    seeded,
    write_checkpoint,
)


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


def test_l2_acts_on_matrices_only_and_is_the_gradient_of_the_squared_norm():
    groups = decay_groups(ThreeLayerNet(4, 1).parameters(), l2=0.25)
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
    assert [group["decays"] for group in groups] == [True, False]
    assert {parameter.dim() for parameter in groups[0]["params"]} == {2}
    assert {parameter.dim() for parameter in groups[1]["params"]} == {1}


def test_empty_groups_are_left_out():
    assert len(decay_groups(nn.Linear(2, 1, bias=False).parameters(), 0.1)) == 1
    with pytest.raises(ValueError, match="no trainable parameters"):
        decay_groups(NaiveSVM(1, 1).requires_grad_(False).parameters(), 0.0)


def test_optimizers():
    model = nn.Linear(2, 1)
    assert make_optimizer(model, None, 0.03).param_groups[0]["lr"] == 0.03
    assert isinstance(make_optimizer(model, torch.optim.AdamW, 0.03), torch.optim.AdamW)
    for wrong in (torch.optim.Adam(model.parameters()), 0.1, "adam"):
        with pytest.raises(TypeError, match="optimizer must be a function of the model's parameters"):
            make_optimizer(model, wrong, 0.1)
    with pytest.raises(TypeError, match="it returned list"):
        make_optimizer(model, list, 0.1)


@pytest.mark.parametrize("name", ["gpu", None, 1.5, "cpu:x"])
def test_unknown_devices(name):
    with pytest.raises(ValueError, match="such as 'cpu', 'cuda' or 'cuda:1', got"):
        checked_device(name)


def test_known_devices():
    assert checked_device("cpu") == checked_device(torch.device("cpu")) == torch.device("cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch finds no GPU here; use 'cpu'"):
            checked_device("cuda")


def test_the_random_state_comes_back_after_an_error():
    before = torch.random.get_rng_state()
    with pytest.raises(TypeError), seeded(3):
        torch.rand(2) + "x"
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_missing_torch_names_the_command_that_installs_it():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import tamiz.torch\nexcept ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == 'tamiz.torch needs torch. Install it with: pip install "tamiz[torch]"'


def test_a_checkpoint_is_read_back_and_replaced(tmp_path):
    path = tmp_path / "deep" / "run.pt"
    assert read_checkpoint(path) is None
    for step in (1, 2):
        write_checkpoint(path, {"step": step, "state": torch.arange(3)})
    found = read_checkpoint(path)
    assert found["step"] == 2
    assert torch.equal(found["state"], torch.arange(3))
    assert [entry.name for entry in path.parent.iterdir()] == ["run.pt"]


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04"])
def test_other_files_are_named(tmp_path, content):
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint of tamiz"):
        read_checkpoint(path)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint of tamiz"):
        read_checkpoint(path)


def test_no_code_of_the_file_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    torch.save({"x": Evil()}, tmp_path / "run.pt")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        read_checkpoint(tmp_path / "run.pt")
    assert not (tmp_path / "ran").exists()


def test_a_run_with_other_settings_is_not_continued():
    check_same_run("run.pt", {"seed": 1, "more": 2}, {"seed": 1})
    with pytest.raises(ValueError, match="seed=None, now seed=1"):
        check_same_run("run.pt", {}, {"seed": 1})
