"""Dropping dead columns: found where it may be done, and without a trace in the result."""

import functools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tamiz.torch import FeatureMask, prune, train
from tamiz.torch.trainer import Probe, Shrinker, reads_first


def three_layer_net(n_inputs, n_outputs):
    """Dense layers with batch normalisation, which nothing of the mask knows."""
    layers = []
    for n_units in (50, 25, 10):
        layers += [nn.Linear(n_inputs, n_units, bias=False), nn.BatchNorm1d(n_units), nn.ReLU()]
        n_inputs = n_units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))


QUICK = {"warmup_steps": 20, "ramp_steps": 200, "refinement_steps": 30}
mse = nn.functional.mse_loss


def data(n_rows=120, n_features=60):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n_rows, n_features, generator=generator, dtype=torch.float64)
    return X, (X[:, 4] - 2 * X[:, 17]).unsqueeze(1)


def network(seed=0, n_features=60):
    torch.manual_seed(seed)
    return nn.Sequential(FeatureMask(n_features, 3), three_layer_net(n_features, 1)).double()


def widths_during(monkeypatch):
    seen = []
    keep = Shrinker.keep

    def watching(self, places):
        keep(self, places)
        seen.append(self.width)

    monkeypatch.setattr(Shrinker, "keep", watching)
    return seen


CASES = {
    "adam": (None, False),
    "sgd": (functools.partial(torch.optim.SGD, lr=0.02, momentum=0.9, weight_decay=1e-3), False),
    "rmsprop": (functools.partial(torch.optim.RMSprop, lr=0.005, momentum=0.5, centered=True), False),
    "adamw_loader": (functools.partial(torch.optim.AdamW, lr=0.01, amsgrad=True, weight_decay=0.1), True),
}


@pytest.mark.parametrize(("optimizer", "loader"), CASES.values(), ids=CASES)
def test_result_is_that_of_the_whole_width(monkeypatch, optimizer, loader):
    widths = widths_during(monkeypatch)
    ends = []
    for shrink in (True, False):
        model = network()
        rows = DataLoader(TensorDataset(*data()), batch_size=40, shuffle=True) if loader else data()
        selection = train(model, rows, mse, optimizer=optimizer, shrink=shrink, **QUICK)
        ends.append((model, selection))
        if shrink:
            assert widths[-1] < 10
            assert len(widths) > 2
            widths.clear()
    assert not widths
    (small, found), (whole, expected) = ends
    assert found.ranking.tolist() == expected.ranking.tolist()
    assert found.n_steps == expected.n_steps
    kept = found.indices
    theirs = whole.state_dict()
    for name, value in small.state_dict().items():
        assert value.shape == theirs[name].shape
        if name == "1.0.weight":
            value, theirs[name] = value[:, kept], theirs[name][:, kept]
        torch.testing.assert_close(value, theirs[name], rtol=1e-5, atol=1e-5)
    X = data()[0]
    torch.testing.assert_close(small(X), whole(X), rtol=1e-5, atol=1e-5)


def test_same_selection_in_single_precision():
    X, y = (part.float() for part in data())
    rankings = [
        train(network().float(), (X, y), mse, shrink=shrink, **QUICK).indices.tolist() for shrink in (True, False)
    ]
    assert rankings[0] == rankings[1]


def test_the_callers_data_is_not_touched():
    X, y = data()
    before = X.clone()
    train(network(), (X, y), mse, **QUICK)
    assert torch.equal(X, before)


class PastTheMask(nn.Module):
    """Reads the mean of its raw input beside the masked input."""

    def __init__(self):
        super().__init__()
        self.mask, self.layer = FeatureMask(60, 3), nn.Linear(60, 1)

    def forward(self, x):
        return self.layer(self.mask(x)) + x.mean(1, keepdim=True) * x.shape[1]


class Tied(nn.Module):
    """Uses the weights of the first layer twice."""

    def __init__(self):
        super().__init__()
        self.mask, self.layer = FeatureMask(60, 3), nn.Linear(60, 5)

    def forward(self, x):
        return nn.functional.linear(self.layer(self.mask(x)), self.layer.weight.t())


