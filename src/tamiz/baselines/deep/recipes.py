"""How the papers train their networks, as data: optimizer, learning rates, regularisation, length.

Nothing here needs torch, so that protocols and documentation can read a recipe without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Recipe:
    """Hold how a network is trained on a table.

    Parameters
    ----------
    optimizer : {"adam", "sgd"}
        The optimizer of the weights.
    loss : str
        The loss for classification, by its name in :data:`tamiz.core.losses.LOSSES`.
    learning_rate : float
        The rate at the start.
    decay_every : int
        The rate is divided by ``decay_factor`` after so many epochs, again and again.
    decay_factor : float
        See ``decay_every``.
    l2 : float
        Factor of the squared norm of the weights (not of biases, nor of batch normalisation) in the loss; its gradient is
        ``2 * l2 * weight``.
    l2_over_samples : bool
        Whether ``l2`` is divided by the number of training samples N.
    epochs : int
        Passes over the table.
    batch_size : int or None, default=None
        A fixed batch size; None stands for the paper's ``max(2, N / 50)``.
    momentum : float, default=0.0
        Momentum of SGD, in Nesterov's form where it is not zero.

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
    l2: float
    l2_over_samples: bool
    epochs: int
    batch_size: int | None = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {self.epochs}.")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}.")

    def batch_size_for(self, n_samples: int) -> int:
        """Return the batch size for ``n_samples`` training samples: fixed, or the paper's max(2, N / 50)."""
        return self.batch_size if self.batch_size is not None else max(2, n_samples // 50)

    def l2_for(self, n_samples: int) -> float:
        """Return the factor of the squared norm of the weights for ``n_samples`` training samples."""
        return self.l2 / n_samples if self.l2_over_samples else self.l2

    def learning_rate_at(self, epoch: int) -> float:
        """Return the rate in an epoch, counted from 0."""
        return self.learning_rate / self.decay_factor ** (epoch // self.decay_every)

    def with_epochs(self, epochs: int) -> Recipe:
        """Return the same recipe for another length; the schedule of the rates is stretched with it."""
        decay_every = max(1, round(self.decay_every * epochs / self.epochs))
        return replace(self, epochs=epochs, decay_every=decay_every)


#: Microarrays and challenge sets: Adam at 1e-3, divided by 5 every 50 epochs, 150 epochs, l2 = 100 / N. So is every
#: network trained that has no recipe of its own.
NAIVE = Recipe(
    optimizer="adam",
    loss="squared_hinge",
    learning_rate=1e-3,
    decay_every=50,
    decay_factor=5.0,
    l2=100.0,
    l2_over_samples=True,
    epochs=150,
)

#: Images: SGD at 0.1, divided by 5 every 30 epochs, 110 epochs, l2 = 5e-4. The paper names neither momentum nor batch
#: size; 0.9 (Nesterov) and 128 are those of the Wide ResNet paper, whose rates and decay it uses.
IMAGES = Recipe(
    optimizer="sgd",
    loss="softmax",
    learning_rate=0.1,
    decay_every=30,
    decay_factor=5.0,
    l2=5e-4,
    l2_over_samples=False,
    epochs=110,
    batch_size=128,
    momentum=0.9,
)

#: Recipes other than NAIVE, by the name of the network. The paper quotes the results of the 3-layer CNN from the SFS
#: paper; it is trained here by the recipe of the images.
RECIPES = {"wrn16x4": IMAGES, "cnn3": IMAGES}


def recipe_for(network: object) -> Recipe:
    """Return the recipe of a network, by its name or for a function that builds it.

    Examples
    --------
    >>> recipe_for("cnn3").optimizer, recipe_for("mlp").optimizer, recipe_for(lambda n_inputs, n_outputs: None).optimizer
    ('sgd', 'adam', 'adam')
    """
    return RECIPES.get(network, NAIVE) if isinstance(network, str) else NAIVE
