"""Batches of the trainer, from tensors in memory or from any iterable; both can be put back to where they stood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from tamiz._utils.validation import check_finite

State = dict[str, Any]


def equal_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Return the rows of the batches of an epoch: equal to one row, none fewer than ``batch_size`` unless there are fewer.

    Examples
    --------
    >>> equal_sizes(11, 3), equal_sizes(2, 5)
    ([4, 4, 3], [2])
    """
    n_batches = max(1, n_rows // batch_size)
    return [n_rows // n_batches + (i < n_rows % n_batches) for i in range(n_batches)]


def full_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Return the rows of the batches of an epoch: ``batch_size`` each and the rest in the last.

    A rest of a single row joins the batch before: batch normalisation cannot work on one row.

    Examples
    --------
    >>> full_sizes(11, 3), full_sizes(7, 3), full_sizes(3, 1)
    ([3, 3, 3, 2], [3, 4], [1, 1, 1])
    """
    n_full, rest = divmod(n_rows, batch_size)
    sizes = [batch_size] * n_full + ([rest] if rest else [])
    if batch_size > 1 and len(sizes) > 1 and rest == 1:
        sizes[-2:] = [batch_size + 1]
    return sizes


class TensorBatches:
    """Iterate over batches out of tensors in memory, in a new order every epoch.

    Parameters
    ----------
    parts : sequence of tensors
        Inputs, targets, weights, ...; all with one entry for each row.
    batch_size : int
        Rows per batch.
    seed : int
        Decides the order; the generator is the batches' own.
    sizes : callable, default=equal_sizes
        ``sizes(n_rows, batch_size)``: the rows of each batch of an epoch.

    Examples
    --------
    >>> import torch
    >>> batches = TensorBatches((torch.arange(5.0)[:, None], torch.arange(5)), batch_size=2, seed=0)
    >>> [len(next(batches)[1]) for _ in range(4)]
    [3, 2, 3, 2]
    """

    def __init__(
        self,
        parts: Sequence[torch.Tensor],
        batch_size: int,
        seed: int,
        sizes: Callable[[int, int], list[int]] = equal_sizes,
    ) -> None:
        self.parts = list(parts)
        self.n_rows = len(self.parts[0])
        self.sizes = sizes(self.n_rows, batch_size)
        self._generator = torch.Generator().manual_seed(seed)
        self._position = 0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._start = self._generator.get_state()
        order = torch.randperm(self.n_rows, generator=self._generator).to(self.parts[0].device)
        self._order = order.split(self.sizes)

    def __next__(self) -> list[torch.Tensor]:
        if self._position == len(self.sizes):
            self._position = 0
            self._begin_epoch()
        rows = self._order[self._position]
        self._position += 1
        return [part.index_select(0, rows) for part in self.parts]

    def keep_columns(self, places: torch.Tensor) -> None:
        """Hand out only these columns of the inputs from now on; the caller's tensor is not touched."""
        self.parts[0] = self.parts[0].index_select(1, places)

    def state(self) -> State:
        """Return where the batches stand."""
        return {"start": self._start, "position": self._position}

    def load(self, state: State) -> None:
        """Go on from where other batches stood."""
        self._generator.set_state(state["start"])
        self._begin_epoch()
        self._position = state["position"]


class LoaderBatches:
    """Iterate over batches of any iterable that can be gone through again and again, such as a ``DataLoader``.

    Its order may come from torch's random numbers or from the ``generator`` of the loader.

    Examples
    --------
    >>> batches = LoaderBatches([(1, 2), (3, 4)])
    >>> [next(batches) for _ in range(3)]
    [(1, 2), (3, 4), (1, 2)]
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        if isinstance(loader, Iterator):
            raise TypeError(
                "data must be something that can be gone through again and again, such as a DataLoader; not an iterator"
            )
        self._loader = loader
        self._generator = getattr(loader, "generator", None)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._start = torch.random.get_rng_state()
        self._own_start = None if self._generator is None else self._generator.get_state()
        self._iterator = iter(self._loader)
        self._position = 0

    def __next__(self) -> Any:
        try:
            batch = next(self._iterator)
        except StopIteration:
            self._begin_epoch()
            batch = next(self._iterator, None)
            if batch is None:
                raise ValueError("the data gives no batches: the loader is empty") from None
        self._position += 1
        return batch

    def state(self) -> State:
        """Return where the batches stand."""
        return {"start": self._start, "own_start": self._own_start, "position": self._position}

    def load(self, state: State) -> None:
        """Go on from where other batches stood; what they had handed out of their epoch is drawn and dropped."""
        now = torch.random.get_rng_state()
        torch.random.set_rng_state(state["start"])
        if self._generator is not None and state["own_start"] is not None:
            self._generator.set_state(state["own_start"])
        self._begin_epoch()
        for _ in range(state["position"]):
            next(self._iterator)
        self._position = state["position"]
        torch.random.set_rng_state(now)


def make_batches(data: Any, like: torch.Tensor, batch_size: int, seed: int) -> TensorBatches | LoaderBatches:
    """Return batches of a tensor, a tuple of tensors or arrays with one entry for each row, or an iterable of batches.

    Tensors in memory are brought to the type and device of ``like``; :class:`TensorBatches` are returned as they are.
    """
    if isinstance(data, TensorBatches):
        return data
    parts = (data,) if isinstance(data, (torch.Tensor, np.ndarray)) else data
    if isinstance(parts, tuple) and parts and all(isinstance(part, (torch.Tensor, np.ndarray)) for part in parts):
        return TensorBatches(_checked(parts, like), batch_size, seed)
    if isinstance(data, Iterable):
        return LoaderBatches(data)
    raise TypeError(
        f"data must be a tuple of tensors (X, y) or an iterable of batches such as a DataLoader, got {type(data).__name__}"
    )


def _checked(parts: tuple[Any, ...], like: torch.Tensor) -> list[torch.Tensor]:
    tensors = [torch.as_tensor(part) for part in parts]
    if any(tensor.dim() == 0 for tensor in tensors):
        raise ValueError("data must have one entry for each row; a part of it is a single number")
    lengths = {len(tensor) for tensor in tensors}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"the parts of data must have the same number of rows, at least one; got {sorted(lengths)}")
    x = tensors[0].detach()
    if x.device.type == "cpu" and x.is_floating_point():
        check_finite(x.reshape(len(x), -1).numpy())
    return [tensor.to(like.device, like.dtype if tensor.is_floating_point() else None) for tensor in tensors]
