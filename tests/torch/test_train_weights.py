"""The trainer without a mask: what it minimises, its rates, averages, checkpoints and bad input."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune, train, train_weights

mse = nn.functional.mse_loss


def regression(n_rows=40):
    X = torch.randn(n_rows, 5, generator=torch.Generator().manual_seed(0))
    return X, (X[:, 1] - 2 * X[:, 3]).unsqueeze(1)


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))


def test_it_finds_the_least_squares_solution():
    X, y = regression()
    model = nn.Linear(5, 1)
    history = train_weights(model, (X, y), mse, learning_rate=0.05, n_steps=1500, batch_size=40)
    torch.testing.assert_close(model.weight.detach(), torch.tensor([[0.0, 1.0, 0.0, -2.0, 0.0]]), atol=1e-3, rtol=0)
    assert history["step"][-1] == 1500
    assert len(history["step"]) <= 256
    assert history["loss"][-1] < 1e-4 < history["loss"][0]
    assert not model.training


def test_the_learning_rate_follows_its_parts():
    # With SGD, loss (0 - s)^2 and one row of x = 1, a step multiplies the weight by 1 - 2 * rate.
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    sgd = functools.partial(torch.optim.SGD, lr=0.1)
    data = (torch.ones(1, 1), torch.zeros(1, 1))
    train_weights(model, data, mse, optimizer=sgd, n_steps=3, rates=[1.0, 0.2, 0.04])
    assert model.weight.item() == pytest.approx((1 - 0.2) * (1 - 0.04) * (1 - 0.008))


def test_it_is_the_refinement_of_train():
    X, y = regression()
    masked = nn.Sequential(FeatureMask(5, 5), network())
    plain = network()
    train(masked, (X, y), mse, refinement_steps=30, seed=4)
    train_weights(plain, (X, y), mse, n_steps=30, seed=4)
    torch.testing.assert_close(plain(X), masked(X))


def test_averages_and_reports():
    X, y = regression()
    plain, averaged = network(), network()
    seen, reports = [], []

    def look(report):
        seen.append(plain[4].bias.detach().clone())
        reports.append(report)

    train_weights(plain, (X, y), mse, n_steps=20, callbacks=[look])
    train_weights(averaged, (X, y), mse, n_steps=20, average=0.5)
    torch.testing.assert_close(averaged[4].bias.detach(), torch.stack(seen[10:]).mean(0))
    last = reports[-1]
    assert (last.step, last.phase, last.n_alive, last.n_refined) == (20, "refinement", 0, 20)


@pytest.mark.parametrize("step", [3, 14])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, step):
    def stop(report):
        if report.step == step:
            raise KeyError

    straight, broken, resumed = network(), network(), network()
    run = functools.partial(train_weights, loss=mse, n_steps=20, average=0.6, seed=2, batch_size=8)
    expected = run(straight, regression())
    path = tmp_path / "run.pt"
    with pytest.raises(KeyError):
        run(broken, regression(), checkpoint=path, checkpoint_every=2, callbacks=[stop])
    found = run(resumed, regression(), checkpoint=path, checkpoint_every=2)
    assert (found["loss"] == expected["loss"]).all()
    theirs = straight.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in resumed.state_dict().items())
    with pytest.raises(ValueError, match="n_steps=20, now n_steps=21"):
        train_weights(network(), regression(), mse, n_steps=21, average=0.6, seed=2, batch_size=8, checkpoint=path)


def test_a_pruned_model_is_trained_on():
    X, y = regression()
    model = nn.Sequential(FeatureMask(5, 2), nn.Linear(5, 1))
    selection = train(model, (X, y), mse, ramp_steps=100, refinement_steps=0)
    small = prune(model)
    columns = X[:, selection.indices.tolist()]
    before = mse(small(columns), y).item()
    train_weights(small, (columns, y), mse, n_steps=100)
    assert mse(small(columns), y).item() < before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": nn.Sequential(FeatureMask(5, 2), nn.Linear(5, 1))}, "holds a FeatureMask"),
        ({"model": nn.ReLU()}, "no parameters to train"),
        ({"n_steps": 0}, "n_steps must be an integer of at least 1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1"),
        ({"rates": ()}, "rates must be positive numbers, at least one"),
        ({"rates": (1.0, 0.0)}, "rates must be positive"),
        ({"average": -0.1}, "average must be a share"),
        ({"learning_rate": 0.0}, "learning_rate must be above zero"),
        ({"checkpoint_every": 0}, "checkpoint_every must be an integer of at least 1"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"model": nn.Linear(5, 1), "data": regression(), "loss": mse, **changes}
    with pytest.raises(ValueError, match=message):
        train_weights(**arguments)
