"""Regression: four of a hundred columns make the target, one of them only by its square."""

import torch
from torch import nn

from tamiz.torch import FeatureMask

torch.manual_seed(0)
x = torch.randn(600, 100)
y = 2 * x[:, 8] - x[:, 33] + x[:, 60] ** 2 + torch.sin(2 * x[:, 91]) + 0.1 * torch.randn(600)

mask = FeatureMask(100, n_features_to_select=4)
model = nn.Sequential(mask, nn.Linear(100, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
mask.attach(optimizer, warmup_steps=150, ramp_steps=500)

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=100, shuffle=True)
while not mask.closed:
    for inputs, target in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs).squeeze(1), target).backward()
        optimizer.step()

found = mask.support().nonzero().flatten().tolist()
print(f"closed by step {mask.step}; the target is made of the columns {found}")
assert found == [8, 33, 60, 91]
