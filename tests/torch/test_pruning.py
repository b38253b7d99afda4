"""prune: the same predictions from the selected values alone, and nothing shared with the original."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, PrunedModel, prune
from tamiz.torch.pruning import Scatter


def three_layer_net(n_inputs, n_outputs):
    """Dense layers with batch normalisation, which nothing of the mask knows."""
    layers = []
    for n_units in (50, 25, 10):
        layers += [nn.Linear(n_inputs, n_units, bias=False), nn.BatchNorm1d(n_units), nn.ReLU()]
        n_inputs = n_units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))


def close(mask, indices):
    """A mask that has selected these features."""
    m, n = mask.n_features_to_select, mask.n_features
    assert len(indices) == m
    kept = torch.zeros(n, dtype=torch.bool)
    kept[indices] = True
    with torch.no_grad():
        mask.gamma.copy_(kept.reshape(mask.shape))
        mask.rank[kept] = torch.arange(1, m + 1, dtype=torch.int32)
        mask.rank[~kept] = torch.arange(m + 1, n + 1, dtype=torch.int32)
        mask.counters[2:4] = torch.tensor([0, 1])
    assert mask.closed
    assert mask.support().reshape(-1).nonzero().flatten().tolist() == sorted(indices)
    return mask


def unsettled(model):
    """The model with batch normalisation that has seen data."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model.eval()


def assert_same(model, pruned, x):
    torch.testing.assert_close(pruned(pruned.select(x)), model(x), rtol=1e-6, atol=1e-6)


CHOSEN = [1, 5, 18]


def three_layers():
    return three_layer_net(20, 2)


MODELS = {
    "linear": lambda mask: nn.Sequential(mask, nn.Linear(20, 3)),
    "no_bias": lambda mask: nn.Sequential(mask, nn.Linear(20, 3, bias=False)),
    "nested": lambda mask: nn.Sequential(
        nn.Sequential(mask), nn.Sequential(nn.Sequential(nn.Linear(20, 3), nn.ReLU()))
    ),
    "three_layers": lambda mask: nn.Sequential(mask, three_layers()),
    "flatten_first": lambda mask: nn.Sequential(nn.Flatten(), mask, nn.Linear(20, 3)),
    "dropout_between": lambda mask: nn.Sequential(mask, nn.Dropout(0.5), nn.Linear(20, 3)),
}
SCATTERED = {
    "batch_norm_behind": lambda mask: nn.Sequential(mask, nn.BatchNorm1d(20), nn.Linear(20, 3)),
    "batch_norm_before": lambda mask: nn.Sequential(nn.BatchNorm1d(20), mask, nn.Linear(20, 3)),
    "relu": lambda mask: nn.Sequential(mask, nn.Sigmoid(), nn.Linear(20, 3)),
    "convolution": lambda mask: nn.Sequential(mask, nn.Unflatten(1, (1, 20)), nn.Conv1d(1, 2, 3)),
    "mask_alone": lambda mask: nn.Sequential(mask),
}


@pytest.mark.parametrize("name", [*MODELS, *SCATTERED])
def test_same_predictions(name):
    torch.manual_seed(0)
    model = unsettled({**MODELS, **SCATTERED}[name](close(FeatureMask(20, 3), CHOSEN)))
    pruned = prune(model)
    assert isinstance(pruned, PrunedModel)
    x = torch.randn(50, 20)
    assert_same(model, pruned, x)
    assert torch.equal(pruned.select(x), x[:, CHOSEN])
    assert pruned.indices.tolist() == CHOSEN
    assert not any(isinstance(module, FeatureMask) for module in pruned.modules())
    if name in MODELS and name != "dropout_between":
        assert not any(isinstance(module, Scatter) for module in pruned.modules())
        assert any(p.shape[-1] == 3 for p in pruned.parameters() if p.dim() == 2)


