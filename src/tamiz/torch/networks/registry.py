"""Networks by name. To add one, write its module and add a line to ``NETWORKS``; estimators and baselines read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from tamiz._names import pick
from tamiz.torch.networks.convolutional import CNN3, WRN16x4
from tamiz.torch.networks.dense import NaiveSVM, ThreeLayerNet


@dataclass(frozen=True)
class NetworkEntry:
    """Describe a network.

    Parameters
    ----------
    build : callable
        ``build(n_inputs, n_outputs)``, or ``build(shape, n_outputs)`` for images, returns the module.
    reads_images : bool, default=False
        Whether the inputs are images, of a shape (channels, height, width).
    """

    build: Callable[..., nn.Module]
    reads_images: bool = False


NETWORKS: dict[str, NetworkEntry] = {
    "linear": NetworkEntry(NaiveSVM),
    "mlp": NetworkEntry(ThreeLayerNet),
    "wrn16x4": NetworkEntry(WRN16x4, reads_images=True),
    "cnn3": NetworkEntry(CNN3, reads_images=True),
}


def get_network(name: str) -> NetworkEntry:
    """Return the entry of a network.

    Examples
    --------
    >>> get_network("cnn3").reads_images
    True
    >>> get_network("mpl")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'mpl'. Did you mean 'mlp'? There are: linear, mlp, wrn16x4, cnn3.
    """
    return pick(name, NETWORKS, "network")


def make_network(name: str, shape: int | Sequence[int], n_outputs: int, **parameters: Any) -> nn.Module:
    """Build a network by its name.

    Parameters
    ----------
    name : str
        A key of ``NETWORKS``.
    shape : int or sequence of int
        The number of inputs, or for images (channels, height, width).
    n_outputs : int
        The number of outputs.
    **parameters
        Handed to the network, such as ``hidden`` of the three-layer network.

    Examples
    --------
    >>> make_network("mlp", 20, 1, hidden=(8, 4)).hidden
    (8, 4)
    """
    return get_network(name).build(shape, n_outputs, **parameters)
