"""Feature selection inside any PyTorch model: the mask, a small trainer, and the smaller network that comes out."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('tamiz.torch needs PyTorch; install it with: pip install "tamiz[torch]"') from error

from tamiz.torch.fold import folded_linear
from tamiz.torch.mask import FeatureMask, MaskHandle

__all__ = ["FeatureMask", "MaskHandle", "folded_linear"]
