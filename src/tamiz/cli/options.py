"""The options that several commands share, each with its help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Task(StrEnum):
    """What the target is."""

    classification = "classification"
    regression = "regression"


class Variant(StrEnum):
    """Which rule of the paper."""

    soft = "soft"
    hard = "hard"
    ranking = "ranking"


class Network(StrEnum):
    """Which network is trained."""

    linear = "linear"
    mlp = "mlp"


class Format(StrEnum):
    """What files can be."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"
    npz = "npz"
    arff = "arff"
    svmlight = "svmlight"


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The table: CSV, TSV, Parquet, Arrow, NPZ (X, y, names), ARFF or svmlight.",
        show_default=False,
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column to predict: its name, or its number (from 1; -1 is the last). Not needed for NPZ and svmlight.",
        show_default=False,
    ),
]
TaskOption = Annotated[
    Task | None, typer.Option("--task", help="Overrules what is found from the target.", show_default=False)
]
VariantOption = Annotated[Variant, typer.Option("--variant", help="The rule of the paper.")]
NetworkOption = Annotated[
    Network, typer.Option("--network", help="linear needs no torch; mlp, the three-layer network, takes much longer.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        "-i",
        metavar="COLUMN",
        help="A column to leave out: a name, a number, a range (3-7) or a pattern ('id_*'). May be repeated.",
        show_default=False,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        "-c",
        metavar="COLUMN",
        help="A column of numbers that are names of categories. May be repeated.",
        show_default=False,
    ),
]
MaxCategories = Annotated[
    int,
    typer.Option("--max-categories", metavar="N", help="Text columns with more different values are left out.", min=2),
]
Folds = Annotated[int, typer.Option("--folds", metavar="N", help="Folds of the cross-validation.", min=2)]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", help="How many times the folds are drawn.", min=1)]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="The same seed gives the same result.", min=0, max=2**31 - 1)
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        help="Folds side by side. Default: as cores and memory allow.",
        min=1,
        show_default=False,
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="The format, where the ending does not tell.", show_default=False)
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHARACTER", help="What separates cells of a CSV file.", show_default="found"),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row holds names.", show_default="found"),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="The folder for the results. Default: here, called after the command and the file.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the files of an earlier run in that folder.")]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe/--no-spreadsheet-safe",
        help="Put an apostrophe before names in CSV results that a spreadsheet could run as a formula.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, with --json).")]
Open = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]
