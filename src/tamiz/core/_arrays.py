"""Bridge the few array operations that NumPy and PyTorch spell differently.

The rule is written once, in terms of methods that both kinds of arrays share and of these functions. PyTorch is never
imported here: a tensor brings its own module along.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any
"""A NumPy array or a torch tensor."""


def namespace(x: Array) -> Any:
    """Return the module that ``x`` belongs to: ``torch`` for tensors, else ``numpy``.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(x, torch.Tensor) else np


def argsort(x: Array) -> Array:
    """Return the indices that sort ``x`` upwards; equal values keep their order."""
    xp = namespace(x)
    return xp.argsort(x, kind="stable") if xp is np else xp.argsort(x, stable=True)


def arange(n: int, like: Array) -> Array:
    """Return 0 .. n-1 as integers on the device of ``like``."""
    xp = namespace(like)
    return xp.arange(n) if xp is np else xp.arange(n, device=like.device)


def as_array(x: float | int | bool, like: Array) -> Array:
    """Return a number as a 0-d array on the device of ``like``; a float in the type of ``like``."""
    xp = namespace(like)
    dtype = like.dtype if isinstance(x, float) else None
    return np.asarray(x, dtype=dtype) if xp is np else xp.asarray(x, dtype=dtype, device=like.device)


def cast(x: Array, like: Array) -> Array:
    """Return ``x`` in the type of ``like``."""
    return x.astype(like.dtype, copy=False) if namespace(x) is np else x.to(like.dtype)


def positions(order: Array) -> Array:
    """Invert a permutation: return the position of each index in ``order``.

    Examples
    --------
    >>> import numpy as np
    >>> positions(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    place = namespace(order).empty_like(order)
    place[order] = arange(order.shape[0], order)
    return place


class _SameMemory:
    """Hand the memory of an array to NumPy as memory that may be written to; keep the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self.array = array


def writeable_view(array: np.ndarray) -> np.ndarray:
    """Return a view of the same memory without the read-only flag, for compiled functions that never write to it.

    Numba compiles a function once more for read-only arrays, which is what joblib hands to its workers. Memory that is
    mapped read-only stays so: to write to the view would end the process.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(3)
    >>> x.flags.writeable = False
    >>> view = writeable_view(x)
    >>> view.flags.writeable, np.shares_memory(view, x), view.tolist()
    (True, True, [0, 1, 2])
    """
    return array if array.flags.writeable else np.asarray(_SameMemory(array))
