"""Estimators over networks with hidden layers: the compiled one and those of PyTorch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from tamiz import Dense, E2EFSClassifier, E2EFSRegressor, TorchNetwork, Training

QUICK = {"training": Training(ramp_steps=400, warmup_steps=50, refinement_epochs=20), "random_state": 0}
SHORT = {"training": Training(ramp_steps=100), "random_state": 0}


def small_network(n_inputs, n_outputs):
    from torch import nn

    return nn.Sequential(nn.Linear(n_inputs, 8), nn.Tanh(), nn.Linear(8, n_outputs))


@pytest.mark.parametrize(
    ("network", "loss"), [("mlp", "squared_hinge"), ("mlp", "softmax"), (small_network, "logistic")]
)
def test_two_classes_from_the_selected_columns_alone(table, network, loss):
    X, y = table
    clf = E2EFSClassifier(2, network=network, loss=loss, **QUICK).fit(X, y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert clf.selection_.engine == ("dense" if network == "mlp" else "torch")
    assert clf.decision_function(X).shape == (80,)
    assert clf.score(X, y) > 0.85
    assert not hasattr(clf, "coef_")
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    other = X.copy()
    other[:, ~clf.get_support()] = 1e3
    np.testing.assert_array_equal(clf.decision_function(other), clf.decision_function(X))
    assert next(clf.module_.parameters()).shape[1] == 2


def test_labels_and_a_sparse_table(table):
    X, _ = table
    labels = np.column_stack([X[:, 3] > 0, X[:, 7] > 0]).astype(int)
    clf = E2EFSClassifier(2, network=small_network, **QUICK).fit(sp.csr_matrix(X), labels)
    assert clf.predict(X).shape == labels.shape
    np.testing.assert_allclose(clf.decision_function(sp.csr_matrix(X)), clf.decision_function(X), atol=1e-4)


def test_what_a_line_cannot_see():
    X = np.random.default_rng(0).normal(size=(300, 8))
    y = X[:, 1] * X[:, 4] > 0
    clf = E2EFSClassifier(2, network="mlp", **QUICK).fit(X, y)
    assert clf.get_support(indices=True).tolist() == [1, 4]
    assert clf.score(X, y) > 0.85


@pytest.mark.parametrize("network", ["mlp", TorchNetwork(small_network, n_init=2)])
def test_same_seed_same_result_and_the_random_state_of_torch_is_left_alone(table, network):
    import torch

    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    short = {"training": Training(ramp_steps=60, refinement_epochs=3), "random_state": 0}
    one, two = (E2EFSClassifier(2, network=network, **short).fit(*table) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(one.decision_function(table[0]), two.decision_function(table[0]))


def test_networks_that_do_not_fit(table):
    from torch import nn

    clf = E2EFSClassifier(2, network=lambda n_inputs, n_outputs: nn.Linear(n_inputs, 7), **QUICK)
    with pytest.raises(ValueError, match=r"must give 1 output\(s\) per row"):
        clf.fit(*table)
    with pytest.raises(NotFittedError):
        clf.predict(table[0])
    with pytest.raises(TypeError, match="must return a torch module"):
        clf.set_params(network=lambda n_inputs, n_outputs: "no").fit(*table)


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'")

sys.meta_path.insert(0, Missing())
import numpy as np
from tamiz import E2EFSClassifier, Training

X = np.random.default_rng(0).normal(size=(40, 10))
y = X[:, 3] > 0
clf = E2EFSClassifier(2, network="mlp", training=Training(ramp_steps=100, refinement_epochs=5), random_state=0).fit(X, y)
print(clf.get_support().sum(), clf.predict(X).shape)
try:
    clf.module_
except ImportError as error:
    print(error)
clf.set_params(network=lambda n_inputs, n_outputs: None)
try:
    clf.fit(X, y)
except ImportError as error:
    print(str(error).split(" needs ")[1])
print(hasattr(clf, "selection_"), clf.set_params(network="linear").fit(X, y).get_support().sum())
print("torch" in sys.modules)
"""


