"""Arguments and options of the commands, as annotations, and how their texts are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz._utils.names import pick_name
from tamiz.cli.errors import EXIT_USAGE, READ_ARGUMENTS, CommandError
from tamiz.core.rule import VARIANTS
from tamiz.errors import MissingExtraError, UnknownNameError
from tamiz.estimators.networks import NETWORKS

READING, KEEPING, MODEL, SCORING, OUTPUT = "Reading the table", "What to keep", "Model", "Scoring", "Output"


class Task(StrEnum):
    """Tasks."""

    classification = "classification"
    regression = "regression"


class Missing(StrEnum):
    """How to treat missing numbers."""

    median = "median"
    indicator = "indicator"


def option(*names: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **{"show_default": False, **more})


def _pick(registry: Any, kind: str) -> Any:
    """Check that a value names an entry of a registry, whatever that holds when the command runs."""

    def check(value: str) -> str:
        try:
            return pick_name(value, registry, kind)
        except UnknownNameError as error:
            raise typer.BadParameter(str(error)) from None

    return check


FILE_HELP = (
    "The table: CSV, TSV, Excel, Parquet, Arrow, NDJSON, NPZ (X, y, names), ARFF or svmlight; packed or not; - is standard "
    "input."
)
TablePath = Annotated[Path, typer.Argument(metavar="FILE", help=FILE_HELP, show_default=False)]
Target = Annotated[
    list[str] | None,
    option("--target", "-t", metavar="COLUMN", panel=READING, help="Column to predict; repeat it for several numbers."),
]
TaskOption = Annotated[Task | None, option("--task", panel=READING, help="What the target is, if its values mislead.")]
Ignore = Annotated[
    list[str] | None,
    option(
        *("--ignore", "-i"),
        metavar="COLUMN",
        panel=READING,
        help="Column to leave out: a name, a number, a range (3-7) or a pattern ('id_*'). Repeatable.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    option(
        *("--categorical", "-c"),
        metavar="COLUMN",
        panel=READING,
        help="Column of numbers that are codes of categories. Repeatable.",
    ),
]
Read = Annotated[
    list[str] | None,
    option(
        "--read",
        metavar="NAME=VALUE",
        panel=READING,
        help=f"How the file is read, such as delimiter=';'. Names: {', '.join(READ_ARGUMENTS)}. Repeatable.",
    ),
]
Network = Annotated[
    str,
    option(
        "--network",
        metavar="NAME",
        panel=MODEL,
        help=f"Network that is trained: {', '.join(f'{name} ({one.title})' for name, one in NETWORKS.items())}.",
        callback=_pick(NETWORKS, "network"),
        show_default=True,
    ),
]
VariantName = Annotated[
    str,
    option(
        "--variant",
        metavar="NAME",
        panel=MODEL,
        help=f"Variant of E2E-FS: {', '.join(VARIANTS)}.",
        callback=_pick(VARIANTS, "variant"),
        show_default=True,
    ),
]
Folds = Annotated[int, option("--folds", metavar="N", panel=SCORING, min=2, show_default=True, help="Folds.")]
Repeats = Annotated[
    int, option("--repeats", metavar="N", panel=SCORING, min=1, show_default=True, help="How often folds are drawn.")
]
Groups = Annotated[
    str | None,
    option(
        "--groups", metavar="COLUMN", panel=SCORING, help="Rows with the same value, such as a patient, stay together."
    ),
]
Time = Annotated[
    str | None,
    option("--time", metavar="COLUMN", panel=SCORING, help="Numbers or ISO dates: folds train on the past only."),
]
Weights = Annotated[str | None, option("--weights", metavar="COLUMN", panel=SCORING, help="Weights of the rows.")]
Scoring = Annotated[
    str | None,
    option(
        "--scoring",
        metavar="NAME",
        panel=SCORING,
        help="Score: balanced_accuracy, accuracy, roc_auc or f1 for classes; r2, mae or mse for numbers.",
        show_default="balanced_accuracy or r2",
    ),
]
Seed = Annotated[
    int,
    option(
        *("--seed",),
        metavar="N",
        panel=MODEL,
        min=0,
        max=2**31 - 1,
        show_default=True,
        help="Seed of everything random.",
    ),
]
Jobs = Annotated[
    int | None, option("--jobs", "-j", metavar="N", panel=OUTPUT, min=1, help="Parallel jobs; all cores without it.")
]
Out = Annotated[Path | None, option("--out", "-o", metavar="FOLDER", panel=OUTPUT, help="Folder for the results.")]
Force = Annotated[bool, option("--force", panel=OUTPUT, help="Replace the files of an earlier run in that folder.")]
Json = Annotated[bool, option("--json", panel=OUTPUT, help="Print the results as JSON.")]
Quiet = Annotated[bool, option("--quiet", "-q", panel=OUTPUT, help="Print nothing but errors (and JSON, with --json).")]
Open = Annotated[bool, option("--open", panel=OUTPUT, help="Open the report in the browser.")]


def parse_k(text: str) -> int | float | str:
    """Read a number of columns: an integer, a fraction or "auto".

    Examples
    --------
    >>> parse_k("20"), parse_k("0.1"), parse_k("auto")
    (20, 0.1, 'auto')
    >>> parse_k("0")
    Traceback (most recent call last):
    tamiz.cli.errors.CommandError: -k must be at least 1, got 0.
    """
    if text == "auto":
        return text
    try:
        value: int | float = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise CommandError(
            f"-k must be a number such as 20, a fraction such as 0.1, or auto; got {text!r}.", EXIT_USAGE
        ) from None
    if isinstance(value, int) and value < 1:
        raise CommandError(f"-k must be at least 1, got {text}.", EXIT_USAGE)
    if isinstance(value, float) and not 0 < value < 1:
        raise CommandError(f"-k={text} is a fraction out of range; give one between 0 and 1.", EXIT_USAGE)
    return value


def parse_assignments(texts: Iterable[str] | None, option: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Read repeated ``NAME=VALUE``; values that are numbers, true, false or null are read as such.

    Examples
    --------
    >>> parse_assignments(["skip_rows=2", "delimiter=;"], "--read")
    {'skip_rows': 2, 'delimiter': ';'}
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise CommandError(f"{option} takes NAME=VALUE, got {text!r}.", EXIT_USAGE)
        if names is not None:
            name = pick_name(name, {known: known for known in names}, f"name for {option}")
        try:
            found[name] = json.loads(value.lower() if value.lower() in ("true", "false", "null") else value)
        except ValueError:
            found[name] = value
    return found


def reading_options(
    read: list[str] | None, ignore: list[str] | None = None, categorical: list[str] | None = None
) -> dict[str, Any]:
    """Collect the arguments of ``read_table`` that were given."""
    found = parse_assignments(read, "--read", READ_ARGUMENTS)
    for name in ("delimiter", "decimal", "encoding", "format"):
        if name in found:
            found[name] = {"tab": "\t", "\\t": "\t"}.get(str(found[name]), str(found[name]))
    if "na_values" in found:
        found["na_values"] = str(found["na_values"]).split(",")
    if ignore:
        found["ignore"] = ignore
    if categorical:
        found["categorical"] = categorical
    return found


def check_paths(*paths: Path | None) -> None:
    """Raise for a file that is not there, before anything heavy is loaded."""
    from tamiz.tables.files import is_stream
    from tamiz.tables.formats import check_file

    for path in paths:
        if path is not None and not is_stream(path):
            if (any(mark in str(path) for mark in "*?[:") and not path.exists()) or path.is_dir():
                continue  # a pattern or folder, of which the reader says what is wrong
            check_file(path)


def parse_size(text: str | None) -> float | None:
    """Read an amount of memory in bytes.

    Examples
    --------
    >>> parse_size("500MB"), parse_size("1.5 gb"), parse_size("2000000")
    (500000000.0, 1500000000.0, 2000000.0)
    """
    if text is None:
        return None
    match = re.fullmatch(r"([\d.]+)\s*([kmgt]?)i?b?", text.strip().lower())
    try:
        return float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")  # type: ignore[index]
    except (TypeError, ValueError):
        raise CommandError(f"--max-memory takes an amount such as 500MB or 4GB, got {text!r}.", EXIT_USAGE) from None


def check_network(name: str) -> None:
    """Raise if a network needs a package that is not installed."""
    try:
        missing = not NETWORKS[name].compiled and find_spec("torch") is None
    except (ImportError, ValueError):  # an import hook that forbids it
        missing = True
    if missing:
        raise MissingExtraError(f'--network {name} needs torch. Install it with: pip install "tamiz[torch]"')


def default_folder(file: Path, prefix: str) -> Path:
    """Return a folder here, called after the command and the file."""
    stem = file.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")[0] or file.stem
    if str(file) == "-" or file.is_relative_to("/dev") or file.is_relative_to("/proc"):
        stem = "table"
    # The name of a folder has at most 255 bytes, and a temporary one beside it some more.
    stem = stem.encode("utf-8", "surrogateescape")[:150].decode("utf-8", "ignore") if len(stem) > 40 else stem
    return Path(prefix + (stem or "table"))
