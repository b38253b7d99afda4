"""Take data frames (pandas, polars, pyarrow and others with the Arrow interface) as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tamiz._utils.validation import collect_lazy
from tamiz.errors import TableError
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable, load_arrow


def as_table(frame: Any, categorical: Sequence[str] = ()) -> DataTable:
    """Return a data frame as a table; a table is returned as it is.

    Parameters
    ----------
    frame : DataTable or data frame
        Any object with the Arrow interface (``__arrow_c_stream__``): pandas, polars (also lazy), pyarrow.
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories.

    Returns
    -------
    DataTable

    Examples
    --------
    >>> import pandas
    >>> table = as_table(pandas.DataFrame({"age": [50, 60], "colour": ["red", None]}))
    >>> table.numbers.tolist(), table.texts[1].values()
    ([[50.0], [60.0]], ['red', None])
    """
    if isinstance(frame, DataTable):
        return frame
    frame = collect_lazy(frame)
    pa = load_arrow()
    from tamiz.tables.arrow_reader import ArrowSource, iterate_table, read_arrow

    try:
        if type(frame).__module__.partition(".")[0] == "pandas":
            # Through the Arrow interface the index of a part of a frame would become a column.
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            raise TypeError(f"A data frame (pandas, polars, pyarrow) or a DataTable is needed, got {type(frame)}.")
    except pa.ArrowException as error:
        raise TableError(f"The data frame cannot be read: {str(error).splitlines()[0]}") from None
    source = ArrowSource(Path("the data frame"), "arrow", table.schema, table.num_rows, iterate_table(table))
    return read_arrow(source, ReadOptions(categorical=categorical), MemoryBudget())
