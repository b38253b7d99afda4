"""``tamiz reproduce``: run a protocol of the paper and print its tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from tamiz._utils.text import counted
from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OUTPUT, EXIT_USAGE, CommandError

#: Arguments of the command that are no options of a protocol.
_RUNNING = ("protocol", "jobs", "out", "json", "quiet")
Text: TypeAlias = str | None
Number: TypeAlias = int | None
tables, images_, running = (
    partial(typer.Option, show_default=False, metavar="VALUE", rich_help_panel=panel)
    for panel in ("Tables", "Images", "Running")
)
PROTOCOL_HELP = (
    "microarray (the table of gene and challenge data), three-layer (figure 2), images (MNIST and others), surfaces (figure 1) "
    "or ground-truth (tables with a known truth)."
)


def reproduce(
    protocol: Annotated[str, typer.Argument(show_default=False, metavar="PROTOCOL", help=PROTOCOL_HELP)],
    datasets: Annotated[Text, tables("--datasets", "-d", help="Separated by commas; see tamiz datasets.")] = None,
    methods: Annotated[Text, tables("--methods", "-m", help="Separated by commas; random and all are added.")] = None,
    problems: Annotated[Text, tables(help="Of ground-truth: ring, xor, ring+xor, ring+xor+sum.")] = None,
    learners: Annotated[Text, tables(help="Of microarray: NaiveF, Naive, SVM; of three-layer: anew, joint.")] = None,
    k: Annotated[Text, tables("-k", help="Numbers of features, separated by commas.")] = None,
    sizes: Annotated[Text, tables(help="Of ground-truth: numbers of columns, separated by commas.")] = None,
    repeats: Annotated[Number, tables(help="Repeats of the three folds (20).")] = None,
    folds: Annotated[Number, tables(help="Of ground-truth: folds of each table (6).")] = None,
    runs: Annotated[Number, tables(help="Of images: runs with other seeds (1).")] = None,
    points: Annotated[Number, tables(help="Of surfaces: points of each axis (41).")] = None,
    grid: Annotated[Text, tables(help="Grid of the SVM: small, or full (the authors', ten times the work).")] = None,
    recipe: Annotated[Text, tables(help="How networks are trained: paper (default), tamiz, or both.")] = None,
    images: Annotated[Number, images_(help="Training images, and test images at most; 0 (default): all.")] = None,
    epochs: Annotated[Number, images_(help="Epochs of each training (110); the selection is scaled with them.")] = None,
    depth: Annotated[Number, images_(help="Depth of the Wide ResNet, 6n + 4 (16).")] = None,
    width: Annotated[Number, images_(help="Widening factor of the network (4).")] = None,
    batch_size: Annotated[Number, images_(help="Images per step (128).")] = None,
    device: Annotated[Text, images_(help="Where torch runs: cpu (default), cuda.")] = None,
    seed: Annotated[Number, running(help="The same seed gives the same result (0).", max=2**31 - 1)] = None,
    jobs: Annotated[Number, running("--jobs", "-j", help="Processes side by side (all cores).", min=1)] = None,
    out: Annotated[Path | None, running("--out", "-o", help="Folder of the run (tamiz-reproduce-NAME).")] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Run a table or figure of the paper again. A run may be killed and started again: it goes on where it was.

    Options that are not given have the paper's values.
    """
    options = {name: value for name, value in locals().items() if name not in _RUNNING and value is not None}
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.text import Text

    from tamiz._utils.progress import format_time
    from tamiz.cli.console import Terminal
    from tamiz.paper import find_data_home
    from tamiz.paper.protocol import flag_of, load_protocol
    from tamiz.paper.runner import StoreError, run_protocol

    kind = load_protocol(protocol)
    defaults = vars(kind())
    unknown = [flag_of(name) for name in options if name not in defaults]
    if unknown:
        known = ", ".join(map(flag_of, defaults))
        raise CommandError(f"{kind.name} has no option {' or '.join(unknown)}; it has {known}.", EXIT_USAGE)
    plan = kind(**{name: read_value(value, defaults[name]) for name, value in options.items()})
    folder = out or Path(f"tamiz-reproduce-{kind.name}")
    with Terminal(quiet, json) as terminal:
        try:
            run = run_protocol(
                plan,
                folder,
                jobs=jobs,
                data_home=str(find_data_home().absolute()),
                progress=lambda done, total, note: terminal.progress("cells", done, total),
                warn=terminal.say,
            )
        except StoreError as error:
            raise CommandError(str(error), EXIT_OUTPUT) from None
        except KeyboardInterrupt:
            raise CommandError(
                f"Interrupted. Finished cells are kept in {folder}; the same command goes on from there.",
                EXIT_INTERRUPTED,
            ) from None
        record = {**run.summary.content, "markdown": run.summary.markdown, "files": run.files}
        if run.results or run.failures:
            record["seconds"] = run.seconds
            terminal.say(
                f"{run.n_computed} cells computed, {run.n_reused} found finished, {len(run.failures)} "
                f"failed, in {format_time(run.seconds)}."
            )
        files = [Text(f"{kind_}: {path}", style="dim") for kind_, path in run.files.items()]
        terminal.finish(record, Group(Markdown(run.summary.markdown), *files))
    if run.failures:
        name, text = min(run.failures.items())
        raise CommandError(
            f"{counted(len(run.failures), 'cell')} failed, the first: {name}: {text}\nAll are listed in {run.files['md']}; the "
            "same command tries them again.",
            EXIT_FAILED,
        )


def read_value(text: str | int, default: Any) -> Any:
    """Read an option as its default is: a number, a word, or several of them separated by commas.

    Examples
    --------
    >>> read_value("colon, lung", ("dexter",)), read_value("10,50", (5,)), read_value("20", 5)
    (['colon', 'lung'], [10, 50], 20)
    """
    words = [word.strip() for word in str(text).split(",") if word.strip()]
    values: list[Any] = words
    if not words:
        raise CommandError(f"{text!r} names nothing; separate names by commas.", EXIT_USAGE)
    several = isinstance(default, tuple)
    if isinstance(default[0] if several else default, int):
        try:
            values = [int(word) for word in words]
        except ValueError:
            raise CommandError(f"{text!r} is not a list of whole numbers, such as 10,50.", EXIT_USAGE) from None
    return values if several else values[0]
