"""Search blocks on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.pairs.blocks import Block, Found, Runner, Task, search_block
from tamiz.pairs.full import WorkMaker


def _hold(value: Any) -> Any:
    """Return what was given: a task whose result can be made again if its worker is lost."""
    return value


def run_blocks_on_cluster(client: Any) -> tuple[Runner, WorkMaker]:
    """Return a runner and what makes its tasks.

    Blocks go to the cluster once, as results of tasks: if a worker is lost, the scheduler makes them again on another and runs
    its tasks once more.

    Parameters
    ----------
    client : dask.distributed.Client
        The cluster.
    """
    distributed = require("distributed", "test", "client=")
    if not hasattr(client, "submit") or not hasattr(client, "cancel"):
        raise ValueError(f"client must be a dask.distributed.Client, got {type(client).__name__}.")
    held: dict[int, Any] = {}

    def hold(blocks: list[Block], number: int) -> Any:
        if number not in held:
            held[number] = client.submit(_hold, blocks[number], pure=False)
        return held[number]

    def make(blocks: list[Block], weights: np.ndarray, variance: np.ndarray, n_kept: int) -> Callable[[Task], Any]:
        shared = client.submit(_hold, np.asarray(weights, dtype=np.float32), pure=False)
        rows = np.asarray(variance, dtype=np.float32)

        def submit(task: Task) -> Any:
            first, second = hold(blocks, task[0]), hold(blocks, task[1])
            return client.submit(search_block, first, second, shared, rows, n_kept, pure=False, retries=3)

        return submit

    def run(tasks: list[Task], submit: Callable[[Task], Any]) -> Iterator[tuple[Task, Found]]:
        futures = {submit(task): task for task in tasks}
        try:
            for future in distributed.as_completed(futures):
                yield futures[future], future.result()
        finally:
            client.cancel(list(futures))

    return run, make
