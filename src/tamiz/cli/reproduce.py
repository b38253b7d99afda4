"""``tamiz reproduce``: one command per protocol, made from what the protocol says of itself."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OUTPUT, EXIT_USAGE, CommandError

RunJobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Processes side by side.", min=1, show_default="all cores")
]
DaskAddress = Annotated[
    str | None,
    typer.Option(
        "--dask",
        help="The address of a Dask scheduler that computes the cells, such as tcp://host:8786.",
        show_default=False,
    ),
]
RunOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="The folder of the run; finished cells in it are not computed again. Default: tamiz-reproduce-NAME, here.",
        show_default=False,
    ),
]
#: Options of every protocol, after its own: name, annotation, default.
_SHARED: tuple[tuple[str, Any, Any], ...] = (
    ("jobs", RunJobs, None),
    ("dask", DaskAddress, None),
    ("out", RunOut, None),
    ("json", opt.Json, False),
    ("quiet", opt.Quiet, False),
)


def split_words(text: str) -> list[str]:
    """Return the words of a list separated by commas.

    Examples
    --------
    >>> split_words("colon, lung")
    ['colon', 'lung']
    """
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise CommandError(f"{text!r} names nothing; separate names by commas.", EXIT_USAGE)
    return found


def split_integers(text: str) -> list[int]:
    """Return the integers of a list separated by commas.

    Examples
    --------
    >>> split_integers("10,50")
    [10, 50]
    """
    try:
        return [int(word) for word in split_words(text)]
    except ValueError:
        raise CommandError(f"{text!r} is not a list of whole numbers, such as 10,50.", EXIT_USAGE) from None


#: Kind of a protocol's option -> type that is typed, and how it becomes the argument of ``make_plan``.
_KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "text": (str, str),
    "integer": (int, int),
    "words": (str, split_words),
    "integers": (str, split_integers),
}


def make_command(protocol: Any) -> Callable[..., None]:
    """Return the function of a protocol's command, with its options as parameters."""

    def command(**typed: Any) -> None:
        shared = {name: typed.pop(name) for name, _, _ in _SHARED}
        chosen = {
            option.name: _KINDS[option.kind][1](typed[option.name])
            for option in protocol.options
            if typed[option.name] is not None
        }
        run_command(protocol, chosen, **shared)

    parameters = [
        (
            option.name,
            Annotated[
                _KINDS[option.kind][0] | None,
                typer.Option(
                    *option.flags,
                    help=option.help,
                    show_default=option.shown_default or True,
                    min=option.minimum,
                    max=option.maximum,
                ),
            ],
            None if isinstance(option.default, tuple) else option.default,
        )
        for option in protocol.options
    ]
    command.__doc__ = protocol.description
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, annotation, default in (*parameters, *_SHARED)
        ]
    )
    return command


def run_command(
    protocol: Any, chosen: dict[str, Any], jobs: int | None, dask: str | None, out: Path | None, json: bool, quiet: bool
) -> None:
    """Run a protocol and print its tables; an exit code of 1 says that cells failed."""
    from tamiz._utils.progress import ProgressBar, format_time
    from tamiz.cli.console import Terminal
    from tamiz.errors import DatasetError
    from tamiz.paper import find_data_home
    from tamiz.paper.runner import ClusterError, StoreError, run_protocol

    terminal = Terminal(quiet, json)
    folder = out or Path(f"tamiz-reproduce-{protocol.name}")
    bar = None if quiet else ProgressBar("cells")
    try:
        plan = _plan(protocol, chosen)
        run = run_protocol(
            protocol,
            plan,
            folder,
            jobs=jobs,
            dask=dask,
            data_home=str(find_data_home().absolute()),
            progress=bar.update if bar else (lambda done, total, note: None),
            warn=terminal.say,
        )
        if bar:
            bar.close()
        files = {**run.files, **_write_pages(run.pages, folder)}
    except (DatasetError, ClusterError) as error:
        raise CommandError(str(error)) from None
    except StoreError as error:
        raise CommandError(str(error), EXIT_OUTPUT) from None
    except KeyboardInterrupt:
        raise CommandError(
            f"Interrupted. Finished cells are kept in {folder}; the same command goes on from there.", EXIT_INTERRUPTED
        ) from None
    record = {**run.summary.content, "markdown": run.summary.markdown, "files": files}
    if run.results or run.failures:
        record["seconds"] = run.seconds
        terminal.say(
            f"{run.n_computed} cells computed, {run.n_reused} found finished, {len(run.failures)} "
            f"failed, in {format_time(run.seconds)}."
        )
    _show(record, run.failures, terminal)


