"""skorch: a network as a scikit-learn estimator, with one callback for the selection."""

import numpy as np
import torch
from skorch import NeuralNetClassifier
from torch import nn

from tamiz.torch import FeatureMask
from tamiz.torch.skorch import SkorchMaskCallback


class Net(nn.Module):
    """A mask and two layers."""

    def __init__(self, n_features_to_select: int = 3) -> None:
        super().__init__()
        self.mask = FeatureMask(50, n_features_to_select)
        self.layers = nn.Sequential(nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.mask(x))


torch.manual_seed(0)
random = np.random.default_rng(0)
X = random.standard_normal((600, 50)).astype(np.float32)
y = (X[:, 4] + X[:, 19] - X[:, 36] > 0).astype(np.int64)

net = NeuralNetClassifier(
    Net,
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    lr=0.01,
    batch_size=100,
    max_epochs=300,
    verbose=0,
    callbacks=[SkorchMaskCallback(warmup=10, ramp=60, unit="epochs", stop_when_closed=True)],
)
net.fit(X, y)

found = net.module_.mask.support().nonzero().flatten().tolist()
alive = net.history[:, "n_alive"]
print(f"closed after {len(alive)} epochs; columns {found}; validation accuracy {net.history[-1, 'valid_acc']:.3f}")
assert found == [4, 19, 36]