def test_a_model_that_reads_its_input_elsewhere_is_trained_the_same(monkeypatch):
    widths = widths_during(monkeypatch)
    X, y = data()
    ends = []
    for shrink in (True, False):
        torch.manual_seed(0)
        model = PastTheMask().double()
        ends.append((train(model, (X, y), mse, shrink=shrink, **QUICK), model(X)))
    assert widths
    assert ends[0][0].ranking.tolist() == ends[1][0].ranking.tolist()
    torch.testing.assert_close(ends[0][1], ends[1][1])


def layer_of(model, n_features=60):
    mask = next(module for module in model.modules() if isinstance(module, FeatureMask))
    with Probe() as probe:
        model.eval()(torch.zeros(2, n_features))
    return probe.layer_behind(mask, model)


def test_the_layer_is_found_only_where_it_alone_takes_the_masked_input():
    model = network().float()
    assert layer_of(model) is model[1][0]
    past = PastTheMask()
    assert layer_of(past) is past.layer
    assert layer_of(nn.Sequential(FeatureMask(60, 3), nn.ReLU(), nn.Linear(60, 1))) is None
    assert layer_of(nn.Sequential(FeatureMask(60, 3), nn.BatchNorm1d(60), nn.Linear(60, 1))) is None
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(60, 1))
    assert layer_of(nn.Sequential(FeatureMask(60, 3), normed)) is None
    lazy = nn.Sequential(FeatureMask(60, 3), nn.Linear(60, 1))
    lazy.add_module("again", nn.Sequential())
    lazy[2].register_parameter("shared", lazy[1].weight)
    assert layer_of(lazy) is None


def test_two_readers_of_the_masked_input_mean_no_shrinking():
    mask, first, second = FeatureMask(60, 3), nn.Linear(60, 1), nn.Linear(60, 1)
    model = nn.ModuleList([mask, first, second])
    with Probe() as probe:
        masked = mask(torch.zeros(2, 60))
        first(masked), second(masked)
    assert probe.layer_behind(mask, model) is None


def test_weights_used_twice_are_left_whole(monkeypatch):
    widths = widths_during(monkeypatch)
    torch.manual_seed(0)
    assert layer_of(Tied()) is None
    X, y = data()
    assert train(Tied().double(), X, mse, **QUICK).n_features_to_select == 3
    model = network()

    def loss(outputs, targets):
        return mse(outputs, targets) + 0.01 * model[1][0].weight.norm()

    assert train(model, (X, y), loss, **QUICK).n_features_to_select == 3
    assert not widths


def test_an_optimizer_that_mixes_weights_is_left_whole(monkeypatch):
    widths = widths_during(monkeypatch)

    class Mixing(torch.optim.SGD):
        pass

    selection = train(network(), data(), mse, optimizer=functools.partial(Mixing, lr=0.01), **QUICK)
    assert not widths
    assert selection.n_features_to_select == 3


def test_reads_first():
    mask = FeatureMask(3, 1)
    assert reads_first(mask, mask)
    assert reads_first(nn.Sequential(nn.Sequential(mask), nn.Linear(3, 1)), mask)
    assert not reads_first(nn.Sequential(nn.Identity(), mask), mask)
    hooked = nn.Sequential(mask)
    hooked.register_forward_pre_hook(lambda module, args: None)
    assert not reads_first(hooked, mask)


def test_the_model_takes_whole_inputs_while_it_is_shrunk():
    X, y = data()
    model = network()
    shapes = set()

    def look(report):
        if report.step in (30, 190):
            with torch.no_grad():
                shapes.add((model(X[:5]).shape, model[1][0].in_features == 60))

    train(model, (X, y), mse, callbacks=[look], **QUICK)
    assert shapes == {((5, 1), True), ((5, 1), False)}
    small = prune(model)
    torch.testing.assert_close(small(small.select(X)), model(X))
