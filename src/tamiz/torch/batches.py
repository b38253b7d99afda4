"""Where batches come from: tensors in memory, any iterable, Parquet files; each process of several reads its own rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.utils.data import IterableDataset, get_worker_info

from tamiz._utils.extras import require
from tamiz._utils.validation import check_finite
from tamiz.rows.passes import TableStatistics, describe_block


def processes() -> tuple[int, int]:
    """Number of this process and of all of them, by ``torch.distributed``.

    Examples
    --------
    >>> processes()
    (0, 1)
    """
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def gather_objects(own: Any) -> list[Any]:
    """Collect an object of each process, in all of them.

    Examples
    --------
    >>> gather_objects("mine")
    ['mine']
    """
    parts = [own] * processes()[1]
    if len(parts) > 1:
        distributed.all_gather_object(parts, own)
    return parts


def equal_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Split an epoch into batches that differ by one row, none smaller than ``batch_size`` unless there are fewer rows.

    Examples
    --------
    >>> equal_sizes(11, 3), equal_sizes(2, 5)
    ([4, 4, 3], [2])
    """
    n_batches = max(1, n_rows // batch_size)
    return [n_rows // n_batches + (i < n_rows % n_batches) for i in range(n_batches)]


def full_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Split an epoch into batches of ``batch_size`` rows, the rest in the last.

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
    """Batches out of tensors in memory, in a new order every epoch.

    Of several processes each takes its share of every batch, so that together they train as one.

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
    >>> [len(y) for x, y in batches]
    [3, 2]
    """

    def __init__(
        self, parts: Sequence[torch.Tensor], batch_size: int, seed: int, sizes: Callable[..., list[int]] = equal_sizes
    ) -> None:
        self.parts, self.n_rows = list(parts), len(parts[0])
        self.sizes = sizes(self.n_rows, batch_size)
        self.generator = torch.Generator().manual_seed(seed)
        self._rank, self._world = processes()
        if min(self.sizes) < self._world:
            raise ValueError(f"batches of {min(self.sizes)} rows cannot be shared by {self._world} processes")

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        order = torch.randperm(self.n_rows, generator=self.generator).to(self.parts[0].device)
        for rows in order.split(self.sizes):
            yield [part.index_select(0, rows[self._rank :: self._world]) for part in self.parts]


class EndlessBatches:
    """Go through an iterable of batches, such as a ``DataLoader``, again and again; the place can be stored.

    Its order may come from torch's random numbers or from the ``generator`` of the iterable.

    Examples
    --------
    >>> batches = EndlessBatches([(1, 2), (3, 4)])
    >>> [next(batches) for _ in range(3)]
    [(1, 2), (3, 4), (1, 2)]
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        if isinstance(loader, Iterator):
            raise TypeError(
                "data must be something to go through again and again, such as a DataLoader; not an iterator"
            )
        self.loader, self._generator = loader, getattr(loader, "generator", None)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._start = torch.random.get_rng_state()
        self._own_start = None if self._generator is None else self._generator.get_state()
        self._iterator, self._position = iter(self.loader), 0

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

    def state(self) -> dict[str, Any]:
        """Tell where the batches stand."""
        return {"start": self._start, "own_start": self._own_start, "position": self._position}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from where other batches stood; what they had handed out of their epoch is drawn and dropped."""
        now = torch.random.get_rng_state()
        torch.random.set_rng_state(state["start"])
        if self._generator is not None and state["own_start"] is not None:
            self._generator.set_state(state["own_start"])
        self._begin_epoch()
        for _ in range(state["position"]):
            next(self)
        torch.random.set_rng_state(now)


class ParquetRows(IterableDataset[Any]):
    """Batches of the rows of Parquet files, read in blocks by polars; any number of rows fits.

    Each process of ``torch.distributed`` and each worker of a ``DataLoader`` reads its own part of the rows. Hand it to
    ``DataLoader(rows, batch_size=None, num_workers=2, multiprocessing_context="spawn")``, or use it as it is.

    Parameters
    ----------
    source : path
        A file, or a pattern such as ``"table/*.parquet"``.
    target : str or sequence of str
        Columns of the target.
    columns : sequence of str or None, default=None
        Columns of the input; None: all others.
    batch_size : int, default=64
        Rows per batch.
    block_rows : int, default=65536
        Rows that are read, and shuffled, at a time.
    shuffle : bool, default=True
        Whether blocks, and rows inside them, come in random order, by torch's random numbers.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"a": [1.0, 2, 3, 4], "b": [5.0, 6, 7, 8], "y": [0, 1, 1, 0]}).write_parquet(folder + "/t.parquet")
    ...     rows = ParquetRows(folder + "/t.parquet", target="y", batch_size=2, shuffle=False)
    ...     [(x.tolist(), y.tolist()) for x, y in rows]
    [([[1.0, 5.0], [2.0, 6.0]], [0, 1]), ([[3.0, 7.0], [4.0, 8.0]], [1, 0])]
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        target: str | Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        batch_size: int = 64,
        block_rows: int = 65536,
        shuffle: bool = True,
    ) -> None:
        super().__init__()
        polars = require("polars", "cli", "ParquetRows")
        self.source, self.target = os.fspath(source), target
        scan = polars.scan_parquet(self.source)
        present, targets = scan.collect_schema().names(), [target] if isinstance(target, str) else list(target)
        missing = [name for name in (*targets, *(columns or ())) if name not in present]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r} in {self.source}: {', '.join(present[:8])}, ...")
        if batch_size < 1 or block_rows < batch_size:
            raise ValueError(f"batch_size={batch_size} must be at least 1 and at most block_rows={block_rows}")
        self.columns = [name for name in present if name not in targets] if columns is None else list(columns)
        self.n_rows = int(scan.select(polars.len()).collect().item())
        self.batch_size, self.block_rows, self.shuffle = batch_size, block_rows, shuffle

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        import polars

        (rank, world), worker = processes(), get_worker_info()
        n_workers, number = (1, 0) if worker is None else (worker.num_workers, worker.id)
        part, parts = rank * n_workers + number, world * n_workers
        begin, end = self.n_rows * part // parts, self.n_rows * (part + 1) // parts
        if begin == end:
            raise ValueError(f"{self.n_rows} rows cannot be shared by {parts} processes and workers")
        generator = torch.Generator().manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
        starts = torch.arange(begin, end, self.block_rows)
        if self.shuffle:
            starts = starts[torch.randperm(len(starts), generator=generator)]
        scan = polars.scan_parquet(self.source)
        rest: list[torch.Tensor] = []
        for start in starts.tolist():
            frame = scan.slice(start, min(self.block_rows, end - start)).collect()
            target = (frame[self.target] if isinstance(self.target, str) else frame.select(self.target)).to_numpy()
            block = [torch.from_numpy(frame.select(self.columns).to_numpy().astype(np.float32)), torch.tensor(target)]
            if block[1].is_floating_point():
                block[1] = block[1].float()
            if self.shuffle:
                order = torch.randperm(len(block[0]), generator=generator)
                block = [values[order] for values in block]
            if rest:
                block = [torch.cat(pair) for pair in zip(rest, block)]
            whole = len(block[0]) // self.batch_size * self.batch_size
            yield from zip(*(values[:whole].split(self.batch_size) for values in block))
            rest = [values[whole:] for values in block]
        if len(rest[0]) > 1 or len(rest[0]) == end - begin:  # a single row cannot go through batch normalisation
            yield rest[0], rest[1]


class Standardize(nn.Module):
    """Subtract the mean of each column and divide by its standard deviation; missing values (NaN) become the mean.

    Parameters
    ----------
    num_features : int
        Number of columns, the last dimension of the input.

    Examples
    --------
    >>> scaler = Standardize(2).fit([torch.tensor([[0.0, 5.0], [2.0, 5.0]]), torch.tensor([[4.0, 5.0]])])
    >>> scaler.mean.tolist(), scaler(torch.tensor([[2.0, torch.nan]])).tolist()
    ([2.0, 5.0], [[0.0, 0.0]])
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("scale", torch.ones(num_features))

    def fit(self, batches: Iterable[Any]) -> Standardize:
        """Take mean and deviation from one pass over batches; several processes put theirs together.

        Parameters
        ----------
        batches : iterable of tensors, or of tuples whose first part is one
            The rows of this process.
        """
        rows = (batch if isinstance(batch, torch.Tensor) else batch[0] for batch in batches)
        flat = (x.reshape(-1, self.num_features).double().cpu().numpy() for x in rows)
        own = reduce(TableStatistics.merge, (describe_block(x, np.empty((0, 0))) for x in flat))
        found = reduce(TableStatistics.merge, gather_objects(own))
        if bool((found.count == 0).any()):
            raise ValueError(f"column {int(np.flatnonzero(found.count == 0)[0])} has no values")
        deviation = np.sqrt(found.variance)
        self.mean.copy_(torch.from_numpy(found.mean))
        self.scale.copy_(torch.from_numpy(np.where(deviation > 0, deviation, 1.0)))
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Standardise the columns."""
        return torch.where(x.isnan(), 0.0, (x - self.mean) / self.scale)


def make_batches(data: Any, like: torch.Tensor, batch_size: int, seed: int) -> EndlessBatches:
    """Make batches of a tensor, a tuple of tensors or arrays with one entry for each row, or an iterable of batches.

    Tensors in memory are brought to the type and device of ``like``.
    """
    parts = (data,) if isinstance(data, (torch.Tensor, np.ndarray)) else data
    if isinstance(parts, tuple) and parts and all(isinstance(part, (torch.Tensor, np.ndarray)) for part in parts):
        tensors = [torch.as_tensor(part) for part in parts]
        lengths = {len(tensor) if tensor.dim() else 0 for tensor in tensors}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(
                f"the parts of data must have the same number of rows, at least one, got {sorted(lengths)}"
            )
        x = tensors[0].detach()
        if x.device.type == "cpu" and x.is_floating_point():
            check_finite(x.reshape(len(x), -1).numpy())
        there = [tensor.to(like.device, like.dtype if tensor.is_floating_point() else None) for tensor in tensors]
        return EndlessBatches(TensorBatches(there, batch_size, seed))
    if isinstance(data, Iterable):
        return EndlessBatches(data)
    raise TypeError(f"data must be a tuple of tensors (X, y) or an iterable of batches, got {type(data).__name__}")
