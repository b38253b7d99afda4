"""Survival: which of 200 genes drive the risk, by Cox's partial likelihood with censored patients."""

import torch
from torch import nn

from tamiz.torch import FeatureMask


def partial_likelihood(risk: torch.Tensor, time: torch.Tensor, event: torch.Tensor) -> torch.Tensor:
    """Cox's loss: how unlikely it is that, of all who were still at risk, just this patient had the event."""
    order = time.argsort(descending=True)  # those before a patient in this order were still at risk
    risk, event = risk[order], event[order]
    return -((risk - risk.logcumsumexp(0)) * event).sum() / event.sum()


torch.manual_seed(0)
genes = torch.randn(300, 200)
hazard = 1.5 * genes[:, 13] - 1.5 * genes[:, 77] + 1.0 * genes[:, 140]
time = torch.distributions.Exponential(hazard.exp()).sample()
censoring = torch.distributions.Exponential(torch.full((300,), 0.3)).sample()
event = (time <= censoring).float()
time = torch.minimum(time, censoring)

mask = FeatureMask(200, n_features_to_select=3)
model = nn.Sequential(mask, nn.Linear(200, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=0.01)
mask.attach(optimizer, warmup_steps=100, ramp_steps=500)

while not mask.closed:
    optimizer.zero_grad()
    partial_likelihood(model(genes).squeeze(1), time, event).backward()
    optimizer.step()

found = mask.support().nonzero().flatten().tolist()
print(f"{int(event.sum())} events in 300 patients; the risk is driven by the genes {found}")
assert found == [13, 77, 140]
