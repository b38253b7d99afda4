"""The paper's datasets by name, and generators whose true features are known."""

from tamiz.datasets.cache import find_data_home
from tamiz.datasets.download import DownloadSettings
from tamiz.datasets.errors import DatasetError, DownloadError, UnknownDatasetError
from tamiz.datasets.generators import (
    Truth,
    make_friedman1,
    make_madelon,
    make_ring,
    make_ring_xor,
    make_ring_xor_sum,
    make_xor,
)
from tamiz.datasets.loading import Listing, describe, load
from tamiz.datasets.registry import REGISTRY, Entry, find_entry
from tamiz.datasets.table import Dataset

__all__ = [
    "REGISTRY",
    "Dataset",
    "DatasetError",
    "DownloadError",
    "DownloadSettings",
    "Entry",
    "Listing",
    "Truth",
    "UnknownDatasetError",
    "describe",
    "find_data_home",
    "find_entry",
    "load",
    "make_friedman1",
    "make_madelon",
    "make_ring",
    "make_ring_xor",
    "make_ring_xor_sum",
    "make_xor",
]
