"""The default schedule of the estimators: the one place where these numbers stand."""

from __future__ import annotations

from dataclasses import dataclass

#: Adam's rate for the weights of the linear model.
LEARNING_RATE = 3e-3
#: Adam's rate for gamma.
MASK_LEARNING_RATE = 0.01
#: Steps during which gamma rests.
WARMUP_STEPS = 500
#: The paper's T: steps until alpha reaches 1. Most features are gone long before, so a slow ramp costs little.
RAMP_STEPS = 20_000
#: Starts of a network; the one that ends with the lowest training loss is kept.
NETWORK_STARTS = 3
#: Share of the refinement of a network, at its end, over which the weights are averaged; the rate stays as it is.
NETWORK_AVERAGE = 0.7
#: Passes over the data after the selection is closed.
REFINEMENT_EPOCHS = 150


def l2_for(n_samples: int) -> float:
    """The paper's weight decay, 100 / N, and more below 57 samples, where (75 / N)^2 is larger.

    With very few samples a strong decay brings the weights near to the differences of the class means, which is about all
    that so few samples tell reliably.

    Examples
    --------
    >>> l2_for(30), l2_for(200)
    (6.25, 0.5)
    """
    return max(100.0 / n_samples, (75.0 / n_samples) ** 2)


def refinement_l2_for(n_samples: int, task: str) -> float:
    """The weight decay once the features are chosen: the paper's for classes; for numbers that of a ridge with alpha = 1.

    Classes are told apart by the sign of a score, numbers by its size, which a strong decay would shrink.

    Examples
    --------
    >>> refinement_l2_for(200, "classification"), refinement_l2_for(200, "regression")
    (0.5, 0.005)
    """
    return l2_for(n_samples) if task == "classification" else 1.0 / n_samples


def refinement_share(n_features_to_select: int, task: str) -> float:
    """By what the weight decay of classes shrinks in the refinement when fewer than 100 features are left.

    The fewer features add up to a score, the larger their weights have to be.

    Examples
    --------
    >>> refinement_share(10, "classification"), refinement_share(200, "classification"), refinement_share(10, "regression")
    (0.1, 1.0, 1.0)
    """
    return min(1.0, n_features_to_select / 100) if task == "classification" else 1.0


def batch_size_for(n_samples: int) -> int:
    """The paper's batch size, a fiftieth of the samples and at least two.

    Examples
    --------
    >>> batch_size_for(41), batch_size_for(6000)
    (2, 120)
    """
    return max(2, n_samples // 50)


@dataclass(frozen=True)
class Schedule:
    """Lengths and rates of a fit, with every "auto" decided."""

    learning_rate: float
    refinement_learning_rate: float
    mask_learning_rate: float
    l2: float
    refinement_l2: float
    batch_size: int
    warmup_steps: int
    ramp_steps: int
    refinement_epochs: int
    n_samples: int

    @property
    def steps_per_epoch(self) -> int:
        """Batches that make one pass over the data."""
        return -(-self.n_samples // self.batch_size)

    @property
    def refinement_steps(self) -> int:
        """Steps after the mask is closed."""
        return self.refinement_epochs * self.steps_per_epoch


def default_schedule(n_samples: int, task: str, linear: bool = True) -> Schedule:
    """The schedule for a table with that many rows, a task ("classification" or "regression") and a kind of network.

    Examples
    --------
    >>> default_schedule(6000, "regression").steps_per_epoch
    50
    """
    if not linear:
        return network_schedule(n_samples)
    return Schedule(
        learning_rate=LEARNING_RATE,
        refinement_learning_rate=LEARNING_RATE,
        mask_learning_rate=MASK_LEARNING_RATE,
        l2=l2_for(n_samples),
        refinement_l2=refinement_l2_for(n_samples, task),
        batch_size=batch_size_for(n_samples),
        warmup_steps=WARMUP_STEPS,
        ramp_steps=RAMP_STEPS,
        refinement_epochs=REFINEMENT_EPOCHS,
        n_samples=n_samples,
    )


def network_schedule(n_samples: int) -> Schedule:
    """The schedule of other networks: that of ``tamiz.torch.train``, with weight decay and a longer refinement.

    Batches hold 64 rows, or a quarter of a smaller table: batch normalisation over the paper's two rows would leave only
    signs. Without weight decay a network learns its noise columns by heart and keeps some of them; once they are gone,
    a tenth of the decay is enough. The refinement takes about two thousand steps whatever the size of the table.

    Examples
    --------
    >>> network_schedule(100).batch_size, network_schedule(5000).batch_size, network_schedule(6400).refinement_steps
    (25, 64, 2000)
    """
    batch_size = min(64, max(16, n_samples // 4))
    steps_per_epoch = -(-n_samples // batch_size)
    l2 = min(0.01, 8.0 / n_samples)
    return Schedule(
        learning_rate=0.01,
        refinement_learning_rate=5e-3,
        mask_learning_rate=MASK_LEARNING_RATE,
        l2=l2,
        refinement_l2=0.1 * l2,
        batch_size=batch_size,
        warmup_steps=0,
        ramp_steps=2000,
        refinement_epochs=-(-2000 // steps_per_epoch),
        n_samples=n_samples,
    )
