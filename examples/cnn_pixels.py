"""A small convolutional network that reads 12 of the 64 pixels of scikit-learn's handwritten digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from tamiz.torch import FeatureMask

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
train, test = order[:1400], order[1400:]

mask = FeatureMask((1, 8, 8), n_features_to_select=12, mask_learning_rate=0.02)
model = nn.Sequential(mask, nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
mask.attach(optimizer, warmup_steps=60, ramp_steps=150)


def train_a_step() -> None:
    rows = train[torch.randint(len(train), (128,))]
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
    optimizer.step()


while not mask.closed:
    train_a_step()
for _ in range(200):  # refinement: gamma rests, the weights are trained on
    train_a_step()

with torch.no_grad():
    accuracy = (model(images[test]).argmax(1) == labels[test]).float().mean().item()
print("pixels kept:")
print("\n".join("".join("#" if kept else "." for kept in row) for row in mask.support()[0].tolist()))
print(f"accuracy with 12 of 64 pixels: {accuracy:.3f}")
assert int(mask.support().sum()) == 12
assert not mask.support()[0, :, 0].any(), "the left edge is empty in every digit"
assert accuracy > 0.85
