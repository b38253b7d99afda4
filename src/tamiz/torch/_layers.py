"""Change the layers of a network: exchange one for another, or keep some of its inputs or outputs."""

from __future__ import annotations

import copy

import torch
from torch import nn

#: Layers with a number for each unit, which goes when the unit goes.
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def replace_part(model: nn.Module, name: str, new: nn.Module) -> nn.Module:
    """Return ``model`` with one of its parts replaced, wherever it is used.

    Examples
    --------
    >>> replace_part(nn.Sequential(nn.ReLU(), nn.Flatten()), "0", nn.Tanh())
    Sequential(
      (0): Tanh()
      (1): Flatten(start_dim=1, end_dim=-1)
    )
    """
    old = model.get_submodule(name)
    new.training = old.training
    if old is model:
        return new
    for module in list(model.modules()):
        for child_name, child in list(module._modules.items()):
            if child is old:
                module._modules[child_name] = new
    return model


def keep_outputs(layer: nn.Module, kept: torch.Tensor) -> nn.Module:
    """Return a linear layer, convolution or normalisation with the ``kept`` of its units.

    Examples
    --------
    >>> keep_outputs(nn.Linear(3, 4), torch.tensor([0, 2]))
    Linear(in_features=3, out_features=2, bias=True)
    """
    size_name = "out_features" if isinstance(layer, nn.Linear) else "out_channels"
    size_name = "num_features" if isinstance(layer, NORMS) else size_name
    names = ("weight", "bias", "running_mean", "running_var")
    found = {name: getattr(layer, name, None) for name in names}
    parts = {name: tensor.index_select(0, kept) for name, tensor in found.items() if tensor is not None}
    return _narrowed(layer, {size_name: kept.numel()}, parts)


def keep_inputs(layer: nn.Module, kept: torch.Tensor) -> nn.Module:
    """Return a linear layer or convolution that reads the ``kept`` of its inputs.

    Examples
    --------
    >>> keep_inputs(nn.Linear(3, 4), torch.tensor([0, 2]))
    Linear(in_features=2, out_features=4, bias=True)
    """
    size_name = "in_features" if isinstance(layer, nn.Linear) else "in_channels"
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    return _narrowed(layer, {size_name: kept.numel()}, {"weight": weight.index_select(1, kept)})


def _narrowed(layer: nn.Module, sizes: dict[str, int], tensors: dict[str, torch.Tensor]) -> nn.Module:
    """Return a copy of a layer with other sizes and some of its weights."""
    small = copy.deepcopy(layer)
    for name, size in sizes.items():
        setattr(small, name, size)
    for name, tensor in tensors.items():
        if isinstance(getattr(layer, name), nn.Parameter):
            trained = getattr(layer, name).requires_grad
            setattr(small, name, nn.Parameter(tensor.detach().clone(), requires_grad=trained))
        else:
            setattr(small, name, tensor.detach().clone())
    return small
