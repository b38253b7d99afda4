"""The trainer: phases, data of all kinds, seeds, checkpoints, bad input."""

import functools
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tamiz.core.rule import HISTORY_COLUMNS
from tamiz.torch import FeatureMask, StepReport, prune, train, train_weights
from tamiz.torch.batches import EndlessBatches, TensorBatches, equal_sizes, full_sizes, make_batches
from tamiz.torch.trainer import checked_device, decay_groups, seeded

QUICK = {"warmup_steps": 20, "ramp_steps": 100, "refinement_steps": 60}
mse = nn.functional.mse_loss


def regression(n_rows=120, n_features=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n_rows, n_features, generator=generator)
    return X, (X[:, 4] - 2 * X[:, 17]).unsqueeze(1)


def linear(n_features=30, m=2, variant="soft", seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(FeatureMask(n_features, m, variant, mask_learning_rate=0.03), nn.Linear(n_features, 1))


def deep(n_features=30, m=2, seed=0, dropout=0.0):
    torch.manual_seed(seed)
    body = [nn.Linear(n_features, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(dropout), nn.Linear(12, 1)]
    return nn.Sequential(FeatureMask(n_features, m, mask_learning_rate=0.03), *body)


def same_weights(a, b):
    theirs = b.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in a.state_dict().items())


@pytest.mark.parametrize("variant", ["soft", "hard", "ranking"])
def test_finds_the_features_and_ends_with_a_closed_mask(variant):
    model = linear(variant=variant)
    selection = train(model, regression(), mse, **QUICK)
    assert selection.indices.tolist() == [4, 17]
    assert (selection.engine, selection.variant) == ("torch", variant)
    assert model[0].closed
    assert not model.training
    assert model[0].gamma.detach().numpy().tolist() == selection.gamma.tolist()
    assert selection.n_steps == selection.closed_at + QUICK["refinement_steps"]
    assert model[1].weight.shape == (1, 30)


def test_phases_history_callbacks_and_the_rates_of_the_refinement():
    rates, made, reports = [], [], []

    def optimizer(parameters):
        made.append(torch.optim.Adam(parameters, lr=0.02))
        return made[0]

    def callback(report):
        reports.append(report)
        rates.append(made[0].param_groups[0]["lr"])

    selection = train(deep(), regression(), mse, optimizer=optimizer, callbacks=[callback], **QUICK)
    assert rates[-60:] == pytest.approx([0.02] * 20 + [0.004] * 20 + [0.0008] * 20)
    assert [report.step for report in reports] == list(range(1, selection.n_steps + 1))
    assert isinstance(reports[0], StepReport)
    assert [reports[0].phase, reports[30].phase, reports[-1].phase] == ["warm-up", "selection", "refinement"]
    assert (reports[0].n_alive, reports[-1].n_alive) == (30, 2)
    assert not reports[0].loss.requires_grad
    history = selection.history
    assert set(HISTORY_COLUMNS) <= set(history)
    phases = history["phase"]
    assert set(phases) == {0, 1, 2, 3}
    assert (np.diff(phases) >= 0).all()
    assert (np.diff(history["step"]) > 0).all()
    assert history["step"][-1] == selection.n_steps
    assert len(history["step"]) <= 256
    assert (np.diff(history["n_alive"]) <= 0).all()
    assert history["n_alive"][-1] == history["gamma_sum"][-1] == 2
    assert history["loss"][-1] < history["loss"][0] / 4
    assert history["gamma_path"].shape == (len(history["step"]), len(history["gamma_path_features"]))
    assert (history["gamma_path"][-1] == np.isin(history["gamma_path_features"], selection.indices)).all()


def test_the_weights_of_the_last_part_of_the_refinement_are_averaged():
    """Against the mean of the weights that a run without averages has after each of those steps."""
    plain, averaged = deep(), deep()
    seen = []

    def parts(model):
        return [part.detach().clone() for part in (model[1].weight, model[2].running_mean, model[5].bias)]

    def look(report):
        if report.phase == "refinement":
            seen.append(parts(plain))

    train(plain, regression(), mse, callbacks=[look], **QUICK)
    train(averaged, regression(), mse, average=0.5, **QUICK)
    assert len(seen) == 60
    for found, expected in zip(parts(averaged), zip(*seen[30:])):
        torch.testing.assert_close(found, torch.stack(expected).mean(0))
    assert not torch.allclose(averaged[5].bias, plain[5].bias, rtol=1e-6, atol=1e-7)
    assert averaged[0].gamma.detach().sum() == 2
    assert averaged[2].num_batches_tracked == plain[2].num_batches_tracked


def test_same_seed_same_result_and_the_callers_random_numbers_are_left_alone():
    models = [deep(dropout=0.3) for _ in range(3)]
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    ends = [train(model, regression(), mse, seed=seed, **QUICK) for model, seed in zip(models, (5, 5, 6))]
    assert torch.equal(before, torch.random.get_rng_state())
    assert ends[0].ranking.tolist() == ends[1].ranking.tolist()
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])
    with pytest.raises(TypeError), seeded(3):
        torch.rand(2) + "x"
    assert torch.equal(before, torch.random.get_rng_state()), "after an error, too"


