"""Networks by name. A new network is one file and one line here."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamiz.networks import recipes
from tamiz.networks._torch import require_torch
from tamiz.networks.recipes import Recipe

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Entry:
    """Where a network is (as text, so that listing the names loads no torch) and how the paper trains it."""

    module: str
    class_name: str
    recipe: Recipe
    reads_images: bool = False


_NETWORKS = {
    "naive": Entry("tamiz.networks.dense", "NaiveSVM", recipes.NAIVE),
    "three_layer": Entry("tamiz.networks.dense", "ThreeLayerNet", recipes.THREE_LAYER),
    "wrn16x4": Entry("tamiz.networks.convolutional", "WRN16x4", recipes.WRN16X4, reads_images=True),
    "cnn3": Entry("tamiz.networks.convolutional", "CNN3", recipes.CNN3, reads_images=True),
}


def available() -> list[str]:
    """The names of all networks.

    Examples
    --------
    >>> available()
    ['naive', 'three_layer', 'wrn16x4', 'cnn3']
    """
    return list(_NETWORKS)


def entry(name: str) -> Entry:
    """The entry of a name, or an error that suggests the nearest one."""
    if name in _NETWORKS:
        return _NETWORKS[name]
    close = difflib.get_close_matches(str(name), _NETWORKS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"Unknown network {name!r}; {hint}Known: {', '.join(_NETWORKS)}.")


def recipe(name: str) -> Recipe:
    """The paper's training recipe of a network.

    Examples
    --------
    >>> recipe("three_layer").selection_learning_rate
    0.05
    """
    return entry(name).recipe


def build(name: str, n_inputs_or_shape: int | Sequence[int], n_outputs: int, **parameters: Any) -> nn.Module:
    """A network by its name.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    n_inputs_or_shape : int or sequence of int
        The number of inputs, or for images (channels, height, width).
    n_outputs : int
        The number of outputs.
    **parameters
        Handed to the network, such as ``hidden`` of the three-layer network.

    Examples
    --------
    >>> build("three_layer", 20, 1, hidden=(8, 4)).hidden
    (8, 4)
    >>> build("thre_layer", 20, 1)
    Traceback (most recent call last):
    ValueError: Unknown network 'thre_layer'; did you mean 'three_layer'? Known: ...
    """
    found = entry(name)
    require_torch(f"The network {name!r}")
    network = getattr(importlib.import_module(found.module), found.class_name)
    return network(n_inputs_or_shape, n_outputs, **parameters)
