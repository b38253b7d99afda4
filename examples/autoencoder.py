"""Without labels: keep the five columns from which all forty can be rebuilt.

Five columns hold what there is to know; each of the others is a mixture of three of them, with noise.
"""

import torch
from torch import nn

from tamiz.torch import FeatureMask

torch.manual_seed(0)
sources = [4, 12, 21, 30, 38]
x = torch.empty(500, 40)
x[:, sources] = torch.randn(500, 5)
for column in set(range(40)) - set(sources):
    mixed = torch.tensor(sources)[torch.randperm(5)[:3]]
    x[:, column] = x[:, mixed].sum(1) / 3 + 0.3 * torch.randn(500)

mask = FeatureMask(40, n_features_to_select=5, mask_learning_rate=0.02)
model = nn.Sequential(mask, nn.Linear(40, 20), nn.Linear(20, 40))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
mask.attach(optimizer, warmup_steps=100, ramp_steps=400)

while not mask.closed:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()

found = mask.support().nonzero().flatten().tolist()
print(f"closed after {mask.step} steps; columns {found} rebuild all 40 with a squared error of {loss.item():.3f}")
assert found == sources
