"""Devices of torch by name, and random numbers that leave those of the caller as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def checked_device(name: Any) -> torch.device:
    """Return the device of that name, or raise if this machine does not have it.

    Examples
    --------
    >>> checked_device("cpu")
    device(type='cpu')
    >>> checked_device("gpu")
    Traceback (most recent call last):
    ValueError: device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got 'gpu'.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be the name of a device of torch, such as 'cpu', 'cuda' or 'cuda:1', got {name!r}."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r}, but torch finds no GPU here; use 'cpu', or a build of torch for CUDA.")
    return device


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Draw all random numbers inside from ``seed``; restore the random state of the caller afterwards.

    Examples
    --------
    >>> before = torch.random.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(3)
    >>> with seeded(0):
    ...     second = torch.rand(3)
    >>> torch.equal(first, second), torch.equal(before, torch.random.get_rng_state())
    (True, True)
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