def test_nothing_is_shared_and_the_model_is_left_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(close(FeatureMask(20, 3), CHOSEN), three_layers()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.random.get_rng_state()
    pruned = prune(model)
    assert torch.equal(random, torch.random.get_rng_state())
    assert pruned.training
    assert model[1][1].training
    ours = {p.untyped_storage().data_ptr() for p in (*model.parameters(), *model.buffers())}
    theirs = {p.untyped_storage().data_ptr() for p in (*pruned.parameters(), *pruned.buffers())}
    assert not ours & theirs
    with torch.no_grad():
        for p in pruned.parameters():
            p.add_(1.0)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())


def test_pixels_for_all_channels():
    torch.manual_seed(0)
    mask = close(FeatureMask((1, 4, 5), 3), CHOSEN)
    body = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(24, 2)]
    model = unsettled(nn.Sequential(mask, *body))
    x = torch.randn(6, 3, 4, 5)
    pruned = prune(model, x)
    assert pruned.n_values == 9
    assert torch.equal(pruned.select(x)[:, :3], x[:, 0].flatten(1)[:, CHOSEN])
    assert torch.equal(pruned.select(x)[:, 6:], x[:, 2].flatten(1)[:, CHOSEN])
    assert_same(model, pruned, x)
    with pytest.raises(ValueError, match="give a batch of your inputs as example"):
        prune(model)


def test_grey_images_need_no_example():
    torch.manual_seed(0)
    mask = close(FeatureMask((1, 4, 5), 3), CHOSEN)
    model = nn.Sequential(mask, nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(24, 2)).eval()
    pruned = prune(model)
    assert pruned.n_values == 3
    assert_same(model, pruned, torch.randn(6, 1, 4, 5))


def test_images_flattened_before_a_plain_mask():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), close(FeatureMask(20, 3), CHOSEN), nn.Linear(20, 2)).eval()
    x = torch.randn(6, 1, 4, 5)
    pruned = prune(model, x)
    torch.testing.assert_close(pruned(x.flatten(1)[:, CHOSEN]), model(x), rtol=1e-6, atol=1e-6)
    sigmoid = nn.Sequential(nn.Flatten(), model[1], nn.Sigmoid(), nn.Linear(20, 2)).eval()
    assert_same(sigmoid, prune(sigmoid, x), x)


class Series(nn.Module):
    def __init__(self, mask, n_channels):
        super().__init__()
        self.mask, self.gru, self.last = mask, nn.GRU(n_channels, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x):
        hidden, _ = self.gru(self.mask(x).transpose(1, 2))
        return self.last(hidden[:, -1])


def test_channels_of_a_series():
    torch.manual_seed(0)
    model = Series(close(FeatureMask((6, 1), 2), [1, 4]), 6).eval()
    x = torch.randn(3, 6, 9)
    pruned = prune(model, x)
    assert pruned.n_values == 18
    assert torch.equal(pruned.select(x).reshape(3, 2, 9), x[:, [1, 4]])
    assert_same(model, pruned, x)


def test_a_vector_mask_keeps_leading_dimensions():
    torch.manual_seed(0)
    model = nn.Sequential(close(FeatureMask(20, 3), CHOSEN), nn.Linear(20, 2)).eval()
    x = torch.randn(2, 7, 20)
    pruned = prune(model, x)
    torch.testing.assert_close(pruned(x[..., CHOSEN]), model(x), rtol=1e-6, atol=1e-6)


def test_all_and_double_precision():
    model = nn.Sequential(FeatureMask(20, 20), nn.Linear(20, 2)).double().eval()
    x = torch.randn(5, 20, dtype=torch.float64)
    assert_same(model, prune(model), x)


class PastTheMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask, self.layer = close(FeatureMask(20, 3), CHOSEN), nn.Linear(20, 1)

    def forward(self, x):
        return self.layer(self.mask(x)) + x.sum(1, keepdim=True)