def a_loader():
    rows = TensorDataset(*regression())
    return DataLoader(rows, batch_size=40, shuffle=True, generator=torch.Generator().manual_seed(0))


def weighed():
    """Rows of weight zero, whose target is another column."""
    X, y = regression(n_rows=200)
    return X, torch.cat([3 * X[:100, [9]], y[100:]]), torch.cat([torch.zeros(100), torch.ones(100)])


DATA = {  # name: (model, data, loss)
    "loader": (linear, a_loader, mse),
    "one batch": (linear, lambda: [regression()], mse),
    "arrays": (linear, lambda: tuple(part.double().numpy() for part in regression()), mse),
    "double": (lambda: linear().double(), regression, mse),
    "weights": (linear, weighed, lambda outputs, y, weight: ((outputs - y).square().squeeze(1) * weight).mean()),
}


@pytest.mark.parametrize("name", DATA)
def test_data_of_all_kinds(name):
    make, data, loss = DATA[name]
    model = make()
    assert train(model, data(), loss, **QUICK).indices.tolist() == [4, 17]
    assert model[1].weight.dtype == (torch.float64 if name == "double" else torch.float32)


def test_a_single_tensor_is_its_own_target():
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(150, 2, generator=generator)
    X = torch.cat([hidden, hidden * 0.5, torch.randn(150, 8, generator=generator) * 0.05], dim=1)
    for data in (X, [X]):
        torch.manual_seed(0)
        model = nn.Sequential(FeatureMask(12, 2), nn.Linear(12, 12))
        chosen = train(model, data, mse, warmup_steps=20, ramp_steps=300, refinement_steps=0).indices.tolist()
        assert len({index % 2 for index in chosen}) == 2
        assert max(chosen) < 4


def test_all_features_and_one_row():
    selection = train(linear(m=30), regression(), mse, **QUICK)
    assert selection.n_features_to_select == 30
    assert selection.n_steps == 80, "warm-up and refinement only"
    assert train(linear(), regression(n_rows=1), mse, **QUICK).n_features_to_select == 2


def test_xor_among_noise_at_the_defaults():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(400, 40, generator=generator) * 2 - 1
    y = ((X[:, 0] > 0) != (X[:, 1] > 0)).float().unsqueeze(1)
    torch.manual_seed(0)
    net = [nn.Linear(40, 50), nn.BatchNorm1d(50), nn.ReLU(), nn.Linear(50, 25), nn.BatchNorm1d(25), nn.ReLU()]
    model = nn.Sequential(FeatureMask(40, 2), *net, nn.Linear(25, 1))
    loss = nn.functional.binary_cross_entropy_with_logits
    assert train(model, (X, y), loss, refinement_steps=0).indices.tolist() == [0, 1]


# ---- checkpoints -------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def stop_at(step):
    def callback(report):
        if report.step == step:
            raise Stop

    return callback


def shuffled():
    """A loader whose order comes from torch's own random numbers."""
    return DataLoader(TensorDataset(*regression()), batch_size=32, shuffle=True)


