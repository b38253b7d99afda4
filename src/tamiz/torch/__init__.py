"""Feature selection inside any PyTorch model: the mask, a small trainer, and the smaller network that comes out."""

# ruff: noqa: E402 - the check for torch comes before everything that imports it
from tamiz._utils.extras import require

require("torch", "torch", "tamiz.torch")

from tamiz.torch.batches import ParquetRows, Standardize
from tamiz.torch.export import load_pruned, save_pruned
from tamiz.torch.fold import folded_linear
from tamiz.torch.mask import FeatureMask
from tamiz.torch.pruning import PrunedModel, PrunedNetwork, prune
from tamiz.torch.stepping import MaskHandle
from tamiz.torch.trainer import StepReport, train, train_weights

__all__ = [
    "FeatureMask", "MaskHandle", "ParquetRows", "PrunedModel", "PrunedNetwork", "Standardize", "StepReport", "folded_linear",
    "load_pruned", "prune", "save_pruned", "train", "train_weights",
]  # fmt: skip
