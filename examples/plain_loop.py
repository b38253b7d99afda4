"""Three lines in a training loop of your own: make a mask, put it into the model, attach it to the optimizer."""

import torch
from torch import nn

from tamiz.torch import FeatureMask

torch.manual_seed(0)
x = torch.randn(500, 40)
y = (x[:, 5] * x[:, 17] > 0).long()  # only the two together tell the class

mask = FeatureMask(40, n_features_to_select=2)  # 1
model = nn.Sequential(mask, nn.Linear(40, 50), nn.ReLU(), nn.Linear(50, 2))  # 2
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
mask.attach(optimizer, warmup_steps=200, ramp_steps=600)  # 3

while not mask.closed:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()

found = mask.support().nonzero().flatten().tolist()
print(f"closed after {mask.step} steps, loss {loss.item():.4f}, features {found}")
assert found == [5, 17]
