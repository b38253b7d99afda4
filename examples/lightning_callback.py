"""Lightning: add one callback to the Trainer; the module only has a mask in front."""

import lightning.pytorch as pl
import torch
from torch import nn

from tamiz.torch import FeatureMask
from tamiz.torch.lightning import LightningMaskCallback


class Classifier(pl.LightningModule):
    """An ordinary module; nothing in it knows of the selection."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(
            FeatureMask(50, n_features_to_select=3), nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 2)
        )

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.model(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


pl.seed_everything(0, verbose=False)
x = torch.randn(512, 50)
y = (x[:, 4] + x[:, 19] - x[:, 36] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=128, shuffle=True)

module = Classifier()
trainer = pl.Trainer(
    max_epochs=400,
    accelerator="cpu",
    callbacks=[LightningMaskCallback(warmup=10, ramp=60, unit="epochs", stop_when_closed=True)],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(module, loader)

found = module.model[0].support().nonzero().flatten().tolist()
print(f"closed in epoch {trainer.current_epoch}; columns {found}")
assert found == [4, 19, 36]
