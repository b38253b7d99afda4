"""Options of the commands: one record per command, whose fields are what may be typed.

Each field is an argument or option of typer with its help; :func:`tamiz.cli.command.add_command` makes the command from the
record, so the options have no second shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz._utils.names import pick_name
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.core.rule import VARIANTS
from tamiz.errors import UnknownNameError
from tamiz.estimators.networks import NETWORKS
from tamiz.tables.formats import FORMATS


class Task(StrEnum):
    """Name the tasks."""

    classification = "classification"
    regression = "regression"


def _name_in(registry: Mapping[str, object], kind: str) -> Callable[[str], str]:
    """Return a check that a value is a name of a registry, whatever the registry holds when the command runs."""

    def check(value: str) -> str:
        try:
            return pick_name(value, registry, kind)
        except UnknownNameError as error:
            raise typer.BadParameter(str(error)) from None

    return check


Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="The same seed gives the same result.", min=0, max=2**31 - 1)
]
Force = Annotated[bool, typer.Option("--force", help="Replace the files of an earlier run in that folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, with --json).")]
Open = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]
NetworkOption = Annotated[
    str,
    typer.Option(
        "--network",
        metavar="NAME",
        help=f"Network that is trained: {', '.join(f'{name} ({network.title})' for name, network in NETWORKS.items())}.",
        callback=_name_in(NETWORKS, "network"),
    ),
]
VariantOption = Annotated[
    str,
    typer.Option(
        "--variant",
        metavar="NAME",
        help=f"Variant of E2E-FS: {', '.join(VARIANTS)}.",
        callback=_name_in(VARIANTS, "variant"),
    ),
]


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    """Say how a command prints."""

    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ResultOptions(TerminalOptions):
    """Say where and how results are written."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder for the results. Default: here, called after the command and the file.",
            show_default=False,
        ),
    ] = None
    force: Force = False
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe/--no-spreadsheet-safe",
            help="Put an apostrophe before names in CSV results that a spreadsheet could run as a formula.",
        ),
    ] = True

    def folder(self, file: Path, prefix: str) -> Path:
        """Return the folder for the results; by default here, called after the command and the file."""
        stem = file.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")[0] or file.stem
        if str(file) == "-" or file.is_relative_to("/dev") or file.is_relative_to("/proc"):
            stem = "table"
        # A name of a folder has at most 255 bytes, and a temporary one beside it some more.
        stem = stem.encode("utf-8", "surrogateescape")[:150].decode("utf-8", "ignore") if len(stem) > 40 else stem
        return self.out or Path(prefix + (stem or "table"))


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Say how a file is read."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The table: CSV, TSV, xlsx, Parquet, Arrow, NPZ (X, y, names), ARFF or svmlight; packed with gzip if need "
            "be; - is standard input.",
            show_default=False,
        ),
    ]
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar=f"<{'|'.join(FORMATS)}>",
            help="The format, where the ending does not tell.",
            show_default=False,
            autocompletion=lambda: list(FORMATS),
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", metavar="CHARACTER", help="What separates cells of a CSV file.", show_default="found"
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row holds names.", show_default="found"),
    ] = None

    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of a text file, such as latin1.",
            show_default="found, else utf-8",
        ),
    ] = None
    skip_rows: Annotated[
        int, typer.Option("--skip-rows", metavar="N", help="Lines above the table to skip (CSV, TSV, xlsx).", min=0)
    ] = 0
    decimal: Annotated[
        str, typer.Option("--decimal", metavar="MARK", help="Decimal mark of a text file: . or ,", show_default=".")
    ] = "."
    na_values: Annotated[
        str | None,
        typer.Option(
            "--na-values",
            metavar="LIST",
            help="Cells that mean a missing value, besides empty ones, separated by commas.",
            show_default="NA, null, none and the like",
        ),
    ] = None
    keep_na: Annotated[
        bool, typer.Option("--keep-na", help="Only empty cells are missing: NA and none are values.")
    ] = False

    def reading(self) -> dict[str, Any]:
        """Return what :func:`tamiz.tables.read_table` needs to know about the file."""
        return {
            "format": self.format,
            "delimiter": self.delimiter,
            "header": self.header,
            "encoding": self.encoding,
            "skip_rows": self.skip_rows,
            "decimal": self.decimal,
            "na_values": self.missing_words(),
        }

    def missing_words(self) -> list[str] | None:
        """Return the cells that mean a missing value; None for the usual ones."""
        if self.keep_na:
            return []
        return None if self.na_values is None else [value.strip() for value in self.na_values.split(",")]

    def __post_init__(self) -> None:
        """Translate the names of delimiters; raise if there is more than one character."""
        if self.keep_na and self.na_values is not None:
            raise CommandError("--keep-na and --na-values exclude each other.", EXIT_USAGE)
        text = self.delimiter
        if text is None:
            return
        text = {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text)
        if len(text) != 1 or not text.isascii() or text in '"\r\n':
            raise CommandError(f"--delimiter must be one character (or tab), got {text!r}.", EXIT_USAGE)
        object.__setattr__(self, "delimiter", text)


@dataclass(frozen=True, kw_only=True)
class TargetOptions(FileOptions):
    """Describe the table and its target."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column to predict: its name, or its number (from 1; -1 is the last). Not needed for NPZ and svmlight. "
            "select and compare take several columns of numbers: height,mass, or the option repeated.",
            show_default=False,
        ),
    ] = None
    task: Annotated[
        Task | None, typer.Option("--task", help="Overrules what is found from the target.", show_default=False)
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            "-i",
            metavar="COLUMN",
            help="A column to leave out: a name, a number, a range (3-7) or a pattern ('id_*'). May be repeated.",
            show_default=False,
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical",
            "-c",
            metavar="COLUMN",
            help="A column of numbers that are names of categories. May be repeated.",
            show_default=False,
        ),
    ] = None
    max_categories: Annotated[
        int,
        typer.Option(
            "--max-categories", metavar="N", help="Text columns with more different values are left out.", min=2
        ),
    ] = 50

    def only_target(self, command: str) -> str | None:
        """Return the target of a command that takes one; raise CommandError for several."""
        if self.target and len(self.target) > 1:
            raise CommandError(f"{command} takes one target; run it once for each of them.", EXIT_USAGE)
        return self.target[0] if self.target else None


@dataclass(frozen=True, kw_only=True)
class TableOptions(TargetOptions):
    """Describe the table and the folds, for ``select`` and ``compare``."""

    n_folds: Annotated[int, typer.Option("--folds", metavar="N", help="Folds of the cross-validation.", min=2)] = 5
    n_repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="How many times the folds are drawn.", min=1)
    ] = 1
    seed: Seed = 0
    n_jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="Folds side by side. Default: as cores and memory allow.",
            min=1,
            show_default=False,
        ),
    ] = None
