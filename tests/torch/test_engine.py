"""The engine for torch: its contract, its starts, the model that comes out, bad networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.schedule import network_schedule
from tamiz.paper.networks import NaiveSVM, ThreeLayerNet
from tamiz.torch.engine import NetworkModel, TorchEngine

RULE = Rule(12, 3, ramp_steps=60, mask_learning_rate=0.03)


def table(loss="logistic", n_rows=80):
    """A problem that columns 2, 5 and 7 decide."""
    X = np.random.default_rng(0).normal(size=(n_rows, 12)).astype(np.float32)
    signal = X[:, 2] - X[:, 5] + X[:, 7]
    if get_loss(loss).task == "regression":
        return Problem(X, signal[:, None])
    return Problem(X, get_loss(loss).encode(np.digitize(signal, [-0.7, 0.7]), 3))


def quick(task="classification"):
    return network_schedule(80, 3, task, ramp_steps=60, refinement_epochs=3)


@pytest.mark.parametrize("loss", LOSSES)
def test_exactly_m_columns_and_a_model_that_reads_them(loss):
    problem = table(loss)
    fit = TorchEngine(ThreeLayerNet).fit(problem, RULE, get_loss(loss), quick(get_loss(loss).task), seed=1)
    assert fit.selection.indices.tolist() == [2, 5, 7]
    assert (fit.selection.engine, fit.selection.seed) == ("torch", 1)
    scores = fit.model.scores(problem.X[:, [2, 5, 7]])
    assert scores.shape == problem.targets.shape
    assert scores.dtype == np.float64
    assert fit.selection.n_steps == fit.selection.closed_at + quick().refinement_steps


def test_progress_with_the_rates_and_the_decay_of_the_refinement(monkeypatch):
    made, seen, adam = [], [], torch.optim.Adam

    def watch(*args, **kwargs):
        made.append(adam(*args, **kwargs))
        return made[-1]

    def look(*report):
        groups = made[0].param_groups
        seen.append((report, [group["lr"] for group in groups], [group["weight_decay"] for group in groups]))

    monkeypatch.setattr(torch.optim, "Adam", watch)
    schedule = replace(
        quick(), learning_rate=0.02, l2=0.1, refinement_l2=0.01, refinement_steps=4, refinement_rates=(0.01, 0.002)
    )
    fit = TorchEngine(ThreeLayerNet).fit(table(), RULE, get_loss("logistic"), schedule, progress=look)
    assert [report[0] for report, _, _ in seen] == list(range(1, fit.selection.n_steps + 1))
    assert seen[0] == ((1, 12, 0), [0.02, 0.02], [0.2, 0.0])
    assert [report[1:] for report, _, _ in seen[-4:]] == [(3, 1), (3, 2), (3, 3), (3, 4)]
    assert [rates[0] for _, rates, _ in seen[-4:]] == pytest.approx([0.01, 0.01, 0.002, 0.002])
    assert seen[-1][2] == [0.02, 0.0]


def test_all_features_need_one_start():
    steps = []
    schedule = replace(quick(), refinement_steps=4)
    engine = TorchEngine(ThreeLayerNet, n_init=3)
    engine.fit(table(), Rule(12, 12), get_loss("logistic"), schedule, progress=lambda *report: steps.append(report))
    assert steps == [(1, 12, 1), (2, 12, 2), (3, 12, 3), (4, 12, 4)]


def test_sample_weights_are_relative_and_rows_of_weight_zero_do_not_count():
    problem = table("squared_error", n_rows=100)
    targets = problem.targets.copy()
    targets[:50] = 5 * problem.X[:50, [0]]
    weights = np.r_[np.zeros(50), np.ones(50)]
    fits = [
        TorchEngine(NaiveSVM).fit(
            Problem(problem.X, targets, scale * weights), RULE, get_loss("squared_error"), quick("regression")
        )
        for scale in (1.0, 8.0)
    ]
    assert fits[0].selection.indices.tolist() == fits[1].selection.indices.tolist() == [2, 5, 7]


def test_sparse_tables_and_their_dense_form_give_the_same():
    problem = table()
    offset = np.linspace(-1, 1, 12).astype(np.float32)
    rows = sp.csr_matrix(np.where(problem.X > 0, problem.X, 0).astype(np.float32))
    dense = Problem(rows.toarray() + offset, problem.targets)
    sparse = Problem(rows, problem.targets, offset=offset)
    fits = [TorchEngine(ThreeLayerNet).fit(one, RULE, get_loss("logistic"), quick()) for one in (dense, sparse)]
    chosen = fits[0].selection.indices
    assert chosen.tolist() == fits[1].selection.indices.tolist()
    scores = fits[1].model.scores(rows[:, chosen], offset[chosen])
    assert np.array_equal(fits[0].model.scores(dense.X[:, chosen]), scores)


def test_predictions_come_in_pieces():
    model = NetworkModel(nn.Flatten(), "squared_error")
    X = np.arange(10_000, dtype=np.float32).reshape(5000, 2)
    assert np.array_equal(model.scores(X), X)


class Overflowing(nn.Module):
    """Outputs that are finite in training and infinite in use."""

    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.layer = nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return self.layer(x) if self.training or not x.any() else self.layer(x) + torch.inf


def test_refusals():
    with pytest.raises(ValueError, match="device must be one of torch"):
        TorchEngine(ThreeLayerNet, device="gpu")
    with pytest.raises(ValueError, match="n_init must be at least 1"):
        TorchEngine(ThreeLayerNet, n_init=0)
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        TorchEngine(Overflowing).fit(table(), RULE, get_loss("softmax"), quick())
