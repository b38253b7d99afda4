"""A transformer over the columns of a table: each column is a token, and the mask decides which columns are read."""

import torch
from torch import nn

from tamiz.torch import FeatureMask


class ColumnTransformer(nn.Module):
    """A number becomes a token by scaling the embedding of its column."""

    def __init__(self, n_columns: int, width: int = 16) -> None:
        super().__init__()
        self.mask = FeatureMask(n_columns, n_features_to_select=3, mask_learning_rate=0.02)
        self.columns = nn.Parameter(torch.randn(n_columns, width) * 0.3)
        self.encoder = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.mask(x)[:, :, None] * self.columns
        return self.out(self.encoder(tokens).mean(1)).squeeze(1)


torch.manual_seed(0)
x = torch.randn(256, 16)
y = x[:, 2] - 1.5 * x[:, 6] + x[:, 13]

model = ColumnTransformer(16)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
model.mask.attach(optimizer, warmup_steps=80, ramp_steps=150)

while not model.mask.closed:
    rows = torch.randint(256, (64,))
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
    optimizer.step()

found = model.mask.support().nonzero().flatten().tolist()
print(
    f"closed after {model.mask.step} steps; columns {found}, best first {model.mask.ranking().argsort()[:3].tolist()}"
)
assert found == [2, 6, 13]
