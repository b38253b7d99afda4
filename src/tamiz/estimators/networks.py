"""The values of the parameter ``network``: which engine trains it, by what schedule. To add one, add a line to ``NETWORKS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tamiz._extras import require
from tamiz._names import pick
from tamiz.engines.additive import AdditiveEngine
from tamiz.engines.contract import Engine
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import NETWORK_STARTS, Schedule, additive_schedule, linear_schedule, network_schedule


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
        Whether it runs in the compiled engine, on the CPU, from one start, in threads.
    """

    name: str
    title: str
    engine: Callable[[Any], Engine]
    schedule: Callable[..., Schedule] = network_schedule
    compiled: bool = False


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

        n_init = NETWORK_STARTS if isinstance(estimator.n_init, str) else int(estimator.n_init)
        return TorchEngine(build, device=estimator.device, n_init=n_init)

    return make


def _check_one_start(estimator: Any) -> None:
    for name, only in (("device", "cpu"), ("n_init", "auto")):
        value = getattr(estimator, name)
        if str(value) != only and not (name == "n_init" and value == 1):
            raise ValueError(
                f"network={estimator.network!r} runs on the CPU from one start: leave {name} at {only!r}, got {value!r}."
            )


def _linear_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    return LinearEngine(fit_intercept=bool(estimator.fit_intercept))


def _additive_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    return AdditiveEngine(fit_intercept=bool(estimator.fit_intercept))


NETWORKS: dict[str, Network] = {
    "linear": Network("linear", "linear model", _linear_engine, linear_schedule, compiled=True),
    "additive": Network("additive", "additive model", _additive_engine, additive_schedule, compiled=True),
    "mlp": Network("mlp", "three-layer network", torch_engine("three_layer")),
}


def find_network(network: str | Callable[[int, int], Any]) -> Network:
    """Return the record of a network: a name in ``NETWORKS``, or a function that builds an ``nn.Module``.

    Examples
    --------
    >>> find_network("linear").title
    'linear model'
    >>> find_network("lineer")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'lineer'. Did you mean 'linear'? There are: linear, additive, mlp.
    """
    if callable(network):
        return Network("callable", "network of the user", torch_engine(network))
    return pick(network, NETWORKS, "network")
