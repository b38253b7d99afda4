"""A recurrent network over a time series: the mask picks whole channels, not single moments.

A series is (channels, time); a mask of shape (channels, 1) has one entry a channel, the same at all moments.
"""

import torch
from torch import nn

from tamiz.torch import FeatureMask


class Reader(nn.Module):
    """Reads the masked series moment by moment."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.mask = FeatureMask((n_channels, 1), n_features_to_select=2, mask_learning_rate=0.02)
        self.gru = nn.GRU(n_channels, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(self.mask(series).transpose(1, 2))
        return self.out(states[:, -1]).squeeze(1)


torch.manual_seed(0)
series = torch.randn(256, 12, 10)
target = (
    series[:, 4].mean(1) * 3 + series[:, 9, -3:].mean(1) * 2
)  # a slow trend, and the last moments of another channel

model = Reader(12)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model.mask.attach(optimizer, warmup_steps=60, ramp_steps=150)

while not model.mask.closed:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(series), target).backward()
    optimizer.step()

found = model.mask.support().flatten().nonzero().flatten().tolist()
print(f"closed after {model.mask.step} steps; channels {found}")
assert found == [4, 9]
