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
