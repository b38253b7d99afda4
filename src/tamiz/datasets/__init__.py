"""Load the paper's datasets by name, and generate tables whose true features are known."""

from tamiz.datasets.cache import find_data_home
from tamiz.datasets.dataset import Dataset
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
from tamiz.datasets.loading import Listing, describe, load_dataset
from tamiz.datasets.registry import REGISTRY, DatasetEntry, find_entry

__all__ = [
    "REGISTRY",
    "Dataset",
    "DatasetEntry",
    "DatasetError",
    "DownloadError",
    "DownloadSettings",
    "Listing",
    "Truth",
    "UnknownDatasetError",
    "describe",
    "find_data_home",
    "find_entry",
    "load_dataset",
    "make_friedman1",
    "make_madelon",
    "make_ring",
    "make_ring_xor",
    "make_ring_xor_sum",
    "make_xor",
]