@pytest.fixture(scope="module", params=[regression, shuffled], ids=["memory", "loader"])
def straight(request):
    """The data, and the model and selection of a run without a break."""
    model = deep(dropout=0.2)
    return request.param, model, train(model, request.param(), mse, average=0.7, **QUICK)


@pytest.mark.parametrize("step", [7, 60, -6])
def test_resumed_run_ends_with_the_same_bits(tmp_path, straight, step):
    data, model, expected = straight
    step = step % expected.n_steps  # the last break is among the averaged steps
    broken, resumed = deep(dropout=0.2), deep(dropout=0.2)
    path, steps = tmp_path / "run.pt", []
    run = functools.partial(train, loss=mse, average=0.7, checkpoint=path, checkpoint_every=6, **QUICK)
    with pytest.raises(Stop):
        run(broken, data(), callbacks=[stop_at(step)])
    assert broken[1].weight.shape == (12, 30)
    found = run(resumed, data(), callbacks=[lambda r: steps.append(r.step)])
    assert steps[0] == step // 6 * 6 + 1
    assert found.ranking.tolist() == expected.ranking.tolist()
    assert same_weights(model, resumed)
    for name in HISTORY_COLUMNS:
        assert np.array_equal(found.history[name], expected.history[name])


def test_a_finished_checkpoint_gives_the_result_again_and_that_of_another_run_is_refused(tmp_path):
    path = tmp_path / "new" / "run.pt"
    models = [deep(), deep()]
    first = train(models[0], regression(), mse, checkpoint=path, **QUICK)
    second = train(models[1], regression(), mse, checkpoint=path, callbacks=[stop_at(1)], **QUICK)
    assert first.ranking.tolist() == second.ranking.tolist()
    assert first.n_steps == second.n_steps
    assert same_weights(*models)
    assert [p.name for p in path.parent.iterdir()] == ["run.pt"]
    with pytest.raises(ValueError, match=r"seed=0, now seed=1"):
        train(deep(), regression(), mse, checkpoint=path, seed=1, **QUICK)
    model = deep()
    with pytest.raises(ValueError, match="rows=120, now rows=119"):
        train(model, regression(n_rows=119), mse, checkpoint=path, **QUICK)
    model[0].attach(torch.optim.SGD(model.parameters(), lr=0.1)).remove()  # nothing is left attached


def test_a_file_that_is_no_checkpoint_is_refused_and_runs_no_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    path = tmp_path / "run.pt"
    for write in (
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(b"PK\x03\x04"),
        lambda: torch.save([1, 2], path),
        lambda: torch.save({"x": Evil()}, path),
    ):
        write()
        with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint of tamiz"):
            train(linear(), regression(), mse, checkpoint=path, **QUICK)
    assert not (tmp_path / "ran").exists()


# ---- progress and bad input --------------------------------------------------------------------------------------------


