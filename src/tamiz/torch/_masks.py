"""Find the masks inside a model."""

from __future__ import annotations

from torch import nn

from tamiz.torch.mask import FeatureMask


def find_masks(model: nn.Module) -> dict[str, FeatureMask]:
    """Return all masks inside a model, by name; raise ValueError if there is none.

    Examples
    --------
    >>> list(find_masks(nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 1))))
    ['0']
    """
    found = _named_masks(model)
    if not found:
        raise ValueError("there is no FeatureMask in this model; put one in front of the layers that read the input")
    return found


def find_mask(model: nn.Module) -> FeatureMask:
    """Return the only mask inside a model; raise ValueError if there is none, or more than one.

    Examples
    --------
    >>> find_mask(nn.Sequential(FeatureMask(3, 1), FeatureMask(3, 1)))
    Traceback (most recent call last):
    ValueError: the model must hold exactly one FeatureMask, it holds 2
    """
    masks = _named_masks(model)
    if len(masks) != 1:
        raise ValueError(f"the model must hold exactly one FeatureMask, it holds {len(masks)}")
    return next(iter(masks.values()))


def _named_masks(model: nn.Module) -> dict[str, FeatureMask]:
    return {name: part for name, part in model.named_modules() if isinstance(part, FeatureMask)}
