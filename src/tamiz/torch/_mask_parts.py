"""Parts of :class:`~tamiz.torch.FeatureMask` that need nothing of its state."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

#: Number of the format of a saved mask; raise it whenever the meaning of a buffer changes.
MASK_FORMAT = 2


class Rest(torch.autograd.Function):
    """Hand gamma on with a place in the graph but without a gradient.

    With a mask as second argument, its first backward pass warns that the mask is not attached.
    """

    @staticmethod
    def forward(ctx: Any, gamma: torch.Tensor, mask: Any) -> torch.Tensor:
        ctx.mask = mask
        return gamma.view_as(gamma)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        mask, ctx.mask = ctx.mask, None
        if mask is not None and not mask._warned:
            mask._warned = True
            warnings.warn(
                "a FeatureMask is trained without an optimizer: gamma does not move. Call mask.attach(optimizer) before "
                "training, also after copying or loading the model, or mask.finalize() to close it",
                UserWarning,
                stacklevel=2,
            )
        return None, None


def check_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape as a tuple; raise ValueError if it is none.

    Examples
    --------
    >>> check_shape(3), check_shape([1, 28, 28])
    ((3,), (1, 28, 28))
    """
    try:
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        is_valid = len(sizes) > 0 and all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes)
    except TypeError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"shape must be a positive integer or a tuple of them, got {shape!r}")
    return tuple(int(n) for n in sizes)


def describe_mask(
    shape: Sequence[int],
    n_features_to_select: int,
    variant: str,
    gates: str | None = None,
    strength: float | None = None,
) -> torch.Tensor:
    """Return the description of a saved mask as a tensor of bytes, which every format of weights can hold.

    Examples
    --------
    >>> bytes(describe_mask((3,), 1, "soft").tolist()).decode()
    '{"format": 2, "shape": [3], "n_features_to_select": 1, "variant": "soft", "gates": null, "strength": null}'
    """
    about = {
        "format": MASK_FORMAT,
        "shape": list(shape),
        "n_features_to_select": n_features_to_select,
        "variant": variant,
        "gates": gates,
        "strength": strength,
    }
    return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)


def check_description(
    description: Any,
    shape: Sequence[int],
    n_features_to_select: int,
    variant: str,
    gates: str | None = None,
    strength: float | None = None,
) -> None:
    """Raise ValueError if a saved state does not belong to a mask of this shape, M, variant, gates and strength.

    Examples
    --------
    >>> check_description(describe_mask((3,), 2, "soft"), (3,), 1, "soft")
    Traceback (most recent call last):
    ValueError: this state belongs to a mask with n_features_to_select=2, this mask has n_features_to_select=1; ...
    """
    try:
        about = json.loads(bytes(description.tolist()))
        found = int(about["format"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("this state does not belong to a FeatureMask: its description cannot be read") from error
    if found > MASK_FORMAT:
        raise ValueError(
            f"this state was saved in format {found}, this version of tamiz reads formats up to {MASK_FORMAT}; upgrade tamiz"
        )
    if about.get("gates") != gates:
        raise ValueError(
            "this state belongs to a mask with other groups, costs, budget, keep or drop; build the mask as the saved one "
            "was built"
        )
    mine = {
        "shape": list(shape),
        "strength": strength,
        "n_features_to_select": n_features_to_select,
        "variant": variant,
    }
    for name, value in mine.items():
        if about.get(name) != value:
            raise ValueError(
                f"this state belongs to a mask with {name}={about.get(name)!r}, this mask has {name}={value!r}; "
                "build the mask as the saved one was built"
            )