def test_progress_goes_to_stderr_only_for_long_runs(capsys, monkeypatch):
    now = [0.0]  # a clock that a busy machine does not drive
    monkeypatch.setattr("tamiz._utils.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    train(linear(), regression(), mse, progress=True, **QUICK)
    assert capsys.readouterr().err == ""

    def take_long(report):
        now[0] += 2.1 if report.step == 10 else 0.0

    train(linear(), regression(), mse, progress=True, callbacks=[take_long], **QUICK)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "warm-up, 30 features" in shown.err
    assert "left" in shown.err


def test_an_error_in_the_loop_leaves_the_model_whole():
    model = deep()
    with pytest.raises(Stop):
        train(model, regression(), mse, callbacks=[stop_at(85)], **QUICK)
    assert 2 < model[0].n_alive < 25
    assert model[1].weight.shape == (12, 30)
    model[0].attach(torch.optim.SGD(model.parameters(), lr=0.1))


BAD = [
    ({"model": nn.Linear(30, 1)}, ValueError, "exactly one FeatureMask, it holds 0"),
    ({"model": nn.Sequential(FeatureMask(30, 2), FeatureMask(30, 2))}, ValueError, "it holds 2"),
    ({"data": 5}, TypeError, "tuple of tensors"),
    ({"data": (torch.ones(3, 30), torch.ones(2, 1))}, ValueError, "same number of rows"),
    ({"data": (torch.ones(3, 30), torch.tensor(1.0))}, ValueError, "same number of rows"),
    ({"data": (torch.ones(0, 30), torch.ones(0, 1))}, ValueError, "at least one"),
    ({"data": []}, ValueError, "the loader is empty"),
    ({"data": iter([(torch.ones(3, 30), torch.ones(3, 1))])}, TypeError, "not an iterator"),
    ({"data": (torch.full((3, 30), torch.nan), torch.ones(3, 1))}, ValueError, "NaN in column 0"),
    ({"batch_size": 0}, ValueError, "batch_size must be an integer of at least 1"),
    ({"refinement_steps": -1}, ValueError, "refinement_steps must be an integer of at least 0"),
    ({"refinement_rates": ()}, ValueError, "refinement_rates"),
    ({"average": 1.5}, ValueError, "average must be a share from 0 to 1, got 1.5"),
    ({"average": float("nan")}, ValueError, "average must be a share"),
    ({"learning_rate": 0.0}, ValueError, "learning_rate"),
    ({"ramp_steps": 0}, ValueError, "ramp_steps"),
    ({"optimizer": 0.1}, TypeError, "optimizer must be a function"),
    (
        {"optimizer": lambda parameters: None},
        TypeError,
        "optimizer must be a function .* returns a torch.optim.Optimizer",
    ),
    ({"data": (torch.ones(3, 30), torch.full((3, 1), torch.inf))}, FloatingPointError, "gamma"),
    ({"data": (torch.ones(3, 7), torch.ones(3, 1))}, ValueError, "does not fit"),
    ({"rate": 0.1}, TypeError, "there is no option 'rate'; there are optimizer, learning_rate"),
]
BAD_WEIGHTS = [
    ({"model": linear()}, ValueError, "holds a FeatureMask"),
    ({"model": nn.ReLU()}, ValueError, "no parameters to train"),
    ({"n_steps": 0}, ValueError, "n_steps must be an integer of at least 1"),
    ({"rates": (1.0, 0.0)}, ValueError, "rates must be positive"),
    ({"checkpoint_every": 0}, ValueError, "checkpoint_every must be an integer of at least 1"),
]


@pytest.mark.parametrize(
    ("run", "changes", "error", "message"),
    [(train, *case) for case in BAD] + [(train_weights, *case) for case in BAD_WEIGHTS],
)
def test_bad_input(run, changes, error, message):
    model, steps = (linear(), QUICK) if run is train else (nn.Linear(30, 1), {})
    with pytest.raises(error, match=message):
        run(**{"model": model, "data": regression(), "loss": mse, **steps, **changes})


def test_a_used_mask_is_refused_until_it_is_reset():
    model = linear()
    train(model, regression(), mse, **QUICK)
    with pytest.raises(ValueError, match=r"call mask.reset\(\)"):
        train(model, regression(), mse, **QUICK)
    model[0].reset()
    assert train(model, regression(), mse, **QUICK).indices.tolist() == [4, 17]


def test_held_out_rows_alone_move_gamma(tmp_path):
    """A column that repeats the target of the training rows alone is not taken, and a run can be broken off."""
    X, y = regression(n_rows=240)
    X[:120, 9] = 3 * y[:120, 0]
    data = {"data": (X[:120], y[:120]), "loss": mse, "refinement_rates": [1.0], **QUICK, "ramp_steps": 200}
    assert 9 in train(linear(), **data).indices
    straight, broken, resumed = (linear() for _ in range(3))
    data["held_out"] = (X[120:], y[120:])
    expected = train(straight, **data)
    assert expected.indices.tolist() == [4, 17]
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        train(broken, **data, checkpoint=path, checkpoint_every=6, callbacks=[stop_at(60)])
    assert train(resumed, **data, checkpoint=path).ranking.tolist() == expected.ranking.tolist()
    assert same_weights(straight, resumed)


# ---- weights alone -----------------------------------------------------------------------------------------------------


def test_weights_alone_follow_their_rates():
    # With SGD, loss (0 - s)^2 and one row of x = 1, a step multiplies the weight by 1 - 2 * rate.
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    sgd = functools.partial(torch.optim.SGD, lr=0.1)
    data = (torch.ones(1, 1), torch.zeros(1, 1))
    history = train_weights(model, data, mse, optimizer=sgd, n_steps=3, rates=[1.0, 0.2, 0.04])
    assert model.weight.item() == pytest.approx((1 - 0.2) * (1 - 0.04) * (1 - 0.008))
    assert history["step"].tolist() == [1, 2, 3]
    assert history["loss"][0] == 1
    assert not model.training


def test_weights_alone_are_the_refinement_of_train():
    masked, plain = deep(m=30, dropout=0.2), deep(dropout=0.2)[1:]
    reports = []
    train(masked, regression(), mse, refinement_steps=30, average=0.5, seed=4)
    train_weights(plain, regression(), mse, n_steps=30, average=0.5, seed=4, callbacks=[reports.append])
    torch.testing.assert_close(plain(regression()[0]), masked(regression()[0]))
    last = reports[-1]
    assert (last.step, last.phase, last.n_alive, last.n_refined) == (30, "refinement", 0, 30)


def test_a_pruned_model_is_trained_on():
    X, y = regression()
    model = linear()
    selection = train(model, (X, y), mse, ramp_steps=100, refinement_steps=0)
    small, columns = prune(model), X[:, selection.indices.tolist()]
    before = mse(small(columns), y).item()
    train_weights(small, (columns, y), mse, n_steps=100)
    assert mse(small(columns), y).item() < before


# ---- parts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [equal_sizes, full_sizes])
def test_batches(sizes):
    for n_rows, batch_size in [(1, 1), (1, 5), (2, 2), (5, 2), (7, 3), (11, 3), (64, 64), (65, 64)]:
        found = sizes(n_rows, batch_size)
        assert sum(found) == n_rows
        assert min(found) > 1 or n_rows == 1 or batch_size == 1
    rows = torch.arange(9)
    batches, other = (EndlessBatches(TensorBatches((rows, rows * 2), 2, seed, sizes)) for seed in (0, 7))
    n_batches = len(sizes(9, 2))
    epochs = [torch.cat([next(batches)[0] for _ in range(n_batches)]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == rows.tolist()
    assert epochs[0] != epochs[1]
    next(batches)
    other.load(batches.state())
    for _ in range(n_batches + 1):
        assert torch.equal(next(other)[1], next(batches)[1])


def test_what_data_become():
    like, x = torch.zeros(1, dtype=torch.float64), np.ones((4, 2), dtype=np.float32)
    batches = make_batches((x, np.arange(4)), like, 2, 0)
    assert [part.dtype for part in next(batches)] == [torch.float64, torch.int64]
    assert next(make_batches([x], like, 2, 0)) is x


def test_l2_acts_on_matrices_only():
    groups = decay_groups(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).parameters(), l2=0.25)
    assert [(group["weight_decay"], group["decays"]) for group in groups] == [(0.5, True), (0.0, False)]
    assert [{parameter.dim() for parameter in group["params"]} for group in groups] == [{2}, {1}]
    assert len(decay_groups(nn.Linear(2, 1, bias=False).parameters(), 0.1)) == 1
    with pytest.raises(ValueError, match="no trainable parameters"):
        decay_groups(nn.Linear(1, 1).requires_grad_(False).parameters(), 0.0)


@pytest.mark.parametrize("name", ["gpu", None, 1.5, "cpu:x", "cuda"])
def test_bad_devices(name):
    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match=r"such as 'cpu', 'cuda' or 'cuda:1', got|torch finds no GPU here; use 'cpu'"):
        checked_device(name)


def test_a_missing_torch_names_the_command_that_installs_it():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import tamiz.torch\nexcept ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == 'tamiz.torch needs torch. Install it with: pip install "tamiz[torch]"'
