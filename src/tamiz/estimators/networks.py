"""The networks of the estimators: which engine trains them, by what schedule. To add one, add a line to ``NETWORKS``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from tamiz._utils.extras import require
from tamiz._utils.text import pick
from tamiz.engines import schedule as schedules
from tamiz.engines.schedule import Schedule
from tamiz.estimators.training import Options, Training

if TYPE_CHECKING:
    from tamiz.engines.contract import Engine


#: Parameters of ``Training`` that make a schedule.
LENGTHS = ("learning_rate", "batch_size", "warmup_steps", "ramp_steps", "refinement_epochs", "max_steps", "gamma_rows")


class Network(Options):
    """Base of the networks.

    A subclass has a name, a title, ``engine`` and the functions that decide its schedule; ``compiled`` says that it runs in a
    compiled engine, in threads, ``quick`` that a fit takes milliseconds, ``dense_cells``
    up to which size a sparse table is made dense, because more is found in it then.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    compiled: ClassVar[bool] = True
    quick: ClassVar[bool] = False
    dense_cells: ClassVar[int] = 0
    automatic_schedule: ClassVar[Callable[..., Schedule]] = staticmethod(schedules.network_schedule)
    paper_schedule: ClassVar[Callable[..., Schedule] | None] = None

    def engine(self, training: Training) -> Engine:
        """Build the engine that trains the network.

        Parameters
        ----------
        training : Training
            Parameters of the training.

        Returns
        -------
        Engine
        """
        raise NotImplementedError

    def schedule(
        self,
        training: Training,
        n_samples: int,
        n_features_to_select: int,
        task: str,
        *,
        n_outputs: int = 1,
        l2: float | str = "auto",
        variant: str = "soft",
    ) -> Schedule:
        """Decide every "auto" of the training.

        Parameters
        ----------
        training : Training
            Parameters of the training.
        n_samples, n_features_to_select : int
            Rows and M.
        task : {"classification", "regression"}
            What the target holds.
        n_outputs : int, default=1
            Outputs of the model.
        l2 : float or "auto", default="auto"
            Weight decay.
        variant : str, default="soft"
            Variant of the rule.

        Raises
        ------
        ValueError
            If the paper has no recipe for the network.

        Examples
        --------
        >>> NETWORKS["linear"].schedule(Training(), 200, 10, "classification").ramp_steps
        20000
        >>> NETWORKS["linear"].schedule(Training.paper(), 200, 10, "classification").ramp_steps
        12500
        """
        given = {**{name: getattr(training, name) for name in LENGTHS}, "l2": l2}
        if training.recipe != "paper":
            return type(self).automatic_schedule(n_samples, n_features_to_select, task, n_outputs=n_outputs, **given)
        decide = type(self).paper_schedule
        if decide is None or task == "regression":
            known = " or ".join(repr(name) for name, one in NETWORKS.items() if one.paper_schedule and name != "auto")
            what = "regression" if decide is not None else f"network={self.name!r}"
            raise ValueError(
                f"The paper has no recipe for {what}: it classifies with network={known}. Leave Training.paper() out."
            )
        return decide(n_samples, n_features_to_select, task, variant=variant, **given)


class Linear(Network):
    """The paper's network without hidden units."""

    name, title = "linear", "linear model"
    quick = True
    automatic_schedule = staticmethod(schedules.linear_schedule)
    paper_schedule = staticmethod(schedules.paper_schedule)

    def engine(self, training: Training) -> Engine:
        """Build the linear engine."""
        from tamiz.engines.linear import LinearEngine  # loads numba

        return LinearEngine(bool(training.fit_intercept))


class Additive(Network):
    """A sum of curves, one for each column."""

    name, title = "additive", "curve per column"
    quick = True
    automatic_schedule = staticmethod(schedules.additive_schedule)

    def engine(self, training: Training) -> Engine:
        """Build the additive engine."""
        from tamiz.engines.additive import AdditiveEngine  # loads numba

        return AdditiveEngine(fit_intercept=bool(training.fit_intercept))


@dataclass(kw_only=True, repr=False)
class Pairs(Network):
    """Curves of columns and products of pairs of them.

    Parameters
    ----------
    n_screened : int or "auto", default="auto"
        Columns that are trained on, at least M: those with the most evidence, on their own or in a pair, by the search of
        :func:`find_pairs` on the training rows. "auto" is max(8, 2 M, min(40, N / 25)).

    Notes
    -----
    A sparse table of up to 20 million cells is made dense. A larger one stays sparse, and its columns are screened by
    straight lines instead of curves.
    """

    name, title = "pairs", "curves and products of pairs"
    dense_cells = 20_000_000
    automatic_schedule = staticmethod(schedules.pair_schedule)

    n_screened: int | str = "auto"

    def _constraints(self) -> dict[str, Any]:
        return {"n_screened": _whole_or_auto()}

    def engine(self, training: Training) -> Engine:
        """Build the engine of pairs."""
        from tamiz.engines.pairs import PairEngine  # loads numba

        n_screened = None if isinstance(self.n_screened, str) else int(self.n_screened)
        return PairEngine(fit_intercept=bool(training.fit_intercept), n_screened=n_screened)


