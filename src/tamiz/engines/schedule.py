"""Lengths and rates of a fit: the one module where every "auto" is decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

#: Learning rate of gamma.
MASK_LEARNING_RATE = 0.01
#: From so many rows on, rows of a batch and steps of refinement: more of either change nothing but the time. Half of 100,000,
#: so that the folds of such a table are trained as the table itself.
MANY_ROWS, BATCH_OF_MANY_ROWS, REFINEMENT_OF_MANY_ROWS = 50_000, 256, 7500
#: Starts of a network that PyTorch trains.
NETWORK_STARTS = 3
#: Starts of a compiled network, which cost a fraction of that.
DENSE_STARTS = 4
#: Starts of a network that is trained as in the paper.
PAPER_STARTS = 1
#: Epochs of warm-up in the paper, the first of those that it adds for the selection.
PAPER_WARMUP_EPOCHS = 5
#: Epochs that the paper adds for the selection, by variant: E2E-FS and E2E-FS-Soft.
PAPER_SELECTION_EPOCHS = {"hard": 300, "soft": 200}
#: The paper's T in epochs, by variant.
PAPER_RAMP_EPOCHS = {"hard": 300, "soft": 250}
#: Epochs of training once the features are chosen.
PAPER_REFINEMENT_EPOCHS = 150


@dataclass(frozen=True)
class Schedule:
    """Hold the lengths and rates of a fit, with every "auto" decided.

    Parameters
    ----------
    learning_rate : float
        Learning rate of the weights in warm-up, selection and closing (Adam).
    l2 : float
        Factor of the squared norm of the weights in these phases.
    batch_size : int
        Rows per step.
    warmup_steps, ramp_steps : int
        Steps before gamma moves; the paper's T.
    refinement_steps : int
        Steps of refinement, after the mask is closed.
    refinement_l2 : float
        The factor of the squared norm of the weights in the refinement.
    refinement_rates : tuple of float
        Learning rates of the refinement, one for each of as many equal parts.
    average : float, default=0.0
        Share of the refinement, at its end, over which the weights are averaged.
    max_steps : int or None, default=None
        Steps of selection after which the M largest are kept; None: see :class:`~tamiz.core.rule.Rule`.
    selection_steps : int, default=0
        Steps, warm-up included, before which the refinement does not begin: a mask that is closed sooner rests, and the
        weights are trained on with ``learning_rate`` and ``l2``. 0: the refinement begins when the mask is closed.
    mask_learning_rate : float, default=0.01
        Learning rate of gamma.
    beta1, beta2, epsilon : float, default=0.9, 0.999, 1e-7
        Adam of the weights.
    gamma_rows : {"auto", "held-out", "joint"}, default="auto"
        Rows that train gamma: those that did not train the weights, or the same ones, as in the paper. "auto": held-out where
        a feature has several weights (groups, curves, pairs, hidden layers).
    """

    learning_rate: float
    l2: float
    batch_size: int
    warmup_steps: int
    ramp_steps: int
    refinement_steps: int
    refinement_l2: float
    refinement_rates: tuple[float, ...]
    average: float = 0.0
    max_steps: int | None = None
    selection_steps: int = 0
    mask_learning_rate: float = MASK_LEARNING_RATE
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-7
    gamma_rows: str = "auto"


def refinement_part(refined: int, refinement_steps: int, n_parts: int) -> int:
    """Which of the equal parts of the refinement comes after ``refined`` of its steps.

    Examples
    --------
    >>> [refinement_part(step, 300, 3) for step in (0, 99, 100, 299)]
    [0, 0, 1, 2]
    """
    return min(n_parts - 1, n_parts * refined // max(1, refinement_steps))


def linear_l2(n_samples: int, numerator: float = 100.0) -> float:
    """Paper's weight decay, 100 / N, and more below 57 samples, where (75 / N)^2 is larger.

    With very few samples a strong decay brings the weights near to the differences of the class means, which is about all
    that so few samples tell reliably. ``numerator`` replaces the 100.

    Examples
    --------
    >>> linear_l2(30), linear_l2(200)
    (6.25, 0.5)
    """
    return max(numerator / n_samples, (75.0 / n_samples) ** 2)


#: Rows up to which two classes, or numbers, keep the paper's weight decay.
ROWS_OF_THE_PAPER = 500


def _schedule(
    n_samples: int, given: dict[str, Any], automatic: dict[str, Any], divisors: tuple[float, ...] = (1.0, 5.0, 25.0)
) -> Schedule:
    """Schedule of the values of the user and, for each "auto", the automatic ones.

    A learning rate or l2 of the user also holds for the refinement, whose rate is divided by each of the ``divisors``.
    """
    automatic = {"gamma_rows": "auto", **automatic}
    given = {name: value for name, value in given.items() if not (isinstance(value, str) and value == "auto")}
    decided = {name: given.get(name, value) for name, value in automatic.items()}
    if "learning_rate" in given:
        decided["refinement_rate"] = given["learning_rate"]
    if "l2" in given:
        decided["refinement_l2"] = given["l2"]
    steps_per_epoch = -(-n_samples // decided["batch_size"])
    decided["refinement_steps"] = decided.pop("refinement_epochs") * steps_per_epoch
    rate = decided.pop("refinement_rate")
    decided["refinement_rates"] = tuple(rate / divisor for divisor in divisors)
    return Schedule(**decided)


def _linear_automatic(n_samples: int, n_features_to_select: int, task: str, l2: float) -> dict[str, Any]:
    """Automatic values of a linear model with the weight decay ``l2``.

    Once the features are chosen, the decay for classes is times M / 100 below 100 features: the fewer features add up to a
    score, the larger their weights have to be. Numbers are told apart by the size of a score, which a strong decay would
    shrink: for them it is that of a ridge with alpha = 1.
    """
    batch_size, epochs = max(2, n_samples // 50), 150
    if n_samples >= MANY_ROWS:
        batch_size = BATCH_OF_MANY_ROWS
        epochs = -(-REFINEMENT_OF_MANY_ROWS * batch_size // n_samples)
    return {
        "learning_rate": 3e-3,
        "refinement_rate": 3e-3,
        "l2": l2,
        "refinement_l2": 1.0 / n_samples if task == "regression" else min(1.0, n_features_to_select / 100) * l2,
        "batch_size": batch_size,
        "warmup_steps": 500,
        "ramp_steps": 20_000,
        "refinement_epochs": epochs,
        "max_steps": None,
    }


def linear_schedule(
    n_samples: int, n_features_to_select: int, task: str, *, n_outputs: int = 1, **given: Any
) -> Schedule:
    """Schedule of the linear model; keywords are the parameters of the estimators, "auto" or a number.

    Most features are gone long before the ramp ends, so a slow one costs little. The refinement is the paper's: 150
    epochs, the rate divided by 5 after each third. Batches are the paper's too. From 50,000 rows on
    they hold 256 rows and the refinement takes 7,500 steps, as many as below: a fit costs no more with more rows.

    The weight decay is :func:`linear_l2`, less for several outputs: a loss is the mean over outputs, so the decay is divided
    by their number, as if each had its own. An output that tells one of C classes from the rest finds its class in one row of
    C, and its gradients are smaller by about as much: the decay follows them and is divided by C once more. One output in more
    than 500 rows is served by a weaker decay, down to a tenth.

    Examples
    --------
    >>> schedule = linear_schedule(6000, 10, "regression", ramp_steps=400)
    >>> schedule.batch_size, schedule.ramp_steps, schedule.refinement_steps
    (120, 400, 7500)
    >>> linear_schedule(10**6, 10, "regression").batch_size
    256
    >>> linear_schedule(500, 10, "classification").l2, linear_schedule(1000, 10, "regression").l2
    (0.2, 0.025)
    >>> [linear_schedule(1000, 10, task, n_outputs=20).l2 for task in ("classification", "regression")]
    [0.00025, 0.005]
    >>> [linear_schedule(200, 10, task).refinement_l2 for task in ("classification", "regression")]
    [0.05, 0.005]
    """
    if n_outputs == 1:
        l2 = linear_l2(n_samples) * min(1.0, max(0.1, (ROWS_OF_THE_PAPER / n_samples) ** 2))
    else:
        l2 = linear_l2(n_samples) / (n_outputs**2 if task == "classification" else n_outputs)
    return _schedule(n_samples, given, _linear_automatic(n_samples, n_features_to_select, task, l2))


def _additive_automatic(n_samples: int, n_features_to_select: int, task: str) -> dict[str, Any]:
    """Automatic values of an additive model."""
    automatic = _linear_automatic(n_samples, n_features_to_select, task, linear_l2(n_samples))
    automatic["ramp_steps"] = 4000
    automatic["l2"] = linear_l2(n_samples, numerator=30.0)
    automatic["refinement_l2"] *= min(1.0, 100 / n_samples)
    return automatic


def additive_schedule(n_samples: int, n_features_to_select: int, task: str, **given: Any) -> Schedule:
    """Schedule of the additive model: that of the linear model with a shorter ramp and less weight decay.

    A curve that bends has larger weights than a line, and the more samples there are, the finer is the shape that they tell
    reliably: the decay is 30 / N from 188 samples on, and that of the refinement falls by 100 / N beyond 100 samples.

    Examples
    --------
    >>> schedule = additive_schedule(1000, 2, "classification")
    >>> schedule.ramp_steps, schedule.l2, schedule.refinement_l2
    (4000, 0.03, 0.0002)
    """
    return _schedule(n_samples, given, _additive_automatic(n_samples, n_features_to_select, task))


def pair_schedule(n_samples: int, n_features_to_select: int, task: str, **given: Any) -> Schedule:
    """Schedule of curves and products of pairs: that of the additive model with a longer ramp.

    There are many more products than curves, and a weight decay near zero would leave them to noise: that of the refinement
    is at least 1 / N. For the same reason a batch holds at least 16 rows.

    Examples
    --------
    >>> schedule = pair_schedule(1000, 2, "classification")
    >>> schedule.ramp_steps, schedule.batch_size, schedule.l2, schedule.refinement_l2
    (8000, 20, 0.03, 0.001)
    """
    automatic = _additive_automatic(n_samples, n_features_to_select, task)
    automatic["ramp_steps"] = 8000
    automatic["batch_size"] = max(16, automatic["batch_size"])
    automatic["refinement_l2"] = max(automatic["refinement_l2"], 1.0 / n_samples)
    return _schedule(n_samples, given, automatic)


def network_schedule(n_samples: int, n_features_to_select: int, task: str, **given: Any) -> Schedule:
    """Schedule of networks with hidden layers.

    Batches hold 64 rows, or a quarter of a smaller table: batch normalisation over the paper's two rows would leave only
    signs. Without weight decay a network learns its noise columns by heart and keeps some of them; once they are gone,
    a tenth of the decay is enough. The refinement takes about two thousand steps whatever the size of the table; its
    weights are averaged over the last 70 %, at a rate that stays.

    Examples
    --------
    >>> schedule = network_schedule(100, 10, "classification")
    >>> schedule.batch_size, schedule.refinement_steps
    (25, 2000)
    """
    batch_size = min(64, max(16, n_samples // 4))
    l2 = min(0.01, 8.0 / n_samples)
    steps_per_epoch = -(-n_samples // batch_size)
    automatic = {
        "learning_rate": 0.01,
        "refinement_rate": 5e-3,
        "l2": l2,
        "refinement_l2": 0.1 * l2,
        "batch_size": batch_size,
        "warmup_steps": 0,
        "ramp_steps": 2000,
        "refinement_epochs": -(-2000 // steps_per_epoch),
        "max_steps": None,
        "average": 0.7,
        "epsilon": 1e-8,
    }
    return _schedule(n_samples, given, automatic, (1.0,))


def paper_schedule(
    n_samples: int, n_features_to_select: int, task: str, *, variant: str = "soft", rate: float = 1e-3, **given: Any
) -> Schedule:
    """Schedule of the paper's networks: its rates, weight decay and epochs, read literally.

    200 epochs are added for the selection with E2E-FS-Soft and 300 with E2E-FS, of which the first 5 are warm-up; T is 250
    and 300 epochs. The refinement of 150 epochs begins after the added epochs even where the mask is closed sooner, and a
    mask that is not closed by then keeps its M largest entries. ``rate`` is the learning rate in the added epochs: 0.001 of the
    naive network, 0.05 of the one with three layers.

    Examples
    --------
    >>> schedule = paper_schedule(6000, 10, "classification", variant="hard")
    >>> schedule.batch_size, schedule.warmup_steps, schedule.ramp_steps, schedule.selection_steps
    (120, 250, 15000, 15000)
    >>> schedule = paper_schedule(1733, 10, "classification", rate=0.05)
    >>> schedule.learning_rate, schedule.refinement_rates[0], round(schedule.l2, 4)
    (0.05, 0.001, 0.0577)
    """
    if variant not in PAPER_RAMP_EPOCHS:
        raise ValueError(
            f"The paper has no recipe for variant={variant!r}: use {' or '.join(map(repr, PAPER_RAMP_EPOCHS))}, or "
            "leave Training.paper() out."
        )
    batch_size = given.get("batch_size", "auto")
    batch_size = max(2, n_samples // 50) if batch_size == "auto" else batch_size
    epoch = -(-n_samples // batch_size)
    automatic = {
        "learning_rate": rate,
        "refinement_rate": 1e-3,
        "l2": 100.0 / n_samples,
        "refinement_l2": 100.0 / n_samples,
        "batch_size": batch_size,
        "warmup_steps": PAPER_WARMUP_EPOCHS * epoch,
        "ramp_steps": PAPER_RAMP_EPOCHS[variant] * epoch,
        "refinement_epochs": PAPER_REFINEMENT_EPOCHS,
        "max_steps": (PAPER_SELECTION_EPOCHS[variant] - PAPER_WARMUP_EPOCHS) * epoch,
        "gamma_rows": "joint",
    }
    decided = _schedule(n_samples, given, automatic)
    assert decided.max_steps is not None
    return replace(decided, selection_steps=decided.warmup_steps + decided.max_steps)