def test_a_model_that_needs_the_other_inputs_is_refused():
    with pytest.raises(ValueError, match="reads its input past the mask"):
        prune(PastTheMask())
    mixing = nn.Sequential(nn.Linear(20, 20), close(FeatureMask(20, 3), CHOSEN), nn.Linear(20, 1))
    with pytest.raises(ValueError, match="mixes it before the mask"):
        prune(mixing)


def test_bad_input():
    with pytest.raises(ValueError, match="exactly one FeatureMask, it holds 0"):
        prune(nn.Linear(3, 1))
    with pytest.raises(ValueError, match="not closed yet: 20 features are alive, 3 are to be selected"):
        prune(nn.Sequential(FeatureMask(20, 3), nn.Linear(20, 1)))
    pruned = prune(nn.Sequential(close(FeatureMask(20, 3), CHOSEN), nn.Linear(20, 1)))
    with pytest.raises(ValueError, match="reads 3 values per sample, got 20"):
        pruned(torch.randn(2, 20))


class GroupedColumns(nn.Module):
    """Five columns in two groups; the mask sees ones and gates the groups."""

    def __init__(self):
        super().__init__()
        self.mask = FeatureMask(2, 2)
        self.register_buffer("group_of", torch.tensor([0, 0, 1, 1, 1]))
        self.layer = nn.Linear(5, 1)

    def forward(self, x):
        return self.layer(x * self.mask(x.new_ones(2))[self.group_of])


def test_a_mask_that_gates_groups_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="gates something else than the input; build the small network by hand"):
        prune(GroupedColumns(), torch.randn(3, 5))


class Sampling(nn.Module):
    """Draws a code in evaluation mode as well, as variational autoencoders do."""

    def __init__(self, draw):
        super().__init__()
        self.mask, self.layer, self.draw = close(FeatureMask(20, 3), [1, 5, 9]), nn.Linear(20, 4), draw

    def forward(self, x):
        return self.layer(self.mask(x)) + self.draw(x.shape[0])


def test_a_model_that_draws_random_numbers_is_pruned():
    torch.manual_seed(0)
    model = Sampling(lambda n: torch.randn(n, 4))
    state = torch.random.get_rng_state()
    small = prune(model)
    assert torch.equal(torch.random.get_rng_state(), state)
    x = torch.randn(6, 20)
    torch.manual_seed(3)
    expected = model(x)
    torch.manual_seed(3)
    torch.testing.assert_close(small(x[:, [1, 5, 9]]), expected)


def test_a_model_whose_randomness_cannot_be_repeated_is_named_so():
    generator = np.random.default_rng(0)
    model = Sampling(lambda n: torch.from_numpy(generator.standard_normal((n, 4))).float())
    with pytest.raises(ValueError, match="gives other outputs for the same input and torch seed"):
        prune(model)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("way", ["script", "fx", "export", "trace"])
@pytest.mark.parametrize("first", [nn.Linear(6, 3), nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))])
def test_pruned_models_pass_the_ways_to_capture_them(first, way):
    mask = FeatureMask(6, 2)
    model = nn.Sequential(mask, copy.deepcopy(first), nn.ReLU(), nn.Linear(3, 1)).eval()
    close(mask, [1, 3])
    small = prune(model)
    values = small.select(torch.randn(5, 6))
    if way == "script":
        captured = torch.jit.script(small)
    elif way == "fx":
        captured = torch.fx.symbolic_trace(small)
    elif way == "export":
        captured = torch.export.export(small, (values,)).module()
    else:
        captured = torch.jit.trace(small, values)
    torch.testing.assert_close(captured(values), small(values))
    if way in ("script", "fx"):
        with pytest.raises((ValueError, torch.jit.Error), match="reads 2 values per sample, got 3"):
            captured(torch.randn(5, 3))


def test_an_image_is_scattered_in_script_too():
    mask = FeatureMask((2, 3), 6)
    small = prune(nn.Sequential(mask, nn.Conv1d(2, 1, 3)).eval())
    values = torch.randn(4, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(torch.jit.script(small)(values), small(values))