#: Hidden layers of the paper's three-layer network.
PAPER_HIDDEN_LAYERS = (50, 25, 10)


@dataclass(kw_only=True, repr=False)
class Dense(Network):
    """The paper's network with hidden layers, each followed by batch normalisation and ReLU; compiled, without PyTorch.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(50, 25, 10)
        Units of the hidden layers.
    n_init : int or "auto", default="auto"
        Starts from different weights, of which one is kept: that with the lowest loss on rows held out inside the fit (1,000
        rows and more; it is then trained on all), else on the training rows. "auto" is 4; 1 for ``Training.paper()``.
    n_screened : int or None, default=None
        Columns that are trained on, at least M: those with the most evidence, as in :class:`Pairs`. None is all.
    """

    name, title = "mlp", "dense network"
    paper_schedule = staticmethod(partial(schedules.paper_schedule, rate=0.05))

    hidden_layer_sizes: Sequence[int] = PAPER_HIDDEN_LAYERS
    n_init: int | str = "auto"
    n_screened: int | None = None

    def _constraints(self) -> dict[str, Any]:
        sizes = ["array-like"]  # the engine checks them
        return {"hidden_layer_sizes": sizes, "n_init": _whole_or_auto(), "n_screened": [*_whole_or_auto()[:1], None]}

    def engine(self, training: Training) -> Engine:
        """Build the dense engine."""
        if training.recipe == "paper" and tuple(self.hidden_layer_sizes) != PAPER_HIDDEN_LAYERS:
            raise ValueError(
                f"The paper's recipe is for hidden_layer_sizes={PAPER_HIDDEN_LAYERS}, got {self.hidden_layer_sizes!r}: "
                "use these, or leave Training.paper() out."
            )
        from tamiz.engines.dense import DenseEngine  # loads numba
        from tamiz.engines.pairs import ScreenedEngine

        engine = DenseEngine(self.hidden_layer_sizes, n_init=_n_starts(self.n_init, schedules.DENSE_STARTS, training))
        return engine if self.n_screened is None else ScreenedEngine(engine, int(self.n_screened))


@dataclass(kw_only=True, repr=False)
class TorchNetwork(Network):
    """A network that PyTorch trains.

    Parameters
    ----------
    build : callable
        Function of the number of inputs and of outputs that returns an ``nn.Module``.
    n_init : int or "auto", default="auto"
        Starts from different weights, of which that with the lowest loss on the training rows is kept; "auto" is 3.
    device : str, default="cpu"
        Device to train on.
    """

    name, title = "callable", "network of the user"
    compiled = False

    build: Callable[[int, int], Any] = field(kw_only=False)
    n_init: int | str = "auto"
    device: str = "cpu"

    def _constraints(self) -> dict[str, Any]:
        return {"build": [callable], "n_init": _whole_or_auto(), "device": [str]}

    def engine(self, training: Training) -> Engine:
        """Build the engine of PyTorch."""
        require("torch", "torch", f"network={self.build!r}")
        from tamiz.torch.engine import TorchEngine

        return TorchEngine(
            self.build, device=self.device, n_init=_n_starts(self.n_init, schedules.NETWORK_STARTS, training)
        )


class Automatic(Linear):
    """The simplest network that does as well as the best, chosen by inner cross-validation."""

    name, title = "auto", "simplest of these that does as well"
    quick = False


def _whole_or_auto() -> list[Any]:
    from tamiz._utils.validation import AUTO, whole_number

    return [whole_number(1), AUTO]


def _n_starts(n_init: int | str, automatic: int, training: Training) -> int:
    if not isinstance(n_init, str):
        return int(n_init)
    return schedules.PAPER_STARTS if training.recipe == "paper" else automatic


#: The names of the parameter ``network``.
NETWORKS: dict[str, Network] = {
    "linear": Linear(),
    "additive": Additive(),
    "pairs": Pairs(),
    "mlp": Dense(),
    "auto": Automatic(),
}

#: What ``network="auto"`` may try, the simplest first. What is screened to M columns keeps those with the most evidence.
AUTOMATIC_NETWORKS: dict[str, str | Network] = {
    "linear": "linear",
    "additive": "additive",
    "pair search": Pairs(n_screened=1),
    "pairs": "pairs",
    "mlp of pair search": Dense(n_screened=1),
    "mlp": "mlp",
}


def find_network(network: str | Network | Callable[[int, int], Any]) -> Network:
    """Find the network of a parameter: a name in ``NETWORKS``, an object, or a function that builds an ``nn.Module``.

    Examples
    --------
    >>> find_network("linear").title
    'linear model'
    >>> find_network("lineer")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'lineer'. Did you mean 'linear'? There are: linear, additive, pairs, ...
    """
    if isinstance(network, str) and network in NETWORKS:
        return NETWORKS[network]
    if isinstance(network, Network):
        return network
    if callable(network):
        return TorchNetwork(network)
    return pick(network, NETWORKS, "network")
