"""The promise of CONTRIBUTING: a loss, a variant, a network, a method is one piece of code and one entry in one table.

Each test registers a toy in that one place and runs it through everything that should know it.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tamiz
from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.baselines import BaselineSelector, registry
from tamiz.core.losses import LOSSES, Loss
from tamiz.core.rule import VARIANTS, Rule, Variant
from tamiz.core.step import advance, initial_state, is_closed
from tamiz.estimators.networks import NETWORKS, TorchNetwork

SELECT = ("select", "--target", "y", "-k", "2", "--folds", "2", "--permutations", "0", "--json")
SHORT = ("--training", "ramp_steps=500", "--training", "refinement_epochs=5")
QUICK = {"training": Training(ramp_steps=500, refinement_epochs=5), "random_state": 0}


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(size=(90, 12))
    return X, (X[:, 3] - X[:, 7] > 0).astype(int)


@pytest.fixture
def csv(table, tmp_path):
    X, y = table
    path = tmp_path / "table.csv"
    rows = [",".join([*(f"c{j}" for j in range(X.shape[1])), "y"])]
    rows += [",".join([*(f"{value:.6f}" for value in row), "yes" if label else "no"]) for row, label in zip(X, y)]
    path.write_text("\n".join(rows))
    return path


@pytest.fixture
def run_command(tmp_path, monkeypatch):
    """Run the command line in an empty folder, in this process, where the toys are registered; return what it prints."""
    from typer.testing import CliRunner

    from tamiz.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def selected(answer):
    return {kept["feature"] for kept in json.loads(answer)["selected"]}


def quartic(scores, targets, weights, gradient):
    """Compute (s - y)^4."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            total += share * error**4
            gradient[i, c] = np.float32(4.0) * share * error**3
    return total


def test_a_loss(table, monkeypatch):
    toy = Loss(
        "quartic",
        "regression",
        quartic,
        torch=lambda outputs, targets: ((targets - outputs) ** 4).mean(1),
        gain=lambda outputs, targets: (1.0 / ((targets - outputs) ** 4 + 1.0)).mean(1),
    )
    monkeypatch.setitem(LOSSES, "quartic", toy)
    X, _ = table
    y = X[:, 3] - X[:, 7]
    for network in NETWORKS:
        steps = QUICK if network == "linear" else {**QUICK, "training": Training(ramp_steps=100, refinement_epochs=5)}
        fit = E2EFSRegressor(2, loss="quartic", network=network, **steps).fit(X, y)
        assert fit.loss_ == "quartic"
        assert fit.get_support().sum() == 2
    assert E2EFSRegressor(2, loss="quartic", **QUICK).fit(X, y).get_support(indices=True).tolist() == [3, 7]
    with pytest.raises(ValueError, match="'loss' parameter"):
        E2EFSClassifier(2, loss="quartic").fit(X, y > 0)
    from tamiz.paper.deep import NAIVE

    recipe = replace(NAIVE.with_epochs(20), loss="quartic")
    scores = registry.make_selector("sfs", 2, recipe=recipe, task="regression", random_state=0).fit(X, y)
    assert scores.get_support().sum() == 2


def halved(step, rule):
    """Aim at half of M."""
    return np.full(np.shape(step), rule.n_features_to_select / 2)


def test_a_variant(table, csv, monkeypatch, run_command):
    torch = pytest.importorskip("torch")
    from tamiz.torch import FeatureMask

    monkeypatch.setitem(VARIANTS, "halved", Variant("halved", "E2E-FS-Halved", halved))
    X, y = table
    fit = E2EFSClassifier(2, variant="halved", **QUICK).fit(X, y)
    assert fit.selection_.variant == "halved"
    assert fit.get_support(indices=True).tolist() == [3, 7]

    rule = Rule(12, 3, "halved", ramp_steps=60, mask_learning_rate=0.05)
    state, step = initial_state(rule), 0
    mask = FeatureMask(12, 3, variant="halved", mask_learning_rate=0.05)
    optimizer = torch.optim.SGD(mask.parameters(), lr=0.0)
    mask.attach(optimizer, ramp_steps=60)
    gradient = np.linspace(-1, 1, 12)
    while not is_closed(state, rule):
        step += 1
        state = advance(state, gradient, step, rule)
        optimizer.zero_grad()
        (mask(torch.ones(1, 12)) @ torch.tensor(gradient, dtype=torch.float32)).sum().backward()
        optimizer.step()
        np.testing.assert_allclose(mask.gamma.detach().numpy(), state.gamma, atol=1e-4)
    assert mask.closed

    assert registry.make_selector("e2efs-halved", 2, **QUICK).fit(X, y).get_support(indices=True).tolist() == [3, 7]
    assert selected(run_command(*SELECT, csv, "--training", "variant=halved")) == {"c3", "c7"}
    assert "e2efs-halved" in run_command("compare", csv, "--target", "y", "-k", "2", "-m", "e2efs-halved,fisher")


