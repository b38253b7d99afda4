"""Several labels at once: each of three labels depends on its own two columns, and one mask serves all."""

import torch
from torch import nn

from tamiz.torch import FeatureMask

torch.manual_seed(0)
x = torch.randn(800, 60)
true = [(3, 11), (20, 27), (41, 55)]
labels = torch.stack([(x[:, a] + x[:, b] > 0).float() for a, b in true], dim=1)

mask = FeatureMask(60, n_features_to_select=6)
model = nn.Sequential(mask, nn.Linear(60, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
mask.attach(optimizer, warmup_steps=100, ramp_steps=400)

while not mask.closed:
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(x), labels).backward()
    optimizer.step()

found = mask.support().nonzero().flatten().tolist()
right = ((model(x) > 0) == labels.bool()).float().mean(0)
print(f"columns {found}; right by label: {[round(share, 3) for share in right.tolist()]}")
assert found == sorted(column for pair in true for column in pair)
assert right.min() > 0.95
