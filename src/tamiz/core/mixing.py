r"""Mix the two gradients of gamma (paper, eq. 4 to 6), with their degenerate cases.

.. math::
    (1-\alpha)\, z(\partial L_f/\partial\gamma) + \alpha\, z(\partial L_\gamma/\partial\gamma), \qquad z(x) = x / \|x\|
"""

from __future__ import annotations

from tamiz.core._arrays import Array, namespace

#: A gradient shorter than this, the smallest normal number of float32, counts as zero: float32 does not hold the inverse of
#: its length. A power of two, so that it is the same number in float32 and float64.
SMALLEST_NORM = 2.0**-126


def unit(x: Array) -> Array:
    r"""Return :math:`z(x) = x / \|x\|`; a zero vector stays zero instead of turning into NaN.

    The entries are scaled by the largest one first, so that gradients of size 1e-30 or 1e30 neither vanish nor overflow
    in their squares. A vector shorter than :data:`SMALLEST_NORM` counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> unit(np.array([3.0, 4.0])).tolist(), unit(np.array([0.0, 1e-40])).tolist()
    ([0.6, 0.8], [0.0, 0.0])
    """
    xp = namespace(x)
    if x.shape[0] == 0:
        return x
    largest = abs(x).max()
    scaled = x / xp.where(largest > 0, largest, xp.ones_like(largest))
    norm = (scaled * scaled).sum() ** 0.5
    direction = scaled / xp.where(norm > 0, norm, xp.ones_like(norm))
    # NaN is not smaller than anything, and stays.
    return xp.where(largest * norm < SMALLEST_NORM, xp.zeros_like(x), direction)


def mixed_gradient(loss_gradient: Array, penalty_gradient: Array, alpha: Array | float) -> Array:
    """Return the gradient that gamma follows: both parts scaled to length one, then weighted by alpha.

    Examples
    --------
    >>> import numpy as np
    >>> mixed_gradient(np.array([0.0, 2.0]), np.array([5.0, 0.0]), alpha=0.25).tolist()
    [0.25, 0.75]
    """
    return (1 - alpha) * unit(loss_gradient) + alpha * unit(penalty_gradient)
