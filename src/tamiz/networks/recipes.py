"""The paper's training recipes as data: optimiser, learning rates, regularisation, lengths of the phases.

Nothing here needs torch, so that protocols and documentation can read a recipe without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType


def _frozen(**values: int) -> Mapping[str, int]:
    return MappingProxyType(values)


@dataclass(frozen=True)
class Recipe:
    """How the paper trains one of its networks.

    A run has up to four phases: *pretraining* on all features with the full schedule of learning rates,
    *warm-up* of the weights while the mask stands still, *selection* at a fixed rate, and *refinement* with
    the full schedule. A plain training run, such as those of DFS and SFS, is the refinement alone.

    Parameters
    ----------
    optimizer : {"adam", "sgd"}
        The optimiser of the weights.
    loss : str
        The loss for classification, by its name in :mod:`tamiz.networks.losses`.
    learning_rate : float
        The rate at the start of a schedule.
    decay_every, decay_factor : int, float
        The rate is divided by ``decay_factor`` after every ``decay_every`` epochs.
    selection_learning_rate : float
        The fixed rate of warm-up and selection.
    l2 : float
        The factor of the squared norm of the weights (not of biases, nor of batch normalisation) in the loss;
        its gradient is ``2 * l2 * weight``.
    l2_over_samples : bool
        True if ``l2`` is to be divided by the number of training samples N.
    pretraining_epochs, warmup_epochs, refinement_epochs : int
        Lengths of the phases.
    selection_epochs, ramp_epochs : mapping of str to int
        By variant ("hard", "soft"): length of the selection, and the paper's T, over which alpha rises.
    batch_size : int or None
        A fixed batch size; None stands for the paper's ``max(2, N / 50)``.
    momentum : float
        Of SGD, in Nesterov's form where it is not zero.
    class_weight : str or None
        "balanced" where the paper weights the classes.

    Examples
    --------
    >>> NAIVE.batch_size_for(41), NAIVE.batch_size_for(6000)
    (2, 120)
    >>> [NAIVE.learning_rate_at(epoch) for epoch in (0, 49, 50, 149)]
    [0.001, 0.001, 0.0002, 4e-05]
    >>> NAIVE.l2_for(50)
    2.0
    >>> NAIVE.with_epochs(30).learning_rate_at(10)
    0.0002
    """

    optimizer: str
    loss: str
    learning_rate: float
    decay_every: int
    decay_factor: float
    selection_learning_rate: float
    l2: float
    l2_over_samples: bool
    refinement_epochs: int
    pretraining_epochs: int = 0
    warmup_epochs: int = 0
    selection_epochs: Mapping[str, int] = field(default_factory=_frozen)
    ramp_epochs: Mapping[str, int] = field(default_factory=_frozen)
    batch_size: int | None = None
    momentum: float = 0.0
    class_weight: str | None = None

    def batch_size_for(self, n_samples: int) -> int:
        """The batch size for ``n_samples`` training samples: fixed, or the paper's max(2, N / 50)."""
        return self.batch_size if self.batch_size is not None else max(2, n_samples // 50)

    def l2_for(self, n_samples: int) -> float:
        """The factor of the squared norm of the weights for ``n_samples`` training samples."""
        return self.l2 / n_samples if self.l2_over_samples else self.l2

    def learning_rate_at(self, epoch: int) -> float:
        """The rate in an epoch (from 0) of a pretraining or refinement."""
        return self.learning_rate / self.decay_factor ** (epoch // self.decay_every)

    def with_epochs(self, epochs: int) -> Recipe:
        """The same recipe for another length of refinement; the schedule of rates is stretched with it."""
        decay_every = max(1, round(self.decay_every * epochs / self.refinement_epochs))
        return replace(self, refinement_epochs=epochs, decay_every=decay_every)


#: Microarrays and challenge sets: Adam at 1e-3, divided by 5 every 50 epochs, 150 epochs, l2 = 100 / N.
NAIVE = Recipe(
    optimizer="adam",
    loss="squared_hinge",
    learning_rate=1e-3,
    decay_every=50,
    decay_factor=5.0,
    selection_learning_rate=1e-3,
    l2=100.0,
    l2_over_samples=True,
    warmup_epochs=5,
    selection_epochs=_frozen(hard=300, soft=200),
    ramp_epochs=_frozen(hard=300, soft=250),
    refinement_epochs=150,
    class_weight="balanced",
)

#: As the naive SVM, but with a rate of 0.05 while features are selected.
THREE_LAYER = replace(NAIVE, selection_learning_rate=0.05)

#: Images: SGD at 0.1, divided by 5 every 30 epochs, 110 + 70 + 110 epochs, l2 = 5e-4. The paper names neither
#: momentum nor batch size; 0.9 (Nesterov) and 128 are those of the Wide ResNet paper, whose rates and decay
#: it uses.
WRN16X4 = Recipe(
    optimizer="sgd",
    loss="softmax",
    learning_rate=0.1,
    decay_every=30,
    decay_factor=5.0,
    selection_learning_rate=0.1,
    l2=5e-4,
    l2_over_samples=False,
    pretraining_epochs=110,
    selection_epochs=_frozen(hard=70, soft=70),
    ramp_epochs=_frozen(hard=100, soft=250),
    refinement_epochs=110,
    batch_size=128,
    momentum=0.9,
)

#: The paper quotes the results of the 3-layer CNN from the SFS paper; it is trained here by the recipe of the
#: images.
CNN3 = WRN16X4
