"""DistributedDataParallel over two real processes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import torch

SCRIPT = Path(__file__).with_name("joined_batches.py")


def test_two_processes_hold_one_gamma_that_equals_the_joined_batch(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-addr", "127.0.0.1", "--master-port", "0", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", str(SCRIPT), str(tmp_path)]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
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
