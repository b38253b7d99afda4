"""Train any network and select its inputs: the engine for torch, with the contract of ``tamiz.engines``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz.core.gates import KEPT, Gates
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.schedule import Schedule
from tamiz.errors import DivergenceError
from tamiz.selection import Selection
from tamiz.torch.mask import FeatureMask
from tamiz.torch.pruning import prune
from tamiz.torch.state import schedule_of
from tamiz.torch.trainer import StepReport, checked_device, decay_groups, seeded, train

#: Rows that go through a network at once when it predicts.
ROWS_AT_ONCE = 4096

#: Settings of a rule that a mask takes as they are.
SETTINGS = ("mu", "rho", "mask_learning_rate", "beta1", "beta2", "epsilon", "mask_optimizer")


class NetworkModel:
    """Predict with a trained network that reads the M selected columns.

    Parameters
    ----------
    module : nn.Module
        The network.
    loss : str
        Name of the loss it was trained with.
    mean, scale : ndarray, shape (n_outputs,), or None, default=None
        Outputs are multiplied by ``scale``, then ``mean`` is added; None: neither.

    Examples
    --------
    >>> NetworkModel(nn.Identity(), "logistic").scores(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(
        self, module: nn.Module, loss: str, mean: np.ndarray | None = None, scale: np.ndarray | None = None
    ) -> None:
        self.module, self.loss, self.mean, self.scale = module, loss, mean, scale

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> NetworkModel:
        """Make a model whose outputs are ``scores * scale + mean``."""
        return NetworkModel(self.module, self.loss, mean, scale)

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Compute weights and offset of each layer, a ReLU between two of them, that together give ``scores``.

        Raises
        ------
        ValueError
            If the network is no plain chain of linear layers, batch normalisations and ReLU.

        Examples
        --------
        >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> [weights.shape for weights, offset in NetworkModel(network, "logistic").affine_layers()]
        [(3, 2), (1, 3)]
        """
        module = copy.deepcopy(self.module).cpu().double().eval()
        parts = [part for part in module.modules() if not list(part.children())]
        width: Any = next((part.in_features for part in parts if hasattr(part, "in_features")), 0)
        layers, weights, offset = [], np.eye(width), np.zeros(width)
        probe = torch.randn(16, width, generator=torch.Generator().manual_seed(0)).double()
        outputs = probe
        with torch.no_grad():
            for part in parts:
                kind = type(part).__name__
                if kind in ("Linear", "BatchNorm1d"):  # both are affine when a network predicts
                    n_inputs = weights.shape[0]
                    shift, *ends = part(torch.cat([torch.zeros(1, n_inputs), torch.eye(n_inputs)]).double()).numpy()
                    own = (np.array(ends) - shift).T
                    weights, offset = own @ weights, own @ offset + shift
                elif kind == "ReLU":
                    layers.append((weights, offset))
                    weights, offset = np.eye(weights.shape[0]), np.zeros(weights.shape[0])
                elif kind not in ("Identity", "Dropout", "Flatten"):
                    raise ValueError(f"the network holds a {kind}")
                outputs = part(outputs)
            if not np.allclose(outputs, module(probe), rtol=1e-5, atol=1e-5):
                raise ValueError("the network is no plain chain of layers")
        loss = get_loss(self.loss)
        weights, offset = loss.decision(weights.T).T, loss.decision(offset[None])[0]
        if self.scale is not None:  # numbers in the unit of the target
            weights, offset = weights * self.scale[:, None], offset * self.scale + self.mean
        return [*layers, (weights, offset)]

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Compute the outputs of the network, two competing ones reduced to their difference.

        Parameters
        ----------
        X : ndarray or sparse matrix, shape (n_samples, n_features_to_select)
            The selected columns, in the order of the table.
        offset : ndarray, shape (n_features_to_select,), default=None
            Implicit value of each column of a sparse table.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_outputs)
        """
        scores = get_loss(self.loss).decision(self.outputs(X, offset))
        return scores if self.scale is None or self.mean is None else scores * self.scale + self.mean

    @torch.no_grad()
    def outputs(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Compute the plain outputs of the network, float64."""
        device = next((p.device for p in self.module.parameters()), torch.device("cpu"))
        pieces = []
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            part = Problem(X[begin : begin + ROWS_AT_ONCE], np.empty((0, 0)), offset=offset)
            pieces.append(self.module(torch.from_numpy(part.dense()).to(device)).cpu().numpy())
        return np.concatenate(pieces).astype(np.float64)


class TorchEngine:
    """Train a network behind a mask and keep exactly M of its inputs.

    Parameters
    ----------
    build : callable
        ``build(n_features, n_outputs)`` returns an ``nn.Module`` that maps (n_samples, n_features) to
        (n_samples, n_outputs).
    device : str, default="cpu"
        Where the network is trained: "cpu", "cuda", "cuda:1".
    n_init : int, default=1
        Number of starts. The one with the lowest loss on the training rows is kept: a network that lost an input it needs
        cannot make up for it.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.schedule import network_schedule
    >>> X = np.random.default_rng(0).normal(size=(100, 8)).astype(np.float32)
    >>> targets = np.where(X[:, [2]] * X[:, [5]] > 0, np.float32(1), np.float32(-1))
    >>> schedule = network_schedule(100, 2, "classification", refinement_epochs=1)
    >>> rule = Rule(8, 2, ramp_steps=schedule.ramp_steps)
    >>> def build(n_features, n_outputs):
    ...     return nn.Sequential(nn.Linear(n_features, 50), nn.BatchNorm1d(50), nn.ReLU(), nn.Linear(50, n_outputs))
    >>> fit = TorchEngine(build).fit(Problem(X, targets), rule, get_loss("logistic"), schedule)
    >>> fit.selection.indices.tolist(), fit.model.scores(X[:, [2, 5]]).shape
    ([2, 5], (100, 1))
    """

    def __init__(
        self, build: Callable[[int, int], nn.Module], device: str | torch.device = "cpu", n_init: int = 1
    ) -> None:
        self.build = build
        self.device = checked_device(device)
        if n_init < 1:
            raise ValueError(f"n_init must be at least 1, got {n_init!r}")
        self.n_init = n_init

    def fit(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fit:
        """Select exactly M columns, or M groups of columns, and train the network on them, in one run for each start.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`. Sparse tables are made dense; ``seed`` is that
        of the first start, further ones count up from it, and the steps that ``progress`` is told begin anew with each.
        """
        if schedule.gamma_rows == "held-out":
            raise ValueError(
                "gamma_rows='held-out' is not there for networks of PyTorch: use network='mlp', or 'joint'"
            )
        problem.check_groups(rule.n_features)
        parts = (problem.dense(), problem.targets, problem.unit_weights())
        tensors = tuple(torch.as_tensor(part).to(self.device) for part in parts)

        def weighted(outputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            return (loss.torch(outputs, targets) * weights).mean()

        best: tuple[float, Fit] | None = None
        for start in range(self.n_init if rule.n_features_to_select < rule.n_features else 1):
            network = build_checked(self.build, problem.n_columns, problem.n_outputs, seed + start)
            model = nn.Sequential(_mask_of(rule, problem), network).to(self.device)
            decays, betas = decay_groups(model.parameters(), schedule.l2), (schedule.beta1, schedule.beta2)
            optimizer = torch.optim.Adam(decays, schedule.learning_rate, betas, schedule.epsilon, fused=True)

            def tell(report: StepReport, optimizer: torch.optim.Optimizer = optimizer) -> None:
                for group in optimizer.param_groups if report.n_refined > 0 else ():
                    group["weight_decay"] = 2.0 * schedule.refinement_l2 if group["decays"] else 0.0
                if progress is not None:
                    progress(report.step, report.n_alive, report.n_refined)

            selection = train(
                model,
                tensors,
                weighted,
                optimizer=lambda _, optimizer=optimizer: optimizer,
                batch_size=min(schedule.batch_size, problem.n_samples),
                **schedule_of(rule),
                **{name: getattr(schedule, name) for name in ("selection_steps", "refinement_steps", "average")},
                refinement_rates=[rate / schedule.learning_rate for rate in schedule.refinement_rates],
                seed=seed + start,
                callbacks=[tell],
            )
            with torch.no_grad():
                outputs = torch.cat([model(part) for part in tensors[0].split(ROWS_AT_ONCE)])
            if not bool(outputs.isfinite().all()):
                raise DivergenceError(
                    "The network's outputs became infinite or NaN. Normalise the features (normalize='erf' or "
                    "'standard') or lower learning_rate."
                )
            final = float(weighted(outputs, *tensors[1:]))
            if best is None or final < best[0]:
                pruned = prune(model, tensors[0][:64]).eval()
                best = final, Fit(_of_features(selection, problem), NetworkModel(pruned, loss.name))
        assert best is not None
        return best[1]


def build_checked(build: Callable[[int, int], Any], n_inputs: int, n_outputs: int, seed: int) -> nn.Module:
    """Build a network, its weights drawn from the seed, and check the shape of its output.

    Examples
    --------
    >>> build_checked(nn.Linear, 20, 1, seed=0)(torch.zeros(2, 20)).shape
    torch.Size([2, 1])
    >>> build_checked(lambda n_inputs, n_outputs: nn.Linear(n_inputs, 3), 20, 1, seed=0)
    Traceback (most recent call last):
    ValueError: The network must give 1 output(s) per row: for 2 rows (2, 1), not (2, 3).
    """
    with seeded(seed):
        made = build(n_inputs, n_outputs)
    if not isinstance(made, nn.Module):
        raise TypeError(f"network({n_inputs}, {n_outputs}) must return a torch module, it returned {made!r}.")
    made.eval()
    with torch.no_grad():
        shape = tuple(made(torch.zeros(2, n_inputs)).shape)
    if shape != (2, n_outputs):
        raise ValueError(
            f"The network must give {n_outputs} output(s) per row: for 2 rows {(2, n_outputs)}, not {shape}."
        )
    return made


def _mask_of(rule: Rule, problem: Problem) -> FeatureMask:
    """Make a mask over the columns; those that are always read have no entry of gamma."""
    options = {name: getattr(rule, name) for name in SETTINGS}
    if problem.groups is None and rule.costs is None:
        return FeatureMask(problem.n_columns, rule.n_features_to_select, rule.variant, **options)
    groups = np.arange(problem.n_columns) if problem.groups is None else np.asarray(problem.groups)
    feature = np.array([*range(rule.n_features), *[KEPT] * int((groups < 0).any())])
    group = np.where(groups < 0, rule.n_features, groups)
    gates = Gates(group, feature, rule.n_features_to_select, rule.costs, rule.budget)
    return FeatureMask(problem.n_columns, variant=rule.variant, groups=gates, **options)


def _of_features(selection: Selection, problem: Problem) -> Selection:
    """Turn the selection of columns into one of features."""
    if problem.groups is None:
        return selection
    groups, history = np.asarray(problem.groups), dict(selection.history)
    numbers, first = np.unique(groups, return_index=True)
    first = first[numbers >= 0]
    if "gamma_path" in history:
        shown = np.isin(history["gamma_path_features"], first)
        history["gamma_path"] = history["gamma_path"][:, shown]
        history["gamma_path_features"] = groups[history["gamma_path_features"][shown]]
    ranking = np.argsort(np.argsort(selection.ranking[first])) + 1  # the columns of a feature have consecutive ranks
    return replace(selection, support=selection.support[first], ranking=ranking, history=history)