def _plan(protocol: Any, chosen: dict[str, Any]) -> Any:
    from tamiz.errors import DatasetError

    try:
        return protocol.make_plan(**chosen)
    except DatasetError:
        raise
    except ValueError as error:
        raise CommandError(str(error), EXIT_USAGE) from None


def _write_pages(pages: Any, folder: Path) -> dict[str, str]:
    from tamiz.report.page import report

    files = {}
    command = shlex.join(["tamiz", *sys.argv[1:]])
    for name, comparison, about in pages:
        path = folder / f"report-{name}.html"
        files[f"report of {name}"] = str(report(comparison, path=path, task="classification", command=command, **about))
    return files


def _show(record: dict[str, Any], failures: dict[str, str], terminal: Any) -> None:
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.text import Text

    files = [Text(f"{kind}: {path}", style="dim") for kind, path in record["files"].items()]
    terminal.finish(record, Group(Markdown(record["markdown"]), *files))
    if failures:
        name, text = next(iter(sorted(failures.items())))
        raise CommandError(
            f"{len(failures)} cell(s) failed, the first: {name}: {text}\nAll are listed in {record['files']['md']}; the "
            "same command tries them again.",
            EXIT_FAILED,
        )


def page(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The summary; the pages of the runs go into a folder beside it.")
    ] = Path("results.md"),
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write a summary of several runs with a chart, and a page of Markdown for each of them."""
    from tamiz.cli.console import Terminal
    from tamiz.paper.results import PageError, write_page
    from tamiz.paper.runner import StoreError

    terminal = Terminal(quiet, json)
    try:
        written = write_page(folders, out)
    except PageError as error:
        raise CommandError(str(error)) from None
    except StoreError as error:
        raise CommandError(str(error), EXIT_OUTPUT) from None
    terminal.say(f"Wrote {out} and {len(written) - 1} files beside it.")
    if json:
        record = {"file": str(out), "files": list(map(str, written)), "runs": [str(folder) for folder in folders]}
        terminal.finish(record, "")


def add_commands(root: typer.Typer, friendly: Callable[..., Any]) -> None:
    """Add ``reproduce`` to the command ``tamiz``; a protocol is imported when its command is looked at."""

    def make(function: Callable[..., None], name: str, headline: str, example: str) -> Any:
        one = typer.Typer(add_completion=False, rich_markup_mode="rich")
        # The list of commands shows the headline: it would cut off the help in the middle.
        one.command(name, short_help=headline, epilog=f"Example: tamiz reproduce {name} {example}".rstrip())(
            friendly(function)
        )
        return typer.main.get_command(one)

    class ProtocolGroup(TyperGroup):
        """List the registered protocols and the command that writes their pages."""

        def list_commands(self, ctx: Any) -> list[str]:
            from tamiz.paper.protocol import PROTOCOLS

            return [*PROTOCOLS, "page"]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name == "page":
                return make(
                    page, "page", "Write the pages of several runs.", "tamiz-reproduce-microarray --out docs/results.md"
                )
            from tamiz.paper.protocol import PROTOCOLS, load_protocol

            if cmd_name not in PROTOCOLS:
                return None
            protocol = load_protocol(cmd_name)
            return make(make_command(protocol), cmd_name, protocol.headline, protocol.example)

    app = typer.Typer(
        name="reproduce",
        cls=ProtocolGroup,
        help="Run the paper's tables and figures again. A run may be killed and started again: it goes on where it was.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    app.callback()(lambda: None)
    root.add_typer(app, name="reproduce")
