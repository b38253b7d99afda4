"""What several processes do together: ``torchrun distributed_jobs.py JOB FOLDER``; each writes what it found."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tamiz.torch import FeatureMask, ParquetRows, Standardize, train


def run(rank, world, n_features, true, n_steps, wrap, before_step, **schedule):
    """gamma after each step, for the share of each batch that belongs to ``rank``."""
    torch.manual_seed(0)
    x = torch.randn(64, n_features)
    y = x[:, true[0]] - x[:, true[1]] * 2
    mask = FeatureMask(n_features, 2, mask_learning_rate=0.05)
    model = wrap(nn.Sequential(mask, nn.Linear(n_features, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask.attach(optimizer, **schedule)
    path = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rank::world]).squeeze(1), y[rank::world]).backward()
        before_step(mask, model)
        optimizer.step()
        path.append(mask.gamma.detach().clone())
    return {"path": torch.stack(path), "counters": mask.counters.clone()}


def joined(rank=0, world=1):
    """Data parallel by DDP."""

    def wrap(model):
        return DistributedDataParallel(model) if world > 1 else model

    return run(rank, world, 24, [5, 9], 30, wrap, lambda mask, model: None, warmup_steps=3, ramp_steps=60)


def sharded(rank, world):
    """Weights sharded by FSDP2 around a whole gamma, clipped, and trained on after the mask has closed."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def wrap(model):
        return fully_shard(model, mesh=init_device_mesh("cpu", (world,)), ignored_params={model[0].gamma})

    def before_step(mask, model):
        mask.average_gradient()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)

    return run(rank, world, 16, [2, 7], 180, wrap, before_step, warmup_steps=5, ramp_steps=60)


def found_by(mask, model, selection, **more):
    return {
        "weight": model[-2].weight.detach(), "n_steps": selection.n_steps, "indices": selection.indices.tolist(),
        "state": dict(mask.state_dict()), **more,
    }  # fmt: skip


def held_out():
    """The trainer with other rows for gamma: column 9 repeats the target of the rows that train the weights."""
    torch.manual_seed(0)
    x = torch.randn(128, 12)
    y = x[:, 4] - 2 * x[:, 7]
    x[:64, 9] = 3 * y[:64]
    mask = FeatureMask(12, 2, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0))
    rows = {"data": (x[:64], y[:64]), "held_out": (x[64:], y[64:])}
    selection = train(model, loss=nn.functional.mse_loss, ramp_steps=80, refinement_steps=5, **rows)
    return found_by(mask, model, selection)


def streamed(folder, **options):
    """A run over a Parquet file that each process reads its part of."""
    torch.manual_seed(0)
    rows = ParquetRows(folder / "table.parquet", target="y", batch_size=32, block_rows=64)
    scaler = Standardize(len(rows.columns)).fit(rows)
    mask = FeatureMask(len(rows.columns), 2, mask_learning_rate=0.05)
    model = nn.Sequential(scaler, mask, nn.Linear(len(rows.columns), 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
    steps = {"ramp_steps": 60, "refinement_steps": 30, "checkpoint_every": 20}
    selection = train(model, rows, nn.functional.mse_loss, **steps, **options)
    n_seen = sum(len(x) for x, _ in rows)
    return found_by(mask, model, selection, n_seen=n_seen, mean=scaler.mean, scale=scaler.scale)


def main(job, folder):
    """One of the processes that torchrun starts: all jobs, the last of which kills one of them, and that job again."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    def die(report):
        if job == "all" and rank == 1 and report.step == 50:
            os.kill(os.getpid(), signal.SIGKILL)

    if job == "all":
        found = {"joined": joined(rank, world), "sharded": sharded(rank, world), "held_out": held_out()}
        torch.save({**found, "streamed": streamed(folder)}, folder / f"all{rank}.pt")
        dist.barrier()
    torch.save(streamed(folder, checkpoint=folder / "run.pt", callbacks=[die]), folder / f"again{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(sys.argv[1], Path(sys.argv[2]))
