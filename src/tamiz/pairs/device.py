"""Search blocks on a device of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.pairs.blocks import Block, Found, Task
from tamiz.pairs.full import WorkMaker
from tamiz.pairs.kernels import transform_tables


def find_device(name: str) -> Any:
    """Return a device of PyTorch, or raise with what is there.

    Parameters
    ----------
    name : str
        As for ``torch.device``, for example "cuda", "cuda:1" or "cpu".
    """
    torch = require("torch", "torch", f"device={name!r}")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device={name!r} is no device of PyTorch; use 'cuda', 'cpu' or leave it out.") from error
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device={name!r} is not available here ({reason}). Leave device out to use NumPy.") from error
    return device


def work_on_device(name: str) -> WorkMaker:
    """Return what makes the function that searches one pair of blocks on a device.

    Parameters
    ----------
    name : str
        The device.
    """
    import_device = find_device(name)
    torch = require("torch", "torch", f"device={name!r}")
    kept: dict[int, Any] = {}  # blocks stay on the device for all replicates

    def tensor_of(blocks: list[Block], number: int) -> Any:
        if number not in kept:
            block = blocks[number]
            functions = block.functions
            if block.shift is not None:
                functions = functions.toarray() + block.shift[:, None]
            kept[number] = torch.from_numpy(np.ascontiguousarray(functions)).to(import_device)
        return kept[number]

    def make(blocks: list[Block], weights: np.ndarray, variance: np.ndarray, n_kept: int) -> Callable[[Task], Found]:
        weights_there = torch.from_numpy(np.ascontiguousarray(weights)).to(import_device)
        variance_there = torch.from_numpy(np.ascontiguousarray(variance)).to(import_device)

        def work(task: Task) -> Found:
            first, second = blocks[task[0]], blocks[task[1]]
            values = tensor_of(blocks, task[0]), tensor_of(blocks, task[1])
            return _search(torch, first, second, values, weights_there, variance_there, n_kept)

        return work

    return make


def _segment_sums(torch: Any, squares: Any, first: Block, second: Block) -> Any:
    """Return sums over the functions of each pair of columns."""
    for axis, block in ((0, first), (1, second)):
        degrees = np.diff(block.offsets)
        owner = torch.from_numpy(np.repeat(np.arange(len(degrees)), degrees)).to(squares.device)
        shape = list(squares.shape)
        shape[axis] = len(degrees)
        squares = torch.zeros(shape, dtype=squares.dtype, device=squares.device).index_add_(axis, owner, squares)
    return squares


def _search(
    torch: Any, first: Block, second: Block, values: tuple[Any, Any], weights: Any, variance: Any, n_kept: int
) -> Found:
    """Do what :func:`tamiz.pairs.blocks.search_block` does, with tensors."""
    n_targets = weights.shape[1]
    freedom = np.outer(np.diff(first.offsets), np.diff(second.offsets)) * n_targets
    tables = transform_tables(int(freedom.max()))
    offset, slope, count = (
        torch.from_numpy(np.ascontiguousarray(part)).to(weights.device)
        for part in (tables[0][freedom], tables[1][freedom], freedom.astype(np.float32))
    )
    scale: Any = variance.sum()
    if first.is_heavy and second.is_heavy:
        scale = torch.clamp(values[0].square() @ (values[1].square() * variance).T, min=1e-3)
    same = bool(first.columns[0] == second.columns[0])
    found: Found = []
    for replicate in weights:
        total = sum((values[0] @ (values[1] * weight).T).square() for weight in replicate) / scale
        z = ((_segment_sums(torch, total, first, second) / count).pow(1 / 3) - offset) * slope
        if same:
            lower = torch.ones_like(z, dtype=torch.bool).tril()
            z = z.masked_fill(lower, -torch.inf)
        strongest = torch.topk(z.flatten(), min(n_kept, z.numel()))
        top, place = strongest.values.cpu().numpy(), strongest.indices.cpu().numpy()
        filled = np.isfinite(top)
        top, place = top[filled], place[filled]
        i, j = first.columns[place // z.shape[1]], second.columns[place % z.shape[1]]
        best_i, best_j = z.max(dim=1), z.max(dim=0)
        z_i, z_j = best_i.values.cpu().numpy(), best_j.values.cpu().numpy()
        partner_i = np.where(np.isfinite(z_i), second.columns[best_i.indices.cpu().numpy()], -1)
        partner_j = np.where(np.isfinite(z_j), first.columns[best_j.indices.cpu().numpy()], -1)
        found.append((top, i, j, z_i, partner_i, z_j, partner_j))
    return found
