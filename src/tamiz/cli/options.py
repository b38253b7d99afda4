"""Arguments and options of the commands, as annotations, and how their texts are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz._utils.text import pick_name
from tamiz.cli.errors import EXIT_USAGE, READ_ARGUMENTS, CommandError
from tamiz.core.rule import VARIANTS
from tamiz.estimators.networks import NETWORKS

Task = StrEnum("Task", ["classification", "regression"])
Missing = StrEnum("Missing", ["median", "indicator"])
SearchMethod = StrEnum("SearchMethod", ["auto", "full", "sketch"])
Texts = list[str] | None


def _panel(title: str) -> Any:
    def option(spec: str, text: str, **more: Any) -> Any:
        """Make an option from its names and the placeholder of its value, "--target -t COLUMN", and its help."""
        words = spec.split()
        metavar = None if words[-1].startswith("-") else words.pop()
        more = {"show_default": False, **more}
        return typer.Option(*words, help=text, metavar=metavar, rich_help_panel=title, **more)

    return option


reading, keeping, model, scoring, output = map(
    _panel, ("Reading the table", "What to keep", "Model", "Scoring", "Output")
)


FILE_HELP = (
    "The table: CSV, TSV, Excel, Parquet, Arrow, NDJSON, NPZ (X, y, names), ARFF or svmlight; packed or not; - is standard "
    "input."
)
NETWORK_HELP = f"Network that is trained: {', '.join(f'{name} ({one.title})' for name, one in NETWORKS.items())}."
READ_HELP = f"How the file is read, such as delimiter=';'. Names: {', '.join(READ_ARGUMENTS)}. Repeatable."
K_HELP = (
    "Columns to keep: a number, a fraction such as 0.1, or auto: the fewest that score as well as the best number, within one "
    "standard error on inner folds."
)
FDR_HELP = "In place of -k: bound on the expected share of false columns among those kept, such as 0.1."
SCORING_HELP = "Score: balanced_accuracy, accuracy, roc_auc or f1 for classes; r2, mae or mse for numbers."
TRAINING_HELP = (
    f"Further parameter: variant ({', '.join(VARIANTS)}), loss, class_weight (balanced or none), or one of Training such as "
    "ramp_steps=4000. Repeatable."
)
IGNORE_HELP = "Column to leave out: a name, a number, a range (3-7) or a pattern ('id_*'). Repeatable."
MEMORY_HELP = "Memory to use, such as 500MB or 4GB; a larger table is read in passes."
SCHEDULER_HELP = "Dask scheduler whose workers read the rows and run the folds: tcp://host:8786."

TablePath = Annotated[Path, typer.Argument(metavar="FILE", help=FILE_HELP, show_default=False)]
Target = Annotated[Texts, reading("--target -t COLUMN", "Column to predict; repeat it for several numbers.")]
TaskOption = Annotated[
    Task | None, reading("--task KIND", "classification or regression, if the values of the target mislead.")
]
Ignore = Annotated[Texts, reading("--ignore -i COLUMN", IGNORE_HELP)]
Categorical = Annotated[Texts, reading("--categorical -c COLUMN", "Column of codes of categories. Repeatable.")]
Read = Annotated[Texts, reading("--read NAME=VALUE", READ_HELP)]
Number = Annotated[str | None, keeping("-k M", K_HELP, show_default="auto")]
Fdr = Annotated[float | None, keeping("--fdr RATE", FDR_HELP)]
Keep = Annotated[Texts, keeping("--keep COLUMN", "Column that is always kept. Repeatable.")]
Drop = Annotated[Texts, keeping("--drop COLUMN", "Column that is never kept. Repeatable.")]
Network = Annotated[str, model("--network NAME", NETWORK_HELP, show_default=True)]
MissingOption = Annotated[
    Missing, model("--missing", "Missing numbers: the median, or also an indicator.", show_default=True)
]
TrainingOption = Annotated[Texts, model("--training NAME=VALUE", TRAINING_HELP)]
Seed = Annotated[int, model("--seed N", "Seed of everything random.", min=0, max=2**31 - 1, show_default=True)]
Folds = Annotated[int, scoring("--folds N", "Folds.", min=2, show_default=True)]
Repeats = Annotated[int, scoring("--repeats N", "How often folds are drawn.", min=1, show_default=True)]
Groups = Annotated[
    str | None, scoring("--groups COLUMN", "Rows with the same value, such as a patient, stay together.")
]
Time = Annotated[str | None, scoring("--time COLUMN", "Numbers or ISO dates: folds train on the past only.")]
Weights = Annotated[str | None, scoring("--weights COLUMN", "Weights of the rows.")]
Scoring = Annotated[str | None, scoring("--scoring NAME", SCORING_HELP, show_default="balanced_accuracy or r2")]
Test = Annotated[Path | None, scoring("--test FILE", "Further rows, on which the final model is scored.")]
Permutations = Annotated[
    int | None,
    scoring("--permutations N", "Shuffled targets to compare with; 0 for none.", min=0, show_default="up to 99"),
]
Jobs = Annotated[int | None, output("--jobs -j N", "Parallel jobs; all cores without it.", min=1)]
Out = Annotated[Path | None, output("--out -o FOLDER", "Folder for the results.")]
Force = Annotated[bool, output("--force", "Replace the files of an earlier run in that folder.")]
Report = Annotated[bool, output("--report/--no-report", "Whether to write report.html.", show_default=True)]
Json = Annotated[bool, output("--json", "Print the results as JSON.")]
Quiet = Annotated[bool, output("--quiet -q", "Print nothing but errors (and JSON, with --json).")]
MaxMemory = Annotated[str | None, output("--max-memory SIZE", MEMORY_HELP, show_default="a quarter of what is free")]
Scheduler = Annotated[str | None, output("--scheduler ADDRESS", SCHEDULER_HELP)]
Open = Annotated[bool, output("--open", "Open the report in the browser.")]


def parse_k(text: str) -> int | float | str:
    """Read a number of columns: an integer, a fraction or "auto".

    Examples
    --------
    >>> parse_k("20"), parse_k("1e3"), parse_k("0.1"), parse_k("auto")
    (20, 1000, 0.1, 'auto')
    >>> parse_k("0")
    Traceback (most recent call last):
    tamiz.cli.errors.CommandError: -k must be at least 1, got 0.
    """
    if text == "auto":
        return text
    try:
        is_whole = "." not in text and float(text).is_integer()
        value = int(float(text)) if is_whole else float(text)
    except ValueError:
        wrong = f"-k must be a number such as 20, a fraction such as 0.1, or auto; got {text!r}."
        raise CommandError(wrong, EXIT_USAGE) from None
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


def parse_reading(read: Texts, ignore: Texts = None, categorical: Texts = None) -> dict[str, Any]:
    """Collect the arguments of ``read_table`` that were given."""
    found = parse_assignments(read, "--read", READ_ARGUMENTS)
    for name in {"delimiter", "decimal", "encoding", "format"} & set(found):
        found[name] = {"tab": "\t", "\\t": "\t"}.get(str(found[name]), str(found[name]))
    if "na_values" in found:
        found["na_values"] = str(found["na_values"]).split(",")
    columns = {"ignore": ignore, "categorical": categorical}
    return found | {name: value for name, value in columns.items() if value}


def parse_training(texts: Texts) -> dict[str, Any]:
    """Read ``--training``: parameters of the estimator by their names, the others as a ``Training``."""
    given = parse_assignments(texts, "--training")
    found: dict[str, Any] = {name: given.pop(name) for name in ("variant", "loss", "class_weight") if name in given}
    if found.get("class_weight") == "none":
        found["class_weight"] = None
    if "variant" in found:
        found["variant"] = pick_name(str(found["variant"]), VARIANTS, "variant")
    if given:
        from tamiz.estimators.training import Training

        try:
            found["training"] = Training(**given)
        except TypeError as error:
            raise CommandError(f"--training: {error}", EXIT_USAGE) from None
    return found


def one_target(target: Texts, command: str) -> str | None:
    """Read the name of the target, of commands that take a single one."""
    if target and len(target) > 1:
        raise CommandError(f"{command} takes one target; run it once for each of them.", EXIT_USAGE)
    return target[0] if target else None


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
    match = re.fullmatch(r"(\d+\.?\d*)\s*([kmgt]?)i?b?", text.strip().lower()) if text is not None else None
    if text is not None and match is None:
        raise CommandError(f"--max-memory takes an amount such as 500MB or 4GB, got {text!r}.", EXIT_USAGE)
    return None if match is None else float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")
