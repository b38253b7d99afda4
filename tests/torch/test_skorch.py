"""Selection inside skorch."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNetClassifier, NeuralNetRegressor
from torch import nn

from tamiz.torch import FeatureMask
from tamiz.torch.skorch import SkorchMaskCallback

# Most fits here are short and end in mid-selection.
pytestmark = pytest.mark.filterwarnings("ignore:the fit ended before the mask")


class Net(nn.Module):
    def __init__(self, n_outputs=1, with_mask=True):
        super().__init__()
        self.mask = FeatureMask(16, 3, mask_learning_rate=0.05) if with_mask else nn.Identity()
        self.layer = nn.Linear(16, n_outputs)

    def forward(self, x):
        return self.layer(self.mask(x))


def regressor(callback, **options):
    torch.manual_seed(0)
    settings = {"lr": 0.05, "batch_size": 64, "train_split": None, "verbose": 0, "max_epochs": 20}
    return NeuralNetRegressor(Net, callbacks=[("mask", callback)], **{**settings, **options})


@pytest.fixture
def arrays(table):
    return table[0].numpy(), table[1].numpy()[:, None]


def test_the_path_is_that_of_the_plain_loop(run_steps, table, arrays):
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model.mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    expected = run_steps(model.mask, model, optimizer, table, n_steps=20)
    net = regressor(SkorchMaskCallback(warmup=5, ramp=60), batch_size=256).fit(*arrays)
    torch.testing.assert_close(net.module_.mask.gamma.detach(), expected[-1], rtol=1e-4, atol=1e-4)
    assert net.history[:, "n_alive"][-1] == net.module_.mask.n_alive
    assert net.module_.mask._handle is None


def test_epochs_early_stop_and_the_true_features(arrays, true_features):
    callback = SkorchMaskCallback(warmup=3, ramp=30, unit="epochs", stop_when_closed=True)
    net = regressor(callback, max_epochs=300, train_split=None).fit(*arrays)
    mask = net.module_.mask
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps) == (12, 120)
    assert mask.closed
    assert len(net.history) < 150
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_partial_fit_goes_on_where_it_stopped(arrays):
    whole = regressor(SkorchMaskCallback(warmup=2, ramp=60), max_epochs=8).fit(*arrays)
    parts = regressor(SkorchMaskCallback(warmup=2, ramp=60), max_epochs=4).fit(*arrays)
    parts.partial_fit(*arrays)
    assert torch.equal(parts.module_.mask.gamma, whole.module_.mask.gamma)
    assert parts.module_.mask.step == 32


def test_a_classifier_with_a_split_can_be_cloned_and_pickled(table):
    x = table[0].numpy()
    y = (x[:, 2] + x[:, 7] > 0).astype(np.int64)
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        Net,
        module__n_outputs=2,
        criterion=nn.CrossEntropyLoss,
        callbacks=[("mask", SkorchMaskCallback(warmup=2, ramp=20, unit="epochs"))],
        callbacks__mask__ramp=25,
        max_epochs=3,
        verbose=0,
        batch_size=50,
    )
    fitted = clone(net).fit(x, y)
    assert fitted.module_.mask.rule.ramp_steps == 25 * 5  # 204 of the 256 rows train, in five batches
    restored = pickle.loads(pickle.dumps(fitted))
    assert torch.equal(restored.module_.mask.gamma, fitted.module_.mask.gamma)
    restored.partial_fit(x, y)
    assert restored.module_.mask.step == 30


def test_refusals(arrays):
    with pytest.raises(ValueError, match="there is no FeatureMask in this model"):
        regressor(SkorchMaskCallback(), module__with_mask=False).fit(*arrays)
    with pytest.raises(ValueError, match="unit must be 'steps' or 'epochs'"):
        regressor(SkorchMaskCallback(unit="hours")).fit(*arrays)


def test_a_fit_that_breaks_leaves_the_way_free(arrays):
    net = regressor(SkorchMaskCallback(warmup=2, ramp=60), max_epochs=2).fit(*arrays)
    bad = arrays[0].copy()
    bad[0, 0] = np.nan
    with pytest.raises(FloatingPointError, match="gamma is NaN"):
        net.partial_fit(bad, arrays[1])
    net.partial_fit(*arrays)
    assert net.module_.mask._handle is None


def test_a_fit_that_ends_with_an_open_mask_warns(arrays):
    with pytest.warns(ConvergenceWarning, match="ended before the mask 'mask' was closed: 16 features are alive, 3"):
        regressor(SkorchMaskCallback(warmup=100), max_epochs=1).fit(*arrays)
