"""Run cells on a Dask cluster. Workers need this package and the data sets; results come back and are stored here."""

from __future__ import annotations

from collections.abc import Sequence

from tamiz.errors import TamizError
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.execution import Executed, execute
from tamiz.reproduce.registry import protocol_path

#: Seconds to wait for a scheduler to answer.
CONNECT_TIMEOUT = 10.0
#: How often a cell is tried again elsewhere when a worker that had it dies.
RETRIES = 3


class ClusterError(TamizError):
    """Raise if the cluster cannot be reached or was lost; the message says what to do."""


def _check_address(address: str) -> None:
    """Raise a ValueError for an address that no scheduler can have: a client made with it prints a traceback of its own."""
    from distributed.comm import registry
    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, place = parse_address(address)
    registry.get_backend(scheme)
    if scheme in ("tcp", "tls"):
        parse_host_port(place)


def run_on_cluster(cells: Sequence[Cell], address: str, data_home: str | None) -> Executed:
    """Send all cells to the scheduler at ``address``; a worker that dies loses nothing, its cells go to another.

    Parameters
    ----------
    cells : sequence of Cell
        Cells to compute.
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.5:8786``.
    data_home : str or None
        Folder of the data sets on the workers; a worker that has no such folder looks in its own data home.
    """
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise ClusterError("--dask needs Dask: pip install 'dask[distributed]'.") from None
    from concurrent.futures import CancelledError

    try:
        _check_address(address)
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as fault:
        reason = f" ({fault})" if isinstance(fault, (ValueError, TypeError)) else ""
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}{reason}. Start one (dask scheduler; dask worker {address}), or "
            "leave --dask out to run on this machine."
        ) from None
    with client:
        # Named by their keys: a second start on the same cluster never shares half-forgotten futures of the first.
        futures = {
            client.submit(
                execute,
                cell,
                data_home,
                protocol_path(cell.protocol),
                key=f"tamiz-{client.id}-{cell.key}",
                retries=RETRIES,
            ): cell
            for cell in cells
        }
        for future in as_completed(list(futures), loop=client.loop):
            cell = futures[future]
            try:
                outcome = future.result()
            except KilledWorker:
                outcome = {"failure": "every worker that computed it died (out of memory?)"}
            except CancelledError:
                raise ClusterError(
                    f"The connection to {address!r} was lost. Start again: finished cells are kept."
                ) from None
            except Exception as fault:  # a worker that cannot load this package, for one
                outcome = {"failure": f"{type(fault).__name__}: {fault}"}
            future.release()
            yield cell, outcome