def test_a_network(table, csv, monkeypatch, run_command):
    torch = pytest.importorskip("torch")

    monkeypatch.setitem(NETWORKS, "perceptron", TorchNetwork(torch.nn.Linear, n_init=1))
    X, y = table
    fit = E2EFSClassifier(2, network="perceptron", **QUICK).fit(X, y)
    assert fit.get_support(indices=True).tolist() == [3, 7]
    assert fit.network_ == "perceptron"
    assert isinstance(fit.module_, torch.nn.Module)
    assert selected(run_command(*SELECT, csv, "--network", "perceptron", *SHORT, "--jobs", "1")) == {"c3", "c7"}


class LargestMean(BaselineSelector):
    """Keep the columns with the largest mean of absolute values; a toy."""

    power: float = 1.0

    def _score_features(self, X, y):
        return (np.abs(X) ** self.power).mean(axis=0)


def test_a_method(table, csv, monkeypatch, run_command):
    toy = registry.Method("largest-mean", "Largest mean", f"{__name__}:LargestMean")
    monkeypatch.setitem(registry.BASELINES, "largest-mean", toy)
    X, y = table
    selector = registry.make_selector("largest-mean", 2, power=2.0).fit(X, y)
    assert selector.get_params() == {"n_features_to_select": 2, "power": 2.0}
    assert selector.selection_.variant == "largest-mean"
    assert selector.get_support(indices=True).tolist() == sorted(np.argsort(-(X**2).mean(0))[:2])
    assert "largest-mean" in run_command("compare", csv, "--target", "y", "-k", "2", "-m", "largest-mean,fisher")


#: The edits that CONTRIBUTING counts: file, line before the edit (its first occurrence behind a landmark), new line.
PARAMETER = [
    ("base.py", "    _parameter_constraints", '        "missing": ', '        "toy": [StrOptions({"a", "b"})],\n'),
    ("base.py", "    def __init__(", "        missing: str", '        toy: str = "a",\n'),
    ("e2efs.py", "    Parameters\n", "    missing : ", '    toy : {"a", "b"}, default="a"\n        A toy.\n'),
    ("e2efs.py", "    def __init__(", "        missing: str", '        toy: str = "a",\n'),
]
USE_OF_PARAMETER = """
from sklearn.base import clone
from tamiz import E2EFSClassifier, E2EFSRegressor
for make in (E2EFSClassifier, E2EFSRegressor):
    assert clone(make(2, toy="b")).toy == make(2).set_params(toy="b").get_params()["toy"] == "b"
    assert make.__doc__.count("toy : {") == 1
    try:
        make(2, toy="c").fit([[0.0], [1.0]], [0, 1])
    except ValueError as error:
        assert "'toy' parameter" in str(error)
    else:
        raise AssertionError("no constraint")
"""


def test_a_parameter_of_both_estimators(tmp_path):
    shutil.copytree(Path(tamiz.__file__).parent, tmp_path / "tamiz", ignore=shutil.ignore_patterns("__pycache__"))
    for name, landmark, before, line in PARAMETER:
        path = tmp_path / "tamiz" / "estimators" / name
        text = path.read_text(encoding="utf-8")
        place = text.index(before, text.index(landmark))
        path.write_text(text[:place] + line + text[place:], encoding="utf-8")
    result = subprocess.run([sys.executable, "-c", USE_OF_PARAMETER], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
