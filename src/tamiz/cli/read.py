"""Read any table: find its format, the columns to use, and what to leave out; say aloud what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tamiz.cli.errors import EXIT_USAGE, UserError, listed
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.table import Table, find_column, find_columns

#: Endings of file names and the format they mean.
FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    ``columns`` (for applying a model) names the only columns that are needed; each must be there.
    ``run_factor`` is how many copies of the table the work that follows will hold.
    """

    target: str | None = None
    need_target: bool = True
    ignore: Sequence[str] = ()
    categorical: Sequence[str] = ()
    columns: Sequence[str] | None = None
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    run_factor: float = 1.0


@dataclass
class Plan:
    """Which columns of a file to read."""

    wanted: np.ndarray
    as_text: np.ndarray
    target: int | None = None
    left_out: dict[int, str] = field(default_factory=dict)


def find_format(path: Path, asked: str | None = None) -> str:
    """The format of a file, by its ending or as asked for.

    Examples
    --------
    >>> find_format(Path("genes.TSV")), find_format(Path("genes.dat"), "csv")
    ('tsv', 'csv')
    """
    known = sorted(set(FORMATS.values()))
    if asked is not None:
        if asked not in known:
            raise UserError(f"Unknown format {asked!r}. There are: {', '.join(known)}.", EXIT_USAGE)
        return asked
    if path.suffix.lower() in FORMATS:
        return FORMATS[path.suffix.lower()]
    raise UserError(
        f"{path.name}: the ending {path.suffix!r} names no format. Say which with --format: {', '.join(known)}.",
        EXIT_USAGE,
    )


