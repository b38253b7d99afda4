"""The values of the parameter ``network``: which engine trains it, by what schedule. To add one, add a line to ``NETWORKS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamiz._extras import require
from tamiz._names import pick
from tamiz.engines.schedule import (
    DENSE_STARTS,
    NETWORK_STARTS,
    Schedule,
    additive_schedule,
    linear_l2_candidates,
    linear_schedule,
    network_schedule,
)

if TYPE_CHECKING:
    from tamiz.engines.contract import Engine


@dataclass(frozen=True)
class Network:
    """Describe a network of the estimators.

    Parameters
    ----------
    name : str
        Value of the parameter ``network``.
    title : str
        Name in reports.
    engine : callable
        ``engine(estimator)``: the engine for the parameters of an estimator.
    schedule : callable, default=network_schedule
        ``schedule(n_samples, n_features_to_select, task, **parameters)``: lengths and rates, with every "auto" decided.
    compiled : bool, default=False
        Whether it runs in a compiled engine, on the CPU, in threads.
    convex : bool, default=False
        Whether its problem is convex: one quick start, so that the commands afford a fit for each point of a curve.
    l2_candidates : callable or None, default=None
        ``l2_candidates(n_samples, n_outputs, task)``: weight decays that ``l2="auto"`` chooses from on inner folds, the rule
        first; None: the rule of the schedule decides.
    """

    name: str
    title: str
    engine: Callable[[Any], Engine]
    schedule: Callable[..., Schedule] = network_schedule
    compiled: bool = False
    convex: bool = False
    l2_candidates: Callable[[int, int, str], tuple[float, ...]] | None = None


def _n_starts(estimator: Any, automatic: int) -> int:
    return automatic if isinstance(estimator.n_init, str) else int(estimator.n_init)


def torch_engine(build: str | Callable[[int, int], Any]) -> Callable[[Any], Engine]:
    """Return the ``engine`` of a network that PyTorch trains.

    Parameters
    ----------
    build : callable or str
        Function of the number of inputs and of outputs that returns an ``nn.Module``, or the name of a network of
        ``tamiz.torch.networks``.
    """

    def make(estimator: Any) -> Engine:
        require("torch", "torch", f"network={estimator.network!r}")
        from tamiz.torch.engine import TorchEngine

        return TorchEngine(build, device=estimator.device, n_init=_n_starts(estimator, NETWORK_STARTS))

    return make


def _check_left_alone(estimator: Any, name: str, only: Any, reason: str) -> None:
    """Raise if a parameter that a network does not use has another value than its default."""
    value = getattr(estimator, name)
    if str(value) != str(only):
        raise ValueError(f"network={estimator.network!r} {reason}: leave {name} at {only!r}, got {value!r}.")


def _check_one_start(estimator: Any) -> None:
    _check_left_alone(estimator, "device", "cpu", "runs on the CPU")
    if estimator.n_init != 1:
        _check_left_alone(estimator, "n_init", "auto", "runs from one start")


def _linear_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    from tamiz.engines.linear import LinearEngine  # loads numba

    return LinearEngine(fit_intercept=bool(estimator.fit_intercept))


def _additive_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    from tamiz.engines.additive import AdditiveEngine  # loads numba

    return AdditiveEngine(fit_intercept=bool(estimator.fit_intercept))


def _dense_engine(estimator: Any) -> Engine:
    _check_left_alone(estimator, "device", "cpu", "runs on the CPU")
    from tamiz.engines.dense import DenseEngine  # loads numba

    return DenseEngine(estimator.hidden_layer_sizes, n_init=_n_starts(estimator, DENSE_STARTS))


def _automatic_engine(estimator: Any) -> Engine:
    """Check what all networks that are tried have in common; the choice is made before any of them is trained."""
    _check_left_alone(estimator, "device", "cpu", "runs on the CPU")
    from tamiz.engines.linear import LinearEngine  # loads numba

    return LinearEngine(fit_intercept=bool(estimator.fit_intercept))


#: What ``network="auto"`` tries, the simplest first; names that ``NETWORKS`` does not have are left out.
AUTOMATIC_NETWORKS = ("linear", "additive", "pairs", "mlp")

NETWORKS: dict[str, Network] = {
    "linear": Network(
        "linear",
        "linear model",
        _linear_engine,
        linear_schedule,
        compiled=True,
        convex=True,
        l2_candidates=linear_l2_candidates,
    ),
    "additive": Network(
        "additive", "curve per column", _additive_engine, additive_schedule, compiled=True, convex=True
    ),
    "mlp": Network("mlp", "dense network", _dense_engine, compiled=True),
    "auto": Network("auto", "simplest of these that does as well", _automatic_engine, linear_schedule, compiled=True),
}


def find_network(network: str | Callable[[int, int], Any]) -> Network:
    """Return the record of a network: a name in ``NETWORKS``, or a function that builds an ``nn.Module``.

    Examples
    --------
    >>> find_network("linear").title
    'linear model'
    >>> find_network("lineer")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'lineer'. Did you mean 'linear'? There are: linear, additive, mlp, auto.
    """
    if callable(network):
        return Network("callable", "network of the user", torch_engine(network))
    return pick(network, NETWORKS, "network")
