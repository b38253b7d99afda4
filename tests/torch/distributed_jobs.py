"""What several processes do together: ``torchrun distributed_jobs.py JOB FOLDER``; each writes what it found."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from tamiz.torch import FeatureMask, ParquetRows, Standardize, train


def joined(rank=0, world=1, n_steps=30):
    """gamma after each step, for the share of each batch that belongs to ``rank``."""
    torch.manual_seed(0)
    x = torch.randn(64, 24)
    y = x[:, 5] - x[:, 9] * 2
    mask = FeatureMask(24, 4, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(24, 8), nn.Tanh(), nn.Linear(8, 1))
    model = DistributedDataParallel(model) if world > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    mask.attach(optimizer, warmup_steps=3, ramp_steps=60)
    path = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rank::world]).squeeze(1), y[rank::world]).backward()
        optimizer.step()
        path.append(mask.gamma.detach().clone())
    return {"path": torch.stack(path), "counters": mask.counters.clone()}


def sharded(rank, world):
    """Weights sharded by FSDP2 around a whole gamma, clipped, and trained on after the mask has closed."""
    torch.manual_seed(0)
    x = torch.randn(256, 16)
    y = x[:, 2] - 2 * x[:, 7]
    mask = FeatureMask(16, 2, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (world,)), ignored_params={mask.gamma})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    path = []
    while len(path) < 200:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rank::world]).squeeze(1), y[rank::world]).backward()
        mask.average_gradient()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        path.append(mask.gamma.detach().clone())
    return {"path": torch.stack(path), "closed": mask.closed}


def streamed(folder, **options):
    """A run over a Parquet file that each process reads its part of."""
    torch.manual_seed(0)
    rows = ParquetRows(folder / "table.parquet", target="y", batch_size=32, block_rows=64)
    scaler = Standardize(len(rows.columns)).fit(rows)
    mask = FeatureMask(len(rows.columns), 2, mask_learning_rate=0.05)
    model = nn.Sequential(scaler, mask, nn.Linear(len(rows.columns), 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
    selection = train(
        model, rows, nn.functional.mse_loss, ramp_steps=60, refinement_steps=30, checkpoint_every=20, **options
    )
    n_seen = sum(len(x) for x, _ in rows)
    weight = model[2].weight.detach()
    return {
        "n_seen": n_seen, "mean": scaler.mean, "scale": scaler.scale, "weight": weight, "n_steps": selection.n_steps,
        "indices": selection.indices.tolist(), "state": dict(mask.state_dict()),
    }  # fmt: skip


def killed(folder, rank):
    """The same run, in which the second process dies once at step 50."""

    def die(report):
        marker = folder / "died"
        if rank == 1 and report.step == 50 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return streamed(folder, checkpoint=folder / "run.pt", callbacks=[die])


def main(job, folder):
    """One of the processes that torchrun starts."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if job == "all":
        found = {"joined": joined(rank, world), "sharded": sharded(rank, world), "streamed": streamed(folder)}
    else:
        found = killed(folder, rank)
    torch.save(found, folder / f"{job}{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(sys.argv[1], Path(sys.argv[2]))
