"""Selection inside Lightning's automatic optimisation."""

import importlib
import sys

import lightning.pytorch as pl
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from tamiz.torch import FeatureMask
from tamiz.torch.lightning import LightningMaskCallback

# Most fits here are short and end in mid-selection.
pytestmark = pytest.mark.filterwarnings("ignore:the fit ended before the mask")


class Regression(pl.LightningModule):
    def __init__(self, model, lr=0.05):
        super().__init__()
        self.model = model
        self.lr = lr
        self.path = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.model(x).squeeze(1).float(), y)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.path.append(self.model[0].gamma.detach().clone())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


@pytest.fixture
def fit(table, tmp_path):
    def run(module, callback, batch_size=64, max_epochs=10, ckpt_path=None, **options):
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*table), batch_size=batch_size)
        trainer = pl.Trainer(
            max_epochs=max_epochs,
            accelerator="cpu",
            devices=1,
            callbacks=[callback],
            default_root_dir=tmp_path,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            log_every_n_steps=1,
            logger=False,
            **options,
        )
        trainer.fit(module, loader, ckpt_path=ckpt_path)
        return trainer

    return run


def test_the_path_is_that_of_the_plain_loop(build, run_steps, table, fit):
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model = build(hidden=8)
    module = Regression(model)
    trainer = fit(module, LightningMaskCallback(warmup=5, ramp=60), batch_size=256, max_epochs=20)
    assert torch.equal(torch.stack(module.path), expected)
    assert int(trainer.callback_metrics["n_alive"]) == mask.n_alive
    assert mask._handle is None
    assert not trainer.optimizers[0]._optimizer_step_pre_hooks


def test_accumulated_batches_make_one_step_and_epochs_are_counted_in_them(build, fit):
    mask, model = build()
    callback = LightningMaskCallback(warmup=2, ramp=20, limit=50, unit="epochs")
    fit(Regression(model), callback, max_epochs=3, accumulate_grad_batches=3)
    assert mask.step == 3 * 2  # four batches: three, and the last one alone
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == (4, 40, 100)


def test_mixed_precision_and_an_early_stop(build, fit, true_features):
    mask, model = build(hidden=16)
    callback = LightningMaskCallback(warmup=10, ramp=100, stop_when_closed=True)
    trainer = fit(Regression(model), callback, max_epochs=300, precision="bf16-mixed", gradient_clip_val=1.0)
    assert mask.closed
    assert trainer.current_epoch < 100
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_a_resumed_fit_goes_on_where_it_stopped(build, fit, tmp_path):
    callback = {"warmup": 2, "ramp": 60}
    module = Regression(build(hidden=8)[1])
    fit(module, LightningMaskCallback(**callback), max_epochs=8)
    half = Regression(build(hidden=8)[1])
    fit(half, LightningMaskCallback(**callback), max_epochs=4).save_checkpoint(tmp_path / "half.ckpt")
    resumed = Regression(build(hidden=8)[1])
    fit(resumed, LightningMaskCallback(**callback), max_epochs=8, ckpt_path=tmp_path / "half.ckpt")
    assert torch.equal(torch.stack(half.path + resumed.path), torch.stack(module.path))


def test_two_masks_are_logged_by_name(table, fit):
    class Both(Regression):
        def __init__(self):
            super().__init__(nn.Sequential(FeatureMask(16, 3), nn.Linear(16, 4), FeatureMask(4, 2), nn.Linear(4, 1)))

    trainer = fit(Both(), LightningMaskCallback(), max_epochs=1)
    assert {"model.0.n_alive", "model.2.n_alive"} <= set(trainer.callback_metrics)


def test_refusals_leave_no_hook(build, fit):
    with pytest.raises(ValueError, match="unit must be 'steps' or 'epochs', got 'hours'"):
        LightningMaskCallback(unit="hours")
    with pytest.raises(ValueError, match="there is no FeatureMask in this model"):
        fit(Regression(nn.Sequential(nn.Linear(16, 1))), LightningMaskCallback())

    class Forgetful(Regression):
        def configure_optimizers(self):
            return torch.optim.SGD(self.model[1:].parameters(), lr=0.1)

    mask, model = build()
    with pytest.raises(ValueError, match=r"no optimizer holds gamma of the mask 'model\.0'"):
        fit(Forgetful(model), LightningMaskCallback())
    assert mask._handle is None


def test_a_fit_that_breaks_leaves_the_mask_free(build, fit):
    class Broken(Regression):
        def training_step(self, batch, batch_idx):
            if batch_idx == 2:
                raise RuntimeError("the third batch is broken")
            return super().training_step(batch, batch_idx)

    mask, model = build()
    with pytest.raises(RuntimeError, match="the third batch is broken"):
        fit(Broken(model), LightningMaskCallback())
    assert mask._handle is None
    assert mask.step == 2


def test_a_fit_that_ends_with_an_open_mask_warns(build, fit):
    with pytest.warns(
        ConvergenceWarning, match=r"ended before the mask 'model\.0' was closed: 16 features are alive, 3"
    ):
        fit(Regression(build()[1]), LightningMaskCallback(warmup=100), max_epochs=1)


def test_a_second_fit_without_the_callback_does_not_move_gamma(build, fit):
    mask, model = build(hidden=8)
    fit(Regression(model), LightningMaskCallback(warmup=2, ramp=60), max_epochs=5)
    before = mask.gamma.detach().clone()
    with pytest.warns(UserWarning, match="trained without an optimizer"):
        fit(Regression(model), pl.Callback(), max_epochs=2)
    assert torch.equal(mask.gamma, before)


@pytest.fixture
def import_again(monkeypatch):
    """A function that imports the adapter afresh; afterwards all modules are as before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightning"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "tamiz.torch.lightning")
    return lambda: importlib.import_module("tamiz.torch.lightning")


def test_lightning_that_is_not_installed_is_named(import_again, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(
        ImportError, match=r'needs lightning\.pytorch\. Install it with: pip install "tamiz\[lightning\]"'
    ):
        import_again()


def test_an_error_inside_an_installed_lightning_is_shown_as_it_is(import_again, monkeypatch, tmp_path):
    (tmp_path / "lightning" / "pytorch").mkdir(parents=True)
    (tmp_path / "lightning" / "__init__.py").touch()
    (tmp_path / "lightning" / "pytorch" / "__init__.py").write_text("raise ImportError('libfoo.so is too old')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"^libfoo\.so is too old$"):
        import_again()
