"""Any network behind the estimators: build it, put a mask in front, train both, cut it down to M inputs. Needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz.core import Rule
from tamiz.estimators._targets import Encoded
from tamiz.estimators.defaults import NETWORK_AVERAGE, Schedule
from tamiz.networks.losses import get_loss
from tamiz.networks.registry import build
from tamiz.selection import Selection
from tamiz.torch import FeatureMask, StepReport, prune, train

ROWS_AT_A_TIME = 4096


def build_network(network: str | Callable[..., Any], n_inputs: int, n_outputs: int, seed: int) -> nn.Module:
    """The paper's three-layer network ("mlp"), or what a function of the user makes; weights drawn from the seed.

    Examples
    --------
    >>> build_network("mlp", 20, 1, seed=0)(torch.zeros(2, 20)).shape
    torch.Size([2, 1])
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = build("three_layer", n_inputs, n_outputs) if isinstance(network, str) else network(n_inputs, n_outputs)
    if not isinstance(made, nn.Module):
        raise TypeError(f"network({n_inputs}, {n_outputs}) must return a torch module, it returned {made!r}.")
    made.eval()
    with torch.no_grad():
        shape = tuple(made(torch.zeros(2, n_inputs)).shape)
    if shape != (2, n_outputs):
        raise ValueError(
            f"The network must give {n_outputs} output(s) a row, shape (2, {n_outputs}) for 2 rows; it gave {shape}."
        )
    return made


def train_network(
    network: str | Callable[..., Any],
    rows: np.ndarray,
    target: Encoded,
    sample_weight: np.ndarray,
    *,
    loss: str,
    rule: Rule,
    schedule: Schedule,
    device: str,
    seed: int,
    n_init: int,
    verbose: bool,
) -> tuple[Selection, nn.Module]:
    """Select the inputs of a network while it is trained; the record, and the network that reads the M inputs.

    Of several starts the one that ends with the lowest loss on the training rows is kept: a network that lost an input
    it needs cannot make up for it.
    """
    tensors = _tensors(rows, target, sample_weight, loss, device)
    each = get_loss(loss)

    def weighted(outputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return each(outputs, targets, weights, reduction="none").mean()

    best: tuple[float, Selection, nn.Module] | None = None
    for start in range(n_init if rule.n_features_to_select < rule.n_features else 1):
        model = _masked(network, rule, target.values.shape[1], seed + start).to(device)
        selection = _train_once(model, tensors, weighted, rule, schedule, seed + start, verbose)
        module = prune(model).eval()
        outputs = outputs_of(module, rows[:, selection.indices])
        if not np.isfinite(outputs).all():
            raise FloatingPointError(
                "The network's outputs became infinite or NaN. Normalise the features (normalize='erf' or 'standard') "
                "or lower learning_rate."
            )
        final = float(weighted(torch.as_tensor(outputs, dtype=torch.float32, device=device), *tensors[1:]))
        if best is None or final < best[0]:
            best = final, selection, module
    assert best is not None
    return best[1:]


def _masked(network: str | Callable[..., Any], rule: Rule, n_outputs: int, seed: int) -> nn.Module:
    mask = FeatureMask(
        rule.n_features,
        rule.n_features_to_select,
        rule.variant,
        mu=rule.mu,
        rho=rule.rho,
        learning_rate=rule.learning_rate,
    )
    return nn.Sequential(mask, build_network(network, rule.n_features, n_outputs, seed))


def _train_once(
    model: nn.Module,
    tensors: tuple[torch.Tensor, ...],
    loss: Callable[..., torch.Tensor],
    rule: Rule,
    schedule: Schedule,
    seed: int,
    verbose: bool,
) -> Selection:
    """One start: mask and network together, then the network alone with the weight decay of the refinement."""
    optimizer = _adam(model.parameters(), schedule)

    def lower_decay(report: StepReport) -> None:
        if report.phase == "refinement":
            for group in optimizer.param_groups:
                group["weight_decay"] = 2.0 * schedule.refinement_l2 if group["decays"] else 0.0

    return train(
        model,
        tensors,
        loss,
        optimizer=lambda _: optimizer,
        batch_size=min(schedule.batch_size, len(tensors[0])),
        warmup_steps=rule.warmup_steps,
        ramp_steps=rule.ramp_steps,
        max_steps=rule.max_steps,
        refinement_steps=schedule.refinement_steps,
        refinement_rates=[schedule.refinement_learning_rate / schedule.learning_rate],
        average=NETWORK_AVERAGE,
        seed=seed,
        progress=verbose,
        callbacks=[lower_decay],
    )


def _tensors(
    rows: np.ndarray, target: Encoded, sample_weight: np.ndarray, loss: str, device: str
) -> tuple[torch.Tensor, ...]:
    """Rows, targets as torch's losses take them, and weights with a mean of one."""
    # Softmax takes class numbers: the place of the +1.
    values = target.values.argmax(axis=1) if loss == "softmax" else target.values
    weights = (sample_weight / sample_weight.mean()).astype(np.float32)
    return tuple(torch.as_tensor(part).to(device) for part in (rows, values, weights))


def _adam(parameters: Iterable[nn.Parameter], schedule: Schedule) -> torch.optim.Optimizer:
    """Adam with the l2 penalty on weights only, not on biases, batch normalisation or the mask."""
    every = list(parameters)
    groups = [
        {"params": [p for p in every if p.dim() > 1], "weight_decay": 2.0 * schedule.l2, "decays": True},
        {"params": [p for p in every if p.dim() <= 1], "weight_decay": 0.0, "decays": False},
    ]
    return torch.optim.Adam([group for group in groups if group["params"]], lr=schedule.learning_rate, fused=True)


@torch.no_grad()
def outputs_of(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    """What a network says for each row, in float64.

    Examples
    --------
    >>> outputs_of(nn.Identity(), np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    pieces = [
        module(torch.as_tensor(rows[begin : begin + ROWS_AT_A_TIME], dtype=torch.float32).to(device)).cpu().numpy()
        for begin in range(0, len(rows), ROWS_AT_A_TIME)
    ]
    return np.concatenate(pieces).astype(np.float64)
