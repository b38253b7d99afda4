"""The one place that says what to install when torch is missing."""

from __future__ import annotations

from typing import Any


def require_torch(what: str) -> Any:
    """The torch package, or an ImportError that names the command which installs it.

    Parameters
    ----------
    what : str
        What needs torch; the error begins with it.

    Examples
    --------
    >>> require_torch("DFS").__name__
    'torch'
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'{what} needs PyTorch. Install it with: pip install "tamiz[torch]"') from error
    return torch


def checked_device(name: Any) -> Any:
    """A device of torch that this machine has, by its name.

    Examples
    --------
    >>> checked_device("cpu")
    device(type='cpu')
    >>> checked_device("gpu")
    Traceback (most recent call last):
    ValueError: device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got 'gpu'.
    """
    torch = require_torch("A device")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got {name!r}."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r}, but torch finds no GPU here; take 'cpu', or a build of torch for CUDA.")
    return device
