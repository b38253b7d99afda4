r"""How the rule changes with the steps: the weight alpha of the penalty, and the number of features it aims at."""

from __future__ import annotations

VARIANTS = ("hard", "soft", "ranking")

#: The ranking variant reaches its lowest target this many times sooner than alpha reaches 1.
RANKING_SPEED = 4.0


def alpha(step: int, ramp_steps: int) -> float:
    r""":math:`\alpha^t_T = \min(1, t / T)`: 0 listens to the loss alone, 1 to the penalty alone.

    Examples
    --------
    >>> alpha(0, 100), alpha(50, 100), alpha(1000, 100)
    (0.0, 0.5, 1.0)
    """
    return min(1.0, step / ramp_steps)


def relaxation(step: int, ramp_steps: int, rho: float) -> float:
    r""":math:`\rho` of the soft variant, which creeps from its value at the end of the ramp to 1 one ramp later.

    With a constant :math:`\rho` more than M features can settle around the sum :math:`(1-\rho)M` and stay; lowering the
    sum on and on makes the last ones go.

    Examples
    --------
    >>> relaxation(50, 100, 0.75), relaxation(150, 100, 0.75), relaxation(900, 100, 0.75)
    (0.75, 0.875, 1.0)
    """
    late = max(0.0, step / ramp_steps - 1.0)
    return min(1.0, rho + (1.0 - rho) * late)


def soft_target(n_alive: int, n_features_to_select: int, rho: float) -> float:
    r""":math:`M_\rho`: :math:`(1-\rho) M` while more than M features are alive, the number alive after that.

    Examples
    --------
    >>> soft_target(500, 20, 0.75), soft_target(20, 20, 0.75)
    (5.0, 20.0)
    """
    return (1 - rho) * n_features_to_select if n_alive > n_features_to_select else float(n_alive)


def ranking_target(step: int, ramp_steps: int, n_features: int) -> float:
    r"""A target that falls geometrically from F to 1, so that features die one after the other and one fit orders them all.

    Examples
    --------
    >>> ranking_target(0, 400, 256), ranking_target(50, 400, 256), ranking_target(100, 400, 256)
    (256.0, 16.0, 1.0)
    """
    return float(n_features) ** max(0.0, 1.0 - RANKING_SPEED * step / ramp_steps)


def target(
    variant: str,
    step: int,
    ramp_steps: int,
    n_alive: int,
    n_features: int,
    n_features_to_select: int,
    rho: float,
) -> float:
    """The number of features that the penalty of a variant aims at in a step of the selection.

    Examples
    --------
    >>> [target(v, 50, 400, 256, 256, 20, 0.75) for v in VARIANTS]
    [20.0, 5.0, 16.0]
    """
    if variant == "hard":
        return float(n_features_to_select)
    if variant == "soft":
        return soft_target(n_alive, n_features_to_select, relaxation(step, ramp_steps, rho))
    return ranking_target(step, ramp_steps, n_features)
