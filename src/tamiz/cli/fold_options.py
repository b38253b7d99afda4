"""Options of the folds and of the score, for ``select`` and ``compare``, and the columns that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import TableOptions

if TYPE_CHECKING:
    import numpy as np

    from tamiz.tables.table import DataTable


@dataclass(frozen=True, kw_only=True)
class FoldOptions(TableOptions):
    """Say how the folds are made and how they are scored."""

    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COLUMN",
            help="Rows with the same value (one patient) stay together in a fold.",
            show_default=False,
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COLUMN",
            help="Numbers or ISO dates: every fold trains on the past of its test rows.",
            show_default=False,
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="COLUMN", help="Weights of the rows.", show_default=False),
    ] = None
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            metavar="NAME",
            help="The score: balanced_accuracy, accuracy, roc_auc or f1 for classes; r2, mae or mse for numbers.",
            show_default="balanced_accuracy or r2",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SelectionFoldOptions(FoldOptions):
    """Add what only ``select`` offers: a test file, the null, and the loss."""

    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="Further rows with the same columns; the final model is scored on them.",
            show_default=False,
        ),
    ] = None
    permutations: Annotated[
        int | None,
        typer.Option(
            "--permutations",
            metavar="N",
            help="Shuffled targets to compare with; 0 for none.",
            min=0,
            show_default="20; 0 with --network mlp",
        ),
    ] = None
    loss: Annotated[
        str | None, typer.Option("--loss", metavar="NAME", help="Loss of the model.", show_default="auto")
    ] = None
    class_weight: Annotated[
        str,
        typer.Option("--class-weight", metavar="NAME", help="balanced: each class counts the same; or none."),
    ] = "balanced"

    def __post_init__(self) -> None:
        """Check the names."""
        super().__post_init__()
        if self.class_weight not in ("balanced", "none"):
            raise CommandError(f"--class-weight must be balanced or none, got {self.class_weight!r}.", EXIT_USAGE)


@dataclass(frozen=True, eq=False)
class RowRoles:
    """Hold columns that describe rows and are no features: groups, time and weights."""

    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    weights: np.ndarray | None = None


def named_columns(options: TableOptions) -> dict[str, str]:
    """Return the columns that describe rows, by option; raise if one is the target.

    Examples
    --------
    >>> named_columns(FoldOptions(file=Path("t.csv"), groups="patient"))
    {'groups': 'patient'}
    """
    found = {name: getattr(options, name, None) for name in ("groups", "time", "weights")}
    named = {name: column for name, column in found.items() if column is not None}
    for name, column in named.items():
        if column in (options.target or ()):
            raise CommandError(f"--{name} names the target {column!r} itself; name another column.", EXIT_USAGE)
    if "groups" in named and "time" in named:
        raise CommandError("Folds follow --groups or --time, not both.", EXIT_USAGE)
    return named


def read_row_roles(options: TableOptions, table: DataTable) -> RowRoles:
    """Read the columns that describe rows, for the rows of a table.

    They are read as text, since numbers of a table are float32, in which dates such as 20240131 would fall together.
    """
    from tamiz.tables.files import is_stream
    from tamiz.tables.names import find_column
    from tamiz.tables.read import read_table

    named = named_columns(options)
    if not named:
        return RowRoles()
    if is_stream(options.file):
        raise CommandError(f"--{next(iter(named))} reads the table twice: give a file instead of a pipe.", EXIT_USAGE)
    positions = {name: find_column(spec, table.names, f"column for --{name}") for name, spec in named.items()}
    columns = [table.names[position] for position in dict.fromkeys(positions.values())]
    read = read_table(
        options.file,
        columns=columns,
        categorical=columns,
        **options.reading(),
    )
    assert table.target is not None
    values = {
        name: _known_values(read, table.names[position], table.target.rows, name)
        for name, position in positions.items()
    }
    return RowRoles(
        groups=values.get("groups"),
        time=None if "time" not in values else _as_time(values["time"], named["time"]),
        weights=None if "weights" not in values else _as_weights(values["weights"], named["weights"]),
    )


def _known_values(read: DataTable, column: str, rows: np.ndarray, option: str) -> np.ndarray:
    import numpy as np

    found = read.column_values(column)[rows]
    # Text, or numbers of a format without text.
    values = [None if value is None or value != value else str(value) for value in found.tolist()]
    missing = sum(value is None for value in values)
    if missing:
        raise CommandError(
            f"The column {column!r} of --{option} has no value in {missing:,} of {len(values):,} rows. "
            "Fill them in, or leave these rows out."
        )
    return np.array(values)


def _as_numbers(values: np.ndarray) -> np.ndarray | None:
    import numpy as np

    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _as_time(values: np.ndarray, column: str) -> np.ndarray:
    import numpy as np

    numbers = _as_numbers(values)
    if numbers is not None:
        return numbers
    try:
        return values.astype("datetime64[s]").astype(np.int64)
    except ValueError:
        raise CommandError(
            f"The column {column!r} of --time holds neither numbers nor dates such as 2024-01-31."
        ) from None


def _as_weights(values: np.ndarray, column: str) -> np.ndarray:
    numbers = _as_numbers(values)
    if numbers is None or (numbers < 0).any() or not numbers.any():
        raise CommandError(f"The column {column!r} of --weights must hold numbers, none below 0 and not all 0.")
    return numbers
