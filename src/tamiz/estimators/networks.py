"""The values of the parameter ``network``: which engine trains it, by what schedule. To add one, add a line to ``NETWORKS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tamiz._utils.extras import require
from tamiz._utils.names import pick
from tamiz.engines.schedule import (
    DENSE_STARTS,
    NETWORK_STARTS,
    PAPER_STARTS,
    Schedule,
    additive_schedule,
    linear_l2_candidates,
    linear_schedule,
    network_schedule,
    pair_schedule,
    paper_linear_schedule,
    paper_network_schedule,
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
    paper_schedule : callable or None, default=None
        The same for ``schedule="paper"``, with the keyword ``variant``; None: the paper has no such network.
    compiled : bool, default=False
        Whether it runs in a compiled engine, on the CPU, in threads.
    convex : bool, default=False
        Whether its problem is convex for a given mask, so that one start is enough.
    quick : bool, default=False
        Whether a fit takes milliseconds, so that the commands afford one for each point of a curve and each permutation.
    l2_candidates : callable or None, default=None
        ``l2_candidates(n_samples, n_outputs, task)``: weight decays that ``l2="auto"`` chooses from on inner folds, the rule
        first; None: the rule of the schedule decides.
    """

    name: str
    title: str
    engine: Callable[[Any], Engine]
    schedule: Callable[..., Schedule] = network_schedule
    paper_schedule: Callable[..., Schedule] | None = None
    compiled: bool = False
    convex: bool = False
    quick: bool = False
    l2_candidates: Callable[[int, int, str], tuple[float, ...]] | None = None


def _n_starts(estimator: Any, automatic: int) -> int:
    if not isinstance(estimator.n_init, str):
        return int(estimator.n_init)
    return PAPER_STARTS if estimator.schedule == "paper" else automatic


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
        _check_no_screening(estimator)
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


def _check_no_screening(estimator: Any) -> None:
    _check_left_alone(estimator, "n_screened", "auto", "trains on all columns")


def _linear_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    _check_no_screening(estimator)
    from tamiz.engines.linear import LinearEngine  # loads numba

    return LinearEngine(fit_intercept=bool(estimator.fit_intercept))


def _additive_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    _check_no_screening(estimator)
    from tamiz.engines.additive import AdditiveEngine  # loads numba

    return AdditiveEngine(fit_intercept=bool(estimator.fit_intercept))


def _pair_engine(estimator: Any) -> Engine:
    _check_one_start(estimator)
    from tamiz.engines.pairs import PairEngine  # loads numba

    n_screened = None if isinstance(estimator.n_screened, str) else int(estimator.n_screened)
    return PairEngine(fit_intercept=bool(estimator.fit_intercept), n_screened=n_screened)


def _dense_engine(estimator: Any) -> Engine:
    _check_left_alone(estimator, "device", "cpu", "runs on the CPU")
    from tamiz.engines.dense import DenseEngine  # loads numba

    engine = DenseEngine(estimator.hidden_layer_sizes, n_init=_n_starts(estimator, DENSE_STARTS))
    if isinstance(estimator.n_screened, str):
        return engine
    from tamiz.engines.pairs import ScreenedEngine

    return ScreenedEngine(engine, int(estimator.n_screened))


#: Hidden layers of the paper's three-layer network.
PAPER_HIDDEN_LAYERS = (50, 25, 10)


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
        paper_linear_schedule,
        compiled=True,
        convex=True,
        quick=True,
        l2_candidates=linear_l2_candidates,
    ),
    "additive": Network(
        "additive", "curve per column", _additive_engine, additive_schedule, compiled=True, convex=True, quick=True
    ),
    "pairs": Network("pairs", "curves and products of pairs", _pair_engine, pair_schedule, compiled=True, convex=True),
    "mlp": Network("mlp", "dense network", _dense_engine, paper_schedule=paper_network_schedule, compiled=True),
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
    tamiz.errors.UnknownNameError: Unknown network 'lineer'. Did you mean 'linear'? There are: linear, additive, pairs, ...
    """
    if callable(network):
        return Network("callable", "network of the user", torch_engine(network))
    return pick(network, NETWORKS, "network")


def find_schedule(estimator: Any) -> Callable[..., Schedule]:
    """Return the function that decides the schedule of an estimator: of its network, by its parameter ``schedule``.

    Raises
    ------
    ValueError
        If the paper has no recipe for the network.
    """
    network = find_network(estimator.network)
    if estimator.schedule == "auto":
        return network.schedule
    if network.paper_schedule is None:
        known = " or ".join(repr(name) for name, kind in NETWORKS.items() if kind.paper_schedule is not None)
        raise ValueError(
            f"The paper has no recipe for network={estimator.network!r}: use network={known}, or schedule='auto'."
        )
    if network.name == "mlp" and tuple(estimator.hidden_layer_sizes) != PAPER_HIDDEN_LAYERS:
        raise ValueError(
            f"The paper's recipe is for hidden_layer_sizes={PAPER_HIDDEN_LAYERS}, got {estimator.hidden_layer_sizes!r}: "
            "use these, or schedule='auto'."
        )
    return partial(network.paper_schedule, variant=estimator.variant)
