"""The networks of the papers, by name: :data:`~tamiz.torch.networks.registry.NETWORKS`."""

from tamiz.torch.networks.convolutional import CNN3, WRN16x4
from tamiz.torch.networks.dense import NaiveSVM, ThreeLayerNet
from tamiz.torch.networks.registry import NETWORKS, NetworkEntry, get_network, make_network

__all__ = [
    "CNN3",
    "NETWORKS",
    "NaiveSVM",
    "NetworkEntry",
    "ThreeLayerNet",
    "WRN16x4",
    "get_network",
    "make_network",
]
