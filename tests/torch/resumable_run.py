"""A training run that checkpoints as it goes, and can be killed with SIGKILL: ``python resumable_run.py FILE KILL_AT``.

A run that ends writes gamma after each of its steps to ``FILE.path``.
"""

import os
import signal
import sys

import torch
from torch import nn

from tamiz.torch import FeatureMask

EVERY = 7


def run(checkpoint, kill_at=None):
    """Train to the end, from the checkpoint if there is one; returns gamma after each step that this process took."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(200, 30)
    y = x[:, 3] * x[:, 4] + x[:, 8]
    mask = FeatureMask(30, 5, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(30, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask.attach(optimizer, warmup_steps=10, ramp_steps=100)
    step = 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    path = {}
    while not mask.closed:
        step += 1
        rows = torch.randperm(200, generator=torch.Generator().manual_seed(step))[:64]
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows]).backward()
        optimizer.step()
        path[step] = mask.gamma.detach().clone()
        if step % EVERY == 0:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, checkpoint + ".new"
            )
            os.replace(checkpoint + ".new", checkpoint)
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    return path


if __name__ == "__main__":
    torch.save(run(sys.argv[1], int(sys.argv[2])), sys.argv[1] + ".path")
