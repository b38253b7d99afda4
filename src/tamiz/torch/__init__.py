"""Feature selection inside any PyTorch model: the mask, a small trainer, and the smaller network that comes out."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('tamiz.torch needs PyTorch; install it with: pip install "tamiz[torch]"') from error

from tamiz.torch._handle import MaskHandle
from tamiz.torch._run import StepReport
from tamiz.torch.export import export_onnx, load_pruned, save_pruned
from tamiz.torch.fold import folded_linear
from tamiz.torch.mask import FeatureMask
from tamiz.torch.pruning import PrunedModel, prune
from tamiz.torch.trainer import train

__all__ = [
    "FeatureMask",
    "MaskHandle",
    "PrunedModel",
    "StepReport",
    "export_onnx",
    "folded_linear",
    "load_pruned",
    "prune",
    "save_pruned",
    "train",
]
