r"""Compute the penalties that make gamma binary with M ones, and their gradient (paper, eq. 2 and Lemmas 1 and 2).

.. math::
    L_{1-2} = \|\gamma\|_1 - \|\gamma\|_2^2, \qquad L_M = (1 + \mu)\,|M - \|\gamma\|_1|

With costs a feature counts as often as it costs, in both: :math:`L_{1-2} = \sum c_i \gamma_i (1 - \gamma_i)` and
:math:`L_B = (1 + \mu)\,|B - \sum c_i \gamma_i|` for the budget B.

All functions take NumPy arrays or torch tensors with entries in [0, 1].
"""

from __future__ import annotations

from tamiz.core._arrays import Array, namespace


def _weighed(values: Array, costs: Array | None) -> Array:
    return values if costs is None else costs * values


def binary_penalty(gamma: Array, costs: Array | None = None) -> Array:
    r"""Return :math:`L_{1-2}`, zero exactly where every entry is 0 or 1 (Lemma 3).

    Written as :math:`\sum \gamma_i (1 - \gamma_i)`, which does not lose digits to the difference of two large sums.

    Examples
    --------
    >>> import numpy as np
    >>> float(binary_penalty(np.array([0.0, 1.0, 0.5])))
    0.25
    """
    return _weighed(gamma * (1 - gamma), costs).sum()


def count_penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return :math:`L_M`, zero exactly where :math:`\|\gamma\|_1 = M` (Lemma 4).

    Examples
    --------
    >>> import numpy as np
    >>> float(count_penalty(np.array([1.0, 1.0, 1.0]), target=1))
    4.0
    """
    return (1 + mu) * abs(_weighed(gamma, costs).sum() - target)


def penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return :math:`L_{1-2} + L_M`, zero exactly for a binary gamma with M ones (Lemma 5).

    Examples
    --------
    >>> import numpy as np
    >>> float(penalty(np.array([1.0, 0.0, 0.0]), target=1)), float(penalty(np.ones(3), target=1))
    (0.0, 4.0)
    """
    return binary_penalty(gamma, costs) + count_penalty(gamma, target, mu, costs)


def penalty_gradient(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return the gradient of :math:`L_{1-2} + L_M`.

    :math:`2(1 - \gamma_i) + \mu` where the sum is above the target (Lemma 1), :math:`-2\gamma_i - \mu` below (Lemma 2).
    On the target :math:`L_M` has a kink; its subgradient 0 leaves :math:`1 - 2\gamma_i`, that of :math:`L_{1-2}`.

    Examples
    --------
    >>> import numpy as np
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1).tolist()
    [1.0, 2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=2).tolist()
    [-3.0, -2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1, costs=np.array([1.0, 3.0])).tolist()
    [1.0, 6.0]
    """
    side = namespace(gamma).sign(_weighed(gamma, costs).sum() - target)
    return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)
