"""Selection inside Hugging Face's Trainer."""

import importlib
import sys

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from tamiz.torch import FeatureMask

transformers = pytest.importorskip("transformers", reason="needs the package transformers")

from tamiz.torch.transformers import TransformersMaskCallback  # noqa: E402

# Most trainings here are short and end in mid-selection.
pytestmark = pytest.mark.filterwarnings("ignore:the fit ended before the mask")


class Regression(nn.Module):
    """What the Trainer asks of a model: named inputs, and a loss in the output."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        out = self.model(x).squeeze(1)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


class Watch(transformers.TrainerCallback):
    """Notes gamma after each step, and the best metric that an evaluation finds."""

    def __init__(self):
        self.path, self.best, self.closed = [], [], []

    def on_step_end(self, args, state, control, model, **kwargs):
        self.path.append(model.model[0].gamma.detach().clone())

    def on_evaluate(self, args, state, control, model, **kwargs):
        self.best.append(state.best_metric)
        self.closed.append(model.model[0].closed)


@pytest.fixture
def fit(table, tmp_path):
    rows = [{"x": x, "labels": y} for x, y in zip(*table)]

    def run(model, *callbacks, batch_size=64, resume=None, **options):
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=batch_size,
            per_device_eval_batch_size=256,
            optim="sgd",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            **{"learning_rate": 0.05, "lr_scheduler_type": "constant", "save_strategy": "no", **options},
        )
        trainer = transformers.Trainer(
            model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=list(callbacks)
        )
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    return run


def test_the_path_is_that_of_the_plain_loop(build, run_steps, table, fit):
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model = build(hidden=8)
    watch = Watch()
    callback = TransformersMaskCallback(warmup=5, ramp=60, limit=None, unit="steps")
    trainer = fit(Regression(model), callback, watch, batch_size=256, max_steps=20, max_grad_norm=0.0, logging_steps=5)
    assert (expected[-1] < 1).any()
    torch.testing.assert_close(torch.stack(watch.path), expected, rtol=1e-3, atol=1e-3)  # the rows are shuffled
    row = trainer.state.log_history[3]
    assert row["step"] == 20
    assert row["n_alive"] == mask.n_alive
    assert row["gamma_sum"] == pytest.approx(float(mask.gamma.detach().sum()))
    assert mask._handle is None
    assert not trainer.optimizer.optimizer._optimizer_step_pre_hooks


def test_the_default_closes_within_the_training(build, fit, true_features):
    mask, model = build()
    fit(Regression(model), TransformersMaskCallback(), max_steps=200)
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == (20, 60, 120)
    assert mask.closed
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_accumulated_batches_make_one_step_and_epochs_are_counted_in_them(build, fit):
    mask, model = build()
    callback = TransformersMaskCallback(warmup=2, ramp=20, limit=50, unit="epochs")
    fit(Regression(model), callback, num_train_epochs=3, gradient_accumulation_steps=3)
    assert mask.step == 3 * 2  # four batches: three, and the last one alone
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == (4, 40, 100)


def test_an_early_stop(build, fit):
    mask, model = build()
    trainer = fit(Regression(model), TransformersMaskCallback(stop_when_closed=True), max_steps=200)
    assert mask.closed
    assert trainer.state.global_step == mask.step < 190


def test_a_resumed_training_goes_on_where_it_stopped(build, fit, tmp_path):
    lengths = {"warmup": 2, "ramp": 40, "limit": None, "unit": "steps"}
    whole, half, resumed = Watch(), Watch(), Watch()
    saving = {"save_strategy": "steps", "save_steps": 6}
    fit(Regression(build(hidden=8)[1]), TransformersMaskCallback(**lengths), whole, max_steps=12)
    fit(Regression(build(hidden=8)[1]), TransformersMaskCallback(**lengths), half, max_steps=6, **saving)
    checkpoint = str(tmp_path / "out" / "checkpoint-6")
    model = Regression(build(hidden=8)[1])
    fit(model, TransformersMaskCallback(**lengths), resumed, max_steps=12, resume=checkpoint)
    assert (whole.path[-1] < 1).any()
    assert torch.equal(torch.stack(half.path + resumed.path), torch.stack(whole.path))


def test_open_masks_count_neither_for_the_best_checkpoint_nor_for_early_stopping(build, fit):
    """A fixed network whose loss only grows while columns are taken away: the first evaluation would be the best."""
    mask, model = build()
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].weight[0, [2, 7, 11, 0]] = torch.tensor([1.0, -2.0, 1.5, 1e-3])
        model[1].bias.zero_()
    watch = Watch()
    trainer = fit(
        Regression(model),
        TransformersMaskCallback(warmup=4, ramp=30, limit=30, unit="steps"),
        watch,
        transformers.EarlyStoppingCallback(early_stopping_patience=1),
        max_steps=60,
        learning_rate=0.0,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="steps",
        save_steps=4,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
    )
    n_open = watch.closed.count(False)
    assert n_open > 2
    assert watch.best[: n_open + 1] == [None] * (n_open + 1)
    assert trainer.state.best_global_step == 4 * (n_open + 1)
    assert trainer.state.global_step == 4 * (n_open + 2), "early stopping counts from the first closed mask"
    assert mask.closed, "the best checkpoint is one with a closed mask"
    assert int(mask.gamma.sum()) == 3


def test_two_masks_are_logged_by_name(fit):
    model = nn.Sequential(FeatureMask(16, 3), nn.Linear(16, 4), FeatureMask(4, 2), nn.Linear(4, 1))
    trainer = fit(Regression(model), TransformersMaskCallback(10, 10, None, unit="steps"), max_steps=1, logging_steps=1)
    assert trainer.state.log_history[0]["model.0.n_alive"] == 16
    assert trainer.state.log_history[0]["model.2.gamma_sum"] == 4


def test_errors_leave_no_hook(build, fit):
    with pytest.raises(ValueError, match="unit must be 'fraction', 'steps' or 'epochs', got 'hours'"):
        TransformersMaskCallback(unit="hours")
    with pytest.raises(ValueError, match="there is no FeatureMask in this model"):
        fit(Regression(nn.Sequential(nn.Linear(16, 1))), TransformersMaskCallback(), max_steps=1)


def test_rows_without_a_known_length_need_a_schedule_in_steps(build, tmp_path):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield {"x": torch.ones(16), "labels": torch.tensor(1.0)}

    mask, model = build()
    arguments = transformers.TrainingArguments(str(tmp_path), max_steps=2, report_to="none", use_cpu=True)
    callback = TransformersMaskCallback(1, 10, None, unit="epochs")
    trainer = transformers.Trainer(Regression(model), arguments, train_dataset=Stream(), callbacks=[callback])
    with pytest.raises(ValueError, match="length of an epoch is not known here; give the schedule with unit='steps'"):
        trainer.train()
    assert mask._handle is None


def test_a_training_after_one_that_broke(build, fit):
    class Broken(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            raise RuntimeError("the first step is broken")

    mask, model = build()
    callback = TransformersMaskCallback(2, 40, None, unit="steps")
    with pytest.raises(RuntimeError, match="the first step is broken"):
        fit(Regression(model), callback, Broken(), max_steps=3)
    fit(Regression(model), callback, max_steps=3)
    assert mask._handle is None
    assert mask.step == 1 + 3


def test_a_training_that_ends_with_an_open_mask_warns(build, fit):
    with pytest.warns(
        ConvergenceWarning, match=r"ended before the mask 'model\.0' was closed: 16 features are alive, 3"
    ):
        fit(Regression(build()[1]), TransformersMaskCallback(100, unit="steps"), max_steps=2)


def test_transformers_that_is_not_installed_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "tamiz.torch.transformers")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r'needs transformers\. Install it with: pip install "tamiz\[transformers\]"'):
        importlib.import_module("tamiz.torch.transformers")
