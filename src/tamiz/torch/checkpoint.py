"""Write and read checkpoints of the trainer: one file, written whole or not at all, read without running code from it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from tamiz._files import open_atomic


def write_checkpoint(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write ``content`` so that a reader, or a crash, finds the old file or the new one, never half of one.

    Examples
    --------
    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint(folder + "/run.pt", {"step": 3, "state": torch.ones(1)})
    ...     read_checkpoint(folder + "/run.pt")
    {'step': 3, 'state': tensor([1.])}
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path) as file:
        torch.save(content, file)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what :func:`write_checkpoint` wrote, or None if there is no such file."""
    if not Path(path).exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of tamiz: delete it or give another path") from error
    if not isinstance(content, dict):
        raise ValueError(f"{os.fspath(path)} is not a checkpoint of tamiz: delete it or give another path")
    return content


def check_same_run(path: str | os.PathLike[str], stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise ValueError if a run was started with other settings.

    Examples
    --------
    >>> check_same_run("run.pt", {"seed": 1}, {"seed": 2})
    Traceback (most recent call last):
    ValueError: run.pt belongs to a run with seed=1, now seed=2 is asked for; delete it or give another path
    """
    for name, value in wanted.items():
        if stored.get(name) != value:
            raise ValueError(
                f"{os.fspath(path)} belongs to a run with {name}={stored.get(name)!r}, now {name}={value!r} is asked for; "
                "delete it or give another path"
            )
