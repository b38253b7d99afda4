"""Selection inside Lightning, skorch and Hugging Face's Trainer: one contract for all three, and what each has of its own."""

import copy
import importlib
import pickle
import sys

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, EMAWeightAveraging, ModelCheckpoint
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint as SkorchCheckpoint
from skorch.callbacks import EarlyStopping as SkorchEarlyStopping
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from tamiz.torch import FeatureMask
from tamiz.torch.callbacks import MaskCallback, all_closed
from tamiz.torch.lightning import LightningMaskCallback
from tamiz.torch.skorch import SkorchMaskCallback

transformers = pytest.importorskip("transformers", reason="needs the package transformers")

from tamiz.torch.transformers import TransformersMaskCallback  # noqa: E402

# Most fits here are short and end in mid-selection.
pytestmark = pytest.mark.filterwarnings(
    "ignore:the fit ended before the mask", "ignore:You defined a `validation_step` but have no"
)


STEPS = {"warmup": 0, "ramp": 2000, "limit": None, "unit": "steps"}


class LightningRegression(pl.LightningModule):
    def __init__(self, model, lr=0.05):
        super().__init__()
        self.model, self.lr, self.logged = model, lr, []

    def training_step(self, batch, batch_idx):
        value = nn.functional.mse_loss(self.model(batch[0]).squeeze(1).float(), batch[1])
        self.log("train", value)
        self.logged.append(len(batch[0]))
        return value

    def validation_step(self, batch, batch_idx):
        self.log("valid", nn.functional.mse_loss(self.model(batch[0]).squeeze(1), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class HuggingFaceRegression(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        out = self.model(x).squeeze(1)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


class Framework:
    """One interface to fit with three packages: ``fit`` returns the last number of features alive that was logged."""

    def __init__(self, folder):
        self.folder = folder


class Lightning(Framework):
    """Fit with Lightning; one step is one epoch."""

    name = "model.0"

    def held_out(self, x, y):
        return DataLoader(TensorDataset(x, y), batch_size=len(x))

    def fit(
        self,
        model,
        table,
        options,
        n_steps,
        lr=0.05,
        batch_size=256,
        before=(),
        more=(),
        valid=False,
        ckpt=None,
        **others,
    ):
        self.callback = LightningMaskCallback(**{**STEPS, **options})
        self.module = LightningRegression(model, lr)
        rows = DataLoader(TensorDataset(*table), batch_size=batch_size)
        self.trainer = pl.Trainer(
            max_epochs=n_steps, accelerator="cpu", devices=1, callbacks=[*before, self.callback, *more], logger=False,
            default_root_dir=self.folder, enable_progress_bar=False, enable_model_summary=False,
            **{"enable_checkpointing": False, "log_every_n_steps": 1, **others},
        )  # fmt: skip
        self.trainer.fit(self.module, rows, rows if valid else None, ckpt_path=ckpt)
        return int(self.trainer.callback_metrics["n_alive"])

    def half_and_half(self, model, fresh, table, options):
        self.fit(model, table, options, 5)
        self.trainer.save_checkpoint(self.folder / "half.ckpt")
        self.fit(fresh, table, options, 10, ckpt=self.folder / "half.ckpt")

    def stopping(self):
        best = ModelCheckpoint(self.folder, monitor="valid", save_top_k=2)
        return {"more": [EarlyStopping("valid", patience=2), best], "valid": True, "enable_checkpointing": True}

    def best_state(self):
        best = self.trainer.checkpoint_callback.best_model_path
        state = torch.load(best, weights_only=False)["state_dict"]
        return {name.removeprefix("model."): value for name, value in state.items()}


class Skorch(Framework):
    """Fit with skorch; one step is one epoch."""

    name = "0"

    def held_out(self, x, y):
        return [(x, y[:, None])]

    def fit(self, model, table, options, n_steps, *, lr=0.05, batch_size=256, more=()):
        self.net = NeuralNetRegressor(
            model, lr=lr, batch_size=batch_size, train_split=None, verbose=0, max_epochs=n_steps,
            callbacks=[("mask", SkorchMaskCallback(**{**STEPS, **options})), *more],
        )  # fmt: skip
        self.net.initialize()
        self.net.module_ = model  # skorch would train a copy of a module that is built already
        self.net.optimizer_ = torch.optim.SGD(model.parameters(), lr=lr)
        self.net.partial_fit(table[0].numpy(), table[1].numpy()[:, None])
        return self.net.history[-1, "n_alive"]

    def half_and_half(self, model, fresh, table, options):
        self.fit(fresh, table, options, 5)
        self.net.partial_fit(table[0].numpy(), table[1].numpy()[:, None])

    def stopping(self):
        stop = SkorchEarlyStopping(monitor="train_loss", patience=2)
        best = SkorchCheckpoint(monitor="train_loss_best", dirname=str(self.folder))
        return {"more": [("stop", stop), ("best", best)]}

    def best_state(self):
        return torch.load(self.folder / "params.pt", weights_only=True)


class HuggingFace(Framework):
    """Fit with the Trainer of transformers."""

    name = "model.0"

    def held_out(self, x, y):
        return [{"x": x, "labels": y}]

    def fit(self, model, table, options, n_steps, *, lr=0.05, batch_size=256, more=(), resume=None, **others):
        arguments = transformers.TrainingArguments(
            output_dir=str(self.folder / "out"), per_device_train_batch_size=batch_size, per_device_eval_batch_size=256,
            optim="sgd", report_to="none", disable_tqdm=True, use_cpu=True, max_steps=n_steps, learning_rate=lr,
            **{"lr_scheduler_type": "constant", "save_strategy": "no", "max_grad_norm": 0.0, "logging_steps": 1, **others},
        )  # fmt: skip
        rows = [{"x": x, "labels": y} for x, y in zip(*table)]
        self.trainer = transformers.Trainer(
            HuggingFaceRegression(model), arguments, train_dataset=rows, eval_dataset=rows,
            callbacks=[TransformersMaskCallback(**{**STEPS, **options}), *more],
        )  # fmt: skip
        self.trainer.train(resume_from_checkpoint=resume)
        return [row["n_alive"] for row in self.trainer.state.log_history if "n_alive" in row][-1]

    def half_and_half(self, model, fresh, table, options):
        self.fit(model, table, options, 5, save_strategy="steps", save_steps=5)
        self.fit(fresh, table, options, 10, resume=str(self.folder / "out" / "checkpoint-5"))

    def stopping(self):
        stop = transformers.EarlyStoppingCallback(early_stopping_patience=2)
        often = {"eval_strategy": "steps", "eval_steps": 1, "save_strategy": "steps", "save_steps": 1}
        best = {"load_best_model_at_end": True, "metric_for_best_model": "loss", "save_total_limit": 2}
        return {"more": [stop], **best, **often}

    def best_state(self):
        return self.trainer.model.model.state_dict()


@pytest.fixture(params=[Lightning, Skorch, HuggingFace], ids=["lightning", "skorch", "transformers"])
def framework(request, tmp_path):
    return request.param(tmp_path)


def test_gamma_takes_the_path_of_the_plain_loop_also_in_a_resumed_fit(framework, build, start, run_steps, table):
    mask, _, _ = start(10, hidden=8)
    expected, options = mask.gamma.detach().clone(), {"warmup": 5, "ramp": 60}
    assert (expected < 1).any()
    mask, model = build(hidden=8)
    n_alive = framework.fit(model, table, options, 10)
    resumed, other = build(hidden=8)
    framework.half_and_half(build(hidden=8)[1], other, table, options)
    for found in (mask, resumed):
        torch.testing.assert_close(found.gamma.detach(), expected, rtol=1e-3, atol=1e-3)  # the rows may be shuffled
        assert (found.step, found.n_alive) == (10, n_alive)
        assert found._handle is None


UNITS = {  # options, steps at most, rows in a batch, schedule in steps
    "epochs": (
        {"warmup": 3, "ramp": 30, "limit": 60, "unit": "epochs", "stop_when_closed": True},
        400,
        64,
        (12, 120, 240),
    ),
    "fractions": ({"warmup": 0.1, "ramp": 0.3, "unit": "fraction"}, 160, 256, (16, 48, 96)),
}


@pytest.mark.parametrize("unit", UNITS)
def test_schedules_in_epochs_and_fractions_and_an_early_end(framework, unit, build, table, true_features):
    options, n_steps, batch_size, expected = UNITS[unit]
    mask, model = build()
    framework.fit(model, table, options, n_steps, batch_size=batch_size)
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == expected
    assert mask.closed
    assert mask.step < 390
    assert mask.support().nonzero().flatten().tolist() == true_features
    if isinstance(framework, HuggingFace):
        assert framework.trainer.state.log_history[-2]["gamma_sum"] == 3


def test_refusals_warnings_and_a_fit_that_breaks_leave_the_mask_free(framework, build, table):
    mask, model = build()
    with pytest.raises(ValueError, match=r"unit must be one of .*'steps', 'epochs', got 'hours'"):
        framework.fit(model, table, {"unit": "hours"}, 1)
    with pytest.raises(ValueError, match="there is no FeatureMask in this model"):
        framework.fit(nn.Sequential(nn.Linear(16, 1)), table, {}, 1)
    broken = table[0].clone()
    broken[0, 0] = torch.nan
    with pytest.raises(FloatingPointError, match="gamma is NaN"):
        framework.fit(model, (broken, table[1]), {"ramp": 60}, 1)
    mask, model = build()
    with pytest.warns(ConvergenceWarning, match=f"mask '{framework.name}' was closed: 16 features are alive, 3"):
        framework.fit(model, table, {"warmup": 100, "ramp": 60}, 1)
    assert mask._handle is None


def test_held_out_rows_alone_move_gamma(framework, build, table):
    """The rows that train the weights, at a rate of zero, are noise."""
    noise = torch.randn(64, 16, generator=torch.Generator().manual_seed(1))
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    mask.attach(optimizer, warmup_steps=2, ramp_steps=60)
    for _ in range(15):
        with mask.held_out():
            nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()
        optimizer.step()
    expected = mask.gamma.detach().clone()
    assert (expected < 1).any()
    mask, model = build(hidden=8)
    options = {"warmup": 2, "ramp": 60, "held_out": framework.held_out(*table)}
    framework.fit(model, (noise, noise[:, 0]), options, 15, lr=0.0)
    torch.testing.assert_close(mask.gamma.detach(), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="the data gives no batches"):
        framework.fit(build()[1], table, {"held_out": []}, 1)


def test_open_masks_count_neither_for_early_stopping_nor_for_the_best_checkpoint(framework, build, table):
    """A fixed network whose loss only grows while columns are taken away: the first evaluation would be the best."""
    mask, model = build()
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].weight[0, [2, 7, 11, 0]] = torch.tensor([1.0, -2.0, 1.5, 1e-3])
        model[1].bias.zero_()
    framework.fit(model, table, {"warmup": 4, "ramp": 30, "limit": 30}, 60, lr=0.0, **framework.stopping())
    assert mask.closed
    assert 8 < mask.step < 60, "it stopped, and not before the mask was closed"
    best = build()[1]
    best.load_state_dict(framework.best_state())
    assert best[0].closed
    assert int(best[0].gamma.sum()) == 3


# ---- what each has of its own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("use_buffers", [True, False])
def test_averages_of_lightning_leave_the_mask_closed(build, table, true_features, tmp_path, first, use_buffers):
    mask, model = build(hidden=8)
    average = EMAWeightAveraging(decay=0.95, use_buffers=use_buffers)
    runner = Lightning(tmp_path)
    # The average is put in place before the callback of the mask is told of the end, or after that.
    callbacks = {"before" if first else "more": [average], "valid": True}
    runner.fit(model, table, {"warmup": 5, "ramp": 30}, 90, **callbacks)
    assert mask.closed
    assert torch.equal(mask.gamma.detach(), torch.zeros(16).index_fill(0, torch.tensor(true_features), 1.0))


def test_lightning_accumulates_clips_and_logs_what_trains_the_weights(build, table, tmp_path):
    mask, model = build()
    runner = Lightning(tmp_path)
    more = {"accumulate_grad_batches": 3, "gradient_clip_val": 1.0, "precision": "bf16-mixed"}
    options = {"warmup": 2, "ramp": 20, "limit": 50, "unit": "epochs", "held_out": runner.held_out(*table)}
    runner.fit(model, table, options, 3, batch_size=64, **more)
    assert mask.step == 3 * 2  # four batches: three, and the last one alone
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == (4, 40, 100)
    assert runner.module.logged.count(256) == 6, "a batch of held-out rows for each step of the optimizer"


def test_two_masks_are_logged_by_name(table, tmp_path):
    model = nn.Sequential(FeatureMask(16, 3), nn.Linear(16, 4), FeatureMask(4, 2), nn.Linear(4, 1))
    runner = Lightning(tmp_path)
    with pytest.raises(KeyError):  # there is no plain n_alive
        runner.fit(model, table, {}, 1)
    assert {"model.0.n_alive", "model.2.n_alive"} <= set(runner.trainer.callback_metrics)


class Net(nn.Module):
    def __init__(self, n_outputs=1):
        super().__init__()
        self.mask, self.layer = FeatureMask(16, 3, mask_learning_rate=0.05), nn.Linear(16, n_outputs)

    def forward(self, x):
        return self.layer(self.mask(x))


def test_a_skorch_classifier_with_a_split_can_be_cloned_and_pickled(table):
    x = table[0].numpy()
    y = (x[:, 2] + x[:, 7] > 0).astype(np.int64)
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        Net, module__n_outputs=2, criterion=nn.CrossEntropyLoss, max_epochs=3, verbose=0, batch_size=50,
        callbacks=[("mask", SkorchMaskCallback(warmup=2, ramp=20, unit="epochs"))], callbacks__mask__ramp=25,
    )  # fmt: skip
    fitted = clone(net).fit(x, y)
    assert fitted.module_.mask.rule.ramp_steps == 25 * 5  # 204 of the 256 rows train, in five batches
    restored = pickle.loads(pickle.dumps(fitted))
    assert torch.equal(restored.module_.mask.gamma, fitted.module_.mask.gamma)
    restored.partial_fit(x, y)
    assert restored.module_.mask.step == 30


def test_rows_without_a_known_length_need_a_schedule_in_steps(build, tmp_path):
    class Stream(IterableDataset):
        def __iter__(self):
            while True:
                yield {"x": torch.ones(16), "labels": torch.tensor(1.0)}

    mask, model = build()
    arguments = transformers.TrainingArguments(str(tmp_path), max_steps=2, report_to="none", use_cpu=True)
    callback = TransformersMaskCallback(1, 10, None, unit="epochs")
    trainer = transformers.Trainer(
        HuggingFaceRegression(model), arguments, train_dataset=Stream(), callbacks=[callback]
    )
    with pytest.raises(ValueError, match="length of the fit is not known here; give the schedule with unit='steps'"):
        trainer.train()
    assert mask._handle is None


def test_all_masks_are_attached_or_none_and_a_copy_to_nothing():
    model = nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 3), FeatureMask(3, 2), nn.Linear(3, 1))
    callback = MaskCallback(0, 10, None, "steps")
    with pytest.raises(ValueError, match="no optimizer holds gamma of the mask '2'"):
        callback._attach(model, [torch.optim.SGD(model[:2].parameters(), lr=0.1)], 1, 1, None)
    assert not callback.handles_
    callback._attach(model, [torch.optim.SGD(model.parameters(), lr=0.1)], 1, 1, None)  # the first one is free again
    assert len(callback.handles_) == 2
    assert not copy.deepcopy(callback).handles_
    with pytest.warns(ConvergenceWarning, match="before the mask '[02]' was closed") as warned:
        callback._end(model)
    assert len(warned) == 2
    assert not callback.handles_
    assert not all_closed(model)
    assert MaskCallback(2, 10, None, "epochs").in_steps(2.5, 9)["ramp_steps"] == 30, "a part of a batch is a whole step"


@pytest.mark.parametrize(("name", "package"), [("lightning", "lightning"), ("transformers", "transformers")])
def test_a_package_that_is_not_installed_is_named(name, package, monkeypatch):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, f"tamiz.torch.{name}")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'needs {package}.*Install it with: pip install "tamiz\[{name}\]"'):
        importlib.import_module(f"tamiz.torch.{name}")
