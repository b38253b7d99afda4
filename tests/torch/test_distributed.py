"""Two real processes: data parallel, sharded weights, a Parquet stream, and one process that is killed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from tamiz.torch import FeatureMask, ParquetRows, Standardize, prune, train

polars = pytest.importorskip("polars")
SCRIPT = Path(__file__).with_name("distributed_jobs.py")
N_ROWS, TRUE = 301, [3, 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Parquet file with an odd number of rows; the target is a sum of two of twelve columns."""
    folder = tmp_path_factory.mktemp("stream")
    X = np.random.default_rng(0).normal(5.0, 3.0, size=(N_ROWS, 12))
    frame = polars.DataFrame({f"x{i}": X[:, i] for i in range(12)})
    y = (X[:, TRUE[0]] - X[:, TRUE[1]]) / 3
    frame.with_columns(y=polars.Series(y)).write_parquet(folder / "table.parquet", row_group_size=100)
    return folder


def torchrun(folder, job):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", str(SCRIPT), job, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False, env=environment)
    files = [folder / f"{job}{rank}.pt" for rank in (0, 1)]
    assert all(file.exists() for file in files), run.stderr[-3000:]
    return run.returncode, [torch.load(file, weights_only=True) for file in files]


@pytest.fixture(scope="module")
def both(folder):
    """What two processes found, before one of them was killed in a run with a checkpoint."""
    code, found = torchrun(folder, "all")
    assert code != 0
    assert (folder / "run.pt").exists()
    assert not (folder / "again0.pt").exists()
    return found


@pytest.fixture(scope="module")
def jobs():
    """What the processes do, to be done by one alone."""
    spec = importlib.util.spec_from_file_location("distributed_jobs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_same(first, second):
    for name, value in first["state"].items():
        assert torch.equal(value, second["state"][name]), name
    assert torch.equal(first["weight"], second["weight"])
    assert first["n_steps"] == second["n_steps"]


def test_one_gamma_that_equals_that_of_the_joined_batch(both, jobs):
    first, second = (found["joined"] for found in both)
    assert torch.equal(first["path"], second["path"]), "the processes parted"
    alone = jobs.joined()
    assert (alone["path"][-1] < 1).any()
    torch.testing.assert_close(first["path"], alone["path"], rtol=1e-3, atol=1e-3)
    assert torch.equal(first["counters"], alone["counters"])


def test_weights_sharded_around_a_whole_gamma(both):
    first, second = (found["sharded"]["path"] for found in both)
    assert torch.equal(first, second)
    assert torch.equal(first[-1], torch.zeros(16).index_fill(0, torch.tensor([2, 7]), 1.0))
    assert torch.equal(first[-1], first[-20]), "training went on after the mask had closed"


def test_held_out_rows_of_two_processes_move_one_gamma(both, jobs):
    first, second = (found["held_out"] for found in both)
    assert_same(first, second)
    alone = jobs.held_out()
    assert first["indices"] == alone["indices"] == [4, 7]
    assert first["n_steps"] == alone["n_steps"]
    torch.testing.assert_close(first["weight"], alone["weight"], rtol=1e-2, atol=1e-2)


def test_each_process_reads_its_rows_and_all_share_the_statistics(both, folder):
    first, second = (found["streamed"] for found in both)
    assert {first["n_seen"], second["n_seen"]} == {150, 151}
    X = polars.read_parquet(folder / "table.parquet").drop("y").to_numpy()
    for found in (first, second):
        np.testing.assert_allclose(found["mean"], X.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(found["scale"], X.std(axis=0), rtol=1e-5)
        assert found["indices"] == TRUE
    assert_same(first, second)


def test_a_killed_process_is_restarted_and_the_mask_is_the_same(both, folder):
    # Started again by hand: whether gloo connects again within one torchrun depends on the machine.
    code, found = torchrun(folder, "again")
    assert code == 0
    for part in found:
        assert_same(part, both[0]["streamed"])


# ---- one process --------------------------------------------------------------------------------------------------------


@pytest.fixture
def process_group(monkeypatch):
    """A group of one process: the wrapper waits for the gradient of every parameter all the same."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_the_trainer_takes_a_wrapped_model(build, table, true_features):
    _, model = build(hidden=8)
    wrapped = DistributedDataParallel(nn.Sequential(model, nn.Flatten(0)))
    selection = train(wrapped, table, nn.functional.mse_loss, ramp_steps=60, refinement_steps=10)
    assert selection.indices.tolist() == true_features


@pytest.mark.usefixtures("process_group")
def test_a_sharded_gamma_raises_with_what_to_do(build):
    mask, model = build(hidden=8)
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(ValueError, match=r"gamma is sharded .*ignored_params=\{mask.gamma\}"):
        mask.attach(torch.optim.SGD(model.parameters(), lr=0.05))
    assert mask._handle is None


def test_workers_of_a_loader_share_the_rows(folder):
    rows = ParquetRows(folder / "table.parquet", target="y", columns=["x3", "x8"], batch_size=40, block_rows=50)
    loader = DataLoader(rows, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    seen = torch.cat([x for x, _ in loader])
    whole = torch.tensor(polars.read_parquet(folder / "table.parquet")[["x3", "x8"]].to_numpy(), dtype=torch.float32)
    assert torch.equal(seen[seen[:, 0].argsort()], whole[whole[:, 0].argsort()])
    torch.manual_seed(0)
    first = [x for x, _ in rows]
    again = [x for x, _ in rows]
    torch.manual_seed(0)
    repeated = [x for x, _ in rows]
    assert all(torch.equal(a, b) for a, b in zip(first, repeated))
    assert not torch.equal(first[0], again[0])


def test_a_stream_of_one_row_is_one_batch(folder):
    polars.read_parquet(folder / "table.parquet").head(1).write_parquet(folder / "one.parquet")
    assert [len(x) for x, _ in ParquetRows(folder / "one.parquet", target="y", batch_size=1)] == [1]


def test_streams_refuse_what_does_not_fit(folder):
    path = folder / "table.parquet"
    with pytest.raises(ValueError, match="there is no column 'z' in"):
        ParquetRows(path, target="z")
    with pytest.raises(ValueError, match="batch_size=9 must be at least 1 and at most block_rows=3"):
        ParquetRows(path, target="y", batch_size=9, block_rows=3)
    with pytest.raises(ValueError, match="column 1 has no values"):
        Standardize(2).fit([torch.tensor([[1.0, torch.nan]])])


def test_a_standardised_stream_is_pruned_with_its_statistics(folder):
    rows = ParquetRows(folder / "table.parquet", target="y")
    scaler = Standardize(12).fit(rows)
    model = nn.Sequential(scaler, FeatureMask(12, 12), nn.Linear(12, 1)).eval()
    masked = nn.Sequential(scaler, FeatureMask(12, 2, mask_learning_rate=0.05), nn.Linear(12, 1), nn.Flatten(0))
    train(masked, rows, nn.functional.mse_loss, ramp_steps=60, refinement_steps=5)
    small = prune(masked)
    assert small.network[0].mean.shape == (2,)
    x = next(iter(rows))[0]
    kept = masked[1].support().nonzero().flatten()
    torch.testing.assert_close(small(x[:, kept]), masked(x), rtol=1e-4, atol=1e-4)
    assert model(x).shape == (64, 1)
