"""DistributedDataParallel over two real processes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SCRIPT = Path(__file__).with_name("joined_batches.py")


def test_two_processes_hold_one_gamma_that_equals_the_joined_batch(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-addr", "127.0.0.1", "--master-port", "0", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", str(SCRIPT), str(tmp_path)]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=1200, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert run.returncode == 0, run.stderr[-3000:]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    assert torch.equal(first["path"], second["path"]), "the ranks parted"
    for name, value in first["state"].items():
        assert torch.equal(value, second["state"][name]), name

    spec = importlib.util.spec_from_file_location("joined_batches", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    threads = torch.get_num_threads()
    alone = module.train()
    torch.set_num_threads(threads)
    assert (alone["path"][-1] < 1).any()
    torch.testing.assert_close(first["path"], alone["path"], rtol=1e-3, atol=1e-3)
    assert torch.equal(first["state"]["counters"], alone["state"]["counters"])


@pytest.fixture
def process_group(monkeypatch):
    """A group of one process: the wrapper waits for the gradient of every parameter all the same."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_training_goes_on_after_the_mask_has_closed_and_with_another_optimizer(build, run_steps, table, true_features):
    mask, model = build(hidden=8)
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, wrapped, optimizer, table)
    run_steps(mask, wrapped, optimizer, table, n_steps=5)
    mask.detach()
    again = nn.parallel.DistributedDataParallel(model)
    run_steps(mask, again, torch.optim.AdamW(again.parameters(), lr=0.1, weight_decay=0.1), table, n_steps=5)
    again(table[0])
    assert mask.gamma.detach().nonzero().flatten().tolist() == true_features
    assert int(mask.gamma.sum()) == 3


@pytest.fixture
def shard(process_group):
    """Shards a model over the one process there is."""
    mesh = init_device_mesh("cpu", (1,))
    return lambda model, **options: fully_shard(model, mesh=mesh, **options)


def test_a_sharded_gamma_raises_with_what_to_do(build, shard):
    mask, model = build(hidden=8)
    shard(model)
    with pytest.raises(ValueError, match=r"gamma is sharded .*ignored_params=\{mask.gamma\}"):
        mask.attach(torch.optim.SGD(model.parameters(), lr=0.05))
    assert mask._handle is None


def test_layers_are_sharded_around_a_whole_gamma(build, run_steps, table, true_features, shard):
    mask, model = build(hidden=8)
    shard(model, ignored_params={mask.gamma})
    averaged = []

    def average(gamma):
        distributed.all_reduce(gamma.grad)
        gamma.grad /= distributed.get_world_size()
        averaged.append(1)

    mask.gamma.register_post_accumulate_grad_hook(average)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table)
    assert mask.closed
    assert averaged
    assert mask.support().nonzero().flatten().tolist() == true_features