def test_without_torch_compiled_networks_work_and_the_message_says_what_to_install_for_others():
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, timeout=1200)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "2 (40,)",
        'to_torch() needs torch. Install it with: pip install "tamiz[torch]"',
        'torch. Install it with: pip install "tamiz[torch]"',
        "False 2",
        "False",
    ]


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "softmax", "onnx"])
def test_the_compiled_network_as_a_module_predicts_the_same(table, loss, tmp_path):
    import torch

    X, y = table
    of_loss = {} if loss == "onnx" else {"loss": loss}
    clf = E2EFSClassifier(2, network="mlp", normalize=None, **of_loss, **SHORT).fit(X, y)
    values = torch.from_numpy(np.ascontiguousarray(clf.transform(X), dtype=np.float32))
    assert not clf.module_.training
    found = clf.module_(values).detach().numpy()
    if loss == "onnx":
        pytest.importorskip("onnxscript")
        runtime, path = pytest.importorskip("onnxruntime"), str(tmp_path / "small.onnx")
        torch.onnx.export(clf.module_, (values,), path, dynamo=True, external_data=False, verbose=False)
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {session.get_inputs()[0].name: values.numpy()})
    np.testing.assert_allclose(found[:, 0], clf.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("network", ["mlp", small_network])
def test_numbers_in_the_units_of_y(numbers, network):
    import torch

    X, y = numbers
    reg = E2EFSRegressor(2, network=network, normalize=None, **QUICK).fit(X, 100 * y + 7)
    assert reg.get_support(indices=True).tolist() == [3, 7]
    assert reg.score(X, 100 * y + 7) > 0.8
    if network == "mlp":
        values = torch.from_numpy(np.ascontiguousarray(reg.transform(X), dtype=np.float32))
        np.testing.assert_allclose(reg.module_(values).detach().numpy()[:, 0], reg.predict(X), atol=1e-2)


@pytest.mark.parametrize("sizes", [(3,), [12, 5], np.array([4, 4, 4, 4])])
def test_hidden_layers_of_any_number_and_width(table, sizes):
    clf = E2EFSClassifier(2, network=Dense(hidden_layer_sizes=sizes), **SHORT).fit(*table)
    assert [weights.shape[1] for weights, _ in clf.model_.layers[:-1]] == list(sizes)


@pytest.mark.parametrize("sizes", [(), (50, 0), (50, -1), (2.5,), 50, "50"])
def test_hidden_layers_without_units_are_an_error(table, sizes):
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        E2EFSClassifier(2, network=Dense(hidden_layer_sizes=sizes)).fit(*table)


def test_of_several_starts_the_one_with_the_lowest_training_loss_is_kept(table):
    X, y = table
    signs = np.where(y == y.max(), 1.0, -1.0)
    settings = {"training": Training(ramp_steps=60, refinement_epochs=3)}

    def fit(seed, n_init):
        network = TorchNetwork(small_network, n_init=n_init)
        return E2EFSClassifier(2, network=network, random_state=seed, **settings).fit(X, y)

    single = [fit(seed, 1) for seed in (5, 6, 7)]
    weights = np.where(signs > 0, 1 / np.sum(signs > 0), 1 / np.sum(signs < 0))  # classes count the same
    losses = [np.sum(weights * np.maximum(0.0, 1.0 - signs * clf.decision_function(X)) ** 2) for clf in single]
    best = single[int(np.argmin(losses))]
    assert len(set(losses)) == 3
    assert best is not single[0]  # else it would show nothing
    np.testing.assert_array_equal(fit(5, 3).decision_function(X), best.decision_function(X))


@pytest.mark.parametrize("network", [TorchNetwork(small_network, n_init=1), Dense(n_init=1)])
@pytest.mark.filterwarnings("ignore:The network removes")
def test_the_refinement_has_a_weight_decay_of_its_own(table, network, monkeypatch):
    """With none during the selection, a strong one in the refinement alone must shrink the weights."""
    X, y = table
    usual = E2EFSClassifier._plan

    def size_with(decay):
        def plan(*given):
            planned = usual(*given)
            return replace(planned, schedule=replace(planned.schedule, l2=0.0, refinement_l2=decay))

        monkeypatch.setattr(E2EFSClassifier, "_plan", plan)
        clf = E2EFSClassifier(2, network=network, **QUICK).fit(X, y)
        return sum(float(weight.detach().square().sum()) for weight in clf.module_.parameters() if weight.dim() > 1)

    assert size_with(1.0) < 0.5 * size_with(0.0)