def check_file(path: Path) -> None:
    """Refuse what cannot be read at all."""
    if not path.exists():
        near = (
            sorted(p.name for p in path.parent.glob("*") if p.suffix.lower() in FORMATS) if path.parent.is_dir() else []
        )
        hint = f" There are {listed(near)} in that folder." if near else ""
        raise UserError(f"There is no file {path}.{hint}", EXIT_USAGE)
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it.", EXIT_USAGE)
    try:
        with open(path, "rb") as file:
            first = file.read(1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", EXIT_USAGE) from None
    if not first:
        raise UserError(f"{path.name} is empty.")


def _plan(names: Sequence[str], options: ReadOptions) -> Plan:
    """The columns to read of a table with these names."""
    n_columns = len(names)
    as_text = np.zeros(n_columns, dtype=bool)
    if options.columns is not None:
        position = {name: index for index, name in enumerate(names)}
        lacking = [name for name in options.columns if name not in position]
        if lacking:
            raise UserError(
                f"The table lacks {len(lacking)} column(s) that the model needs: {listed(lacking, limit=10)}."
            )
        wanted = np.zeros(n_columns, dtype=bool)
        wanted[[position[name] for name in options.columns]] = True
        as_text[[position[name] for name in options.categorical]] = True
        return Plan(wanted, as_text)
    if options.target is None and options.need_target:
        raise UserError(
            f"Say which column is the target with --target (name or number). The columns are {listed(names, limit=8)}.",
            EXIT_USAGE,
        )
    target = None if options.target is None else find_column(options.target, names, "target")
    wanted = np.ones(n_columns, dtype=bool)
    for index in find_columns(options.ignore, names, "column to ignore"):
        if index == target:
            raise UserError(f"The target {names[index]!r} cannot be ignored.", EXIT_USAGE)
        wanted[index] = False
    for index in find_columns(options.categorical, names, "categorical column"):
        as_text[index] = True
    if target is not None:
        wanted[target] = False
    return Plan(wanted, as_text, target)


def read_table(
    path: Path,
    options: ReadOptions,
    budget: MemoryBudget,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Table:
    """Read a table of any format we know.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Target, columns to ignore, and so on.
    budget : MemoryBudget
        Hears of the memory before it is taken.
    on_rows : callable
        Told the progress: rows done, rows in all.

    Returns
    -------
    Table
        Not yet tidied; see :func:`tamiz.cli.columns.tidy`.
    """
    check_file(path)
    format_name = find_format(path, options.format)
    if format_name in ("csv", "tsv", "arff"):
        return _read_text_format(path, format_name, options, budget, on_rows)
    if format_name in ("parquet", "arrow"):
        from tamiz.cli.read_arrow import ArrowFile, read_arrow
        from tamiz.cli.table import name_columns

        file = ArrowFile(path, format_name)
        plan = _plan(name_columns(file.schema.names), options)
        return read_arrow(
            file,
            wanted=plan.wanted,
            as_text=plan.as_text,
            target=plan.target,
            budget=budget,
            run_factor=options.run_factor,
            on_rows=on_rows,
        )
    return _read_matrix_format(path, format_name, options, budget)


def _read_text_format(
    path: Path, format_name: str, options: ReadOptions, budget: MemoryBudget, on_rows: Callable[[int, int], None]
) -> Table:
    from tamiz.cli.delimited import sniff
    from tamiz.cli.read_delimited import read_delimited

    kinds: list[str] = []
    if format_name == "arff":
        from tamiz.cli.arff import sniff_arff

        layout, kinds = sniff_arff(path)
    else:
        layout = sniff(path, "\t" if format_name == "tsv" else options.delimiter, options.header)
    names = layout.names
    if len(names) == 1:
        raise UserError(
            f"{path.name} has one column only ({names[0]!r:.60}). Is the delimiter another? Name it with --delimiter."
        )
    plan = _plan(names, options)
    left_out: dict[int, str] = {}
    for index, kind in enumerate(kinds):
        if kind == "date" and plan.wanted[index]:
            plan.wanted[index] = False
            left_out[index] = "dates"
        plan.as_text[index] |= kind == "text"
    if names[0] == "column_1" and layout.has_header and plan.wanted[0] and options.columns is None:
        # R and pandas write the names of the rows there; as a feature they would only leak the order of the
        # file.
        plan.wanted[0] = False
        left_out[0] = "row names (a first column without a name)"
    table = read_delimited(
        path,
        layout,
        format_name=format_name,
        wanted=plan.wanted,
        as_text=plan.as_text,
        target=plan.target,
        budget=budget,
        run_factor=options.run_factor,
        on_rows=on_rows,
    )
    table.left_out.update(left_out)
    return table


def _read_matrix_format(path: Path, format_name: str, options: ReadOptions, budget: MemoryBudget) -> Table:
    """NPZ and svmlight hold one matrix and its target; leaving columns out happens after reading."""
    from tamiz.cli.read_arrays import TARGET, read_npz, read_svmlight

    if options.target not in (None, TARGET) and options.columns is None:
        raise UserError(f"The target of a {format_name} file is called {TARGET!r}; leave --target out.", EXIT_USAGE)
    if options.categorical and options.columns is None:
        raise UserError(f"A {format_name} file holds numbers only: --categorical does not apply.", EXIT_USAGE)
    if format_name == "npz":
        table = read_npz(path, budget, options.run_factor, need_target=options.need_target)
    else:
        table = read_svmlight(path, budget)
    if format_name == "svmlight" and options.columns is not None:
        table = _widen(table, options.columns)  # a column without an entry is not missing, it is zero
    plan = _plan(table.names, ReadOptions(need_target=False, ignore=options.ignore, columns=options.columns))
    if not plan.wanted.all():
        table.number_columns = np.flatnonzero(plan.wanted)
        table.numbers = table.numbers[:, table.number_columns]
    return table


def _widen(table: Table, columns: Sequence[str]) -> Table:
    import scipy.sparse as sp

    known = set(table.names)
    more = [name for name in columns if name not in known and name.isdigit()]
    if more:
        blank = sp.csr_matrix((table.n_rows, len(more)), dtype=np.float32)
        table.numbers = sp.hstack([table.numbers, blank], format="csr")
        table.names = [*table.names, *more]
        table.number_columns = np.arange(len(table.names))
    return table
