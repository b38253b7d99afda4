"""The same training by one process or, under torchrun, by several that share each batch: ``joined_batches.py FOLDER``."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from tamiz.torch import FeatureMask

N_STEPS = 40


def train(rank=0, world=1):
    """gamma after each step, for the share of each batch that belongs to ``rank``."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(64, 24)
    y = x[:, 5] - x[:, 9] * 2
    mask = FeatureMask(24, 4, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(24, 8), nn.Tanh(), nn.Linear(8, 1))
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    mask.attach(optimizer, warmup_steps=3, ramp_steps=60)
    path = []
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rank::world]).squeeze(1), y[rank::world]).backward()
        optimizer.step()
        path.append(mask.gamma.detach().clone())
    return {"path": torch.stack(path), "state": mask.state_dict()}


def main(folder):
    """One of the processes that torchrun starts."""
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.save(train(rank, world), Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(sys.argv[1])
