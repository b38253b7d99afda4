"""The ``tamiz`` command: parse, call, print. What each command does is in the ``*_run`` modules."""

from __future__ import annotations

import functools
import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz._version import __version__
from tamiz.baselines.registry import available
from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_MEMORY, EXIT_USAGE, UserError
from tamiz.cli.reproduce import add_commands as add_reproduce_commands

app = typer.Typer(
    name="tamiz",
    help="End-to-end feature selection: train a model and sieve its inputs down to exactly M, in one run.",
    epilog="Exit codes: 0 done, 2 wrong usage, 3 the table cannot be used, 4 the results cannot be written, "
    "5 not enough memory, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _complain(message: str) -> None:
    from rich.console import Console
    from rich.text import Text

    from tamiz.report.text import clean_text

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    console.print(Text("Error: ", style="bold red").append(clean_text(message), style="default"), soft_wrap=True)


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def friendly(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of the user become one message and an exit code; an interrupt, also SIGTERM, unwinds and cleans up."""

    @functools.wraps(command)
    def run(*arguments: Any, **named: Any) -> None:
        main_thread = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, _stop) if main_thread else None
        show_warning = warnings.showwarning
        try:
            with warnings.catch_warnings():
                # Said aloud where it matters (see the notes of a run); elsewhere it would only tear the tables apart.
                # Filters are not safe in threads, hence both.
                warnings.simplefilter("ignore")
                warnings.showwarning = lambda *_, **__: None
                command(*arguments, **named)
        except UserError as error:
            _complain(str(error))
            raise typer.Exit(error.exit_code) from None
        except MemoryError:
            _complain("There is not enough memory for this table. Leave columns out with --ignore, or take fewer rows.")
            raise typer.Exit(EXIT_MEMORY) from None
        except ImportError as error:
            if "pip install" not in str(error):  # a part of an extra that is missing is the user's to mend, no other
                raise
            _complain(str(error))
            raise typer.Exit(EXIT_USAGE) from None
        except KeyboardInterrupt:
            _complain("Interrupted; nothing was written.")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        finally:
            warnings.showwarning = show_warning
            if main_thread:
                signal.signal(signal.SIGTERM, before)

    return run


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tamiz {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """End-to-end feature selection: train a model and sieve its inputs down to exactly M, in one run."""


def _command_line() -> str:
    return shlex.join(["tamiz", *sys.argv[1:]])


def _default_out(file: Path, prefix: str = "tamiz-") -> Path:
    return Path(prefix + (file.stem or "table"))


def _table_options(named: dict[str, Any]) -> Any:
    """The options about the table and the folds, from what the user typed."""
    from tamiz.cli.prepare import TableOptions

    return TableOptions(
        file=named["file"],
        target=named["target"],
        task=None if named["task"] is None else named["task"].value,
        ignore=tuple(named["ignore"] or ()),
        categorical=tuple(named["categorical"] or ()),
        format=None if named["format"] is None else named["format"].value,
        delimiter=_delimiter(named["delimiter"]),
        header=named["header"],
        max_categories=named["max_categories"],
        n_folds=named["folds"],
        n_repeats=named["repeats"],
        seed=named["seed"],
        n_jobs=named["jobs"],
    )


def _delimiter(text: str | None) -> str | None:
    if text is None:
        return None
    text = {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise UserError(f"--delimiter must be one character (or tab), got {text!r}.", EXIT_USAGE)
    return text


def _finish(record: dict[str, Any], shown: Any, talk: Any, open_report: bool) -> None:
    talk.result(record)
    talk.show(shown)
    if open_report:
        typer.launch(str(Path(record["files"]["report"]).absolute()))


@app.command(
    epilog="Example: tamiz select genes.csv --target tumour -k 20",
    short_help="Keep the k best features of a table, with a report.",
)
@friendly
def select(
    file: opt.File,
    k: Annotated[
        str, typer.Option("-k", metavar="M", help="How many features to keep: a number, or a fraction such as 0.1.")
    ] = "10",
    target: opt.TargetColumn = None,
    task: opt.TaskOption = None,
    variant: opt.VariantOption = opt.Variant.soft,
    network: opt.NetworkOption = opt.Network.linear,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    max_categories: opt.MaxCategories = 50,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 1,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    format: opt.FormatOption = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    out: opt.Out = None,
    force: opt.Force = False,
    spreadsheet_safe: opt.SpreadsheetSafe = True,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Keep the k features of a table that predict its target best, and say how sure that is.

    Writes the kept columns (CSV, JSON), the reduced table, the fitted model and a report; prints the score with all
    features, with k and with k random ones, from cross-validation with the selection inside each fold.
    """
    named = dict(locals())
    from tamiz.cli.console import Talk
    from tamiz.cli.estimator import ModelOptions
    from tamiz.cli.prepare import parse_k
    from tamiz.cli.select_run import SelectOptions, run_select
    from tamiz.cli.show import show_select

    talk = Talk(quiet, json)
    options = SelectOptions(
        table=_table_options(named),
        model=ModelOptions(variant.value, network.value),
        k=parse_k(k),
        out=out or _default_out(file),
        force=force,
        spreadsheet_safe=spreadsheet_safe,
        command=_command_line(),
    )
    record = run_select(options, talk)
    _finish(record, show_select(record), talk, open_report)


@app.command(
    epilog="Example: tamiz compare genes.csv -t tumour -k 5,10,20 -m e2efs-soft,fisher",
    short_help="Compare methods on the same folds of a table.",
)
@friendly
def compare(
    file: opt.File,
    k: Annotated[
        str | None,
        typer.Option(
            "-k", metavar="LIST", help="Numbers of features to keep, separated by commas.", show_default="5,10,20"
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="LIST",
            help=f"Separated by commas: {', '.join(available())}.",
            show_default=False,
        ),
    ] = None,
    target: opt.TargetColumn = None,
    task: opt.TaskOption = None,
    network: opt.NetworkOption = opt.Network.linear,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    max_categories: opt.MaxCategories = 50,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 1,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    format: opt.FormatOption = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    out: opt.Out = None,
    force: opt.Force = False,
    spreadsheet_safe: opt.SpreadsheetSafe = True,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Compare several selection methods on the same folds of one table.

    Writes a report, and the scores as CSV and JSON; prints the score of each method for each k, its time and its rank,
    with marks from Wilcoxon tests.
    """
    named = dict(locals())
    from tamiz.cli.compare import CompareOptions, run_compare
    from tamiz.cli.console import Talk
    from tamiz.cli.show import show_compare

    talk = Talk(quiet, json)
    options = CompareOptions(
        table=_table_options(named),
        k_values=k,
        methods=methods,
        out=out or _default_out(file, "tamiz-compare-"),
        network=network.value,
        force=force,
        spreadsheet_safe=spreadsheet_safe,
        command=_command_line(),
    )
    record = run_compare(options, talk)
    _finish(record, show_compare(record), talk, open_report)


@app.command(
    epilog="Example: tamiz apply tamiz-genes/model.tamiz new-patients.csv",
    short_help="Predict new rows with a model that select wrote.",
)
@friendly
def apply(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model.tamiz that select wrote.", show_default=False)
    ],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with at least the columns the model reads.", show_default=False),
    ],
    format: opt.FormatOption = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    out: opt.Out = None,
    force: opt.Force = False,
    spreadsheet_safe: opt.SpreadsheetSafe = True,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Predict new rows with a model that select wrote, and cut the table down to the columns it reads.

    The model is JSON and arrays: loading one from a stranger runs nothing.
    """
    from tamiz.cli.apply_run import ApplyOptions, run_apply
    from tamiz.cli.console import Talk
    from tamiz.cli.show import show_apply

    talk = Talk(quiet, json)
    options = ApplyOptions(
        model=model,
        file=file,
        out=out or _default_out(file, "tamiz-apply-"),
        format=None if format is None else format.value,
        delimiter=_delimiter(delimiter),
        header=header,
        force=force,
        spreadsheet_safe=spreadsheet_safe,
    )
    record = run_apply(options, talk)
    talk.result(record)
    talk.show(show_apply(record))


@app.command(epilog="Example: tamiz demo --open", short_help="Show it at work; needs no file.")
@friendly
def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder. Default: tamiz-demo, here.", show_default=False
        ),
    ] = None,
    force: opt.Force = False,
    seed: opt.Seed = 0,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Show it at work: 30 measurements of tumours hidden among 300 columns of noise, 8 columns kept.

    Needs no file, no network and no torch.
    """
    from rich.text import Text

    from tamiz.cli.console import Talk
    from tamiz.cli.demo_run import run_demo
    from tamiz.cli.show import show_select

    talk = Talk(quiet, json)
    record = run_demo(out, force, seed, talk)
    _finish(record, show_select(record), talk, open_report)
    kept, noise = record["n_noise_kept"], record["n_noise"]
    sentence = f"Of the {record['k']} columns kept, {kept} are noise: {noise - kept} of {noise} noise columns went."
    talk.show(Text(sentence, style="bold green" if kept == 0 else "bold"))


@app.command(epilog="Example: tamiz datasets --json", short_help="List the datasets of the paper.")
@friendly
def datasets(json: opt.Json = False, quiet: opt.Quiet = False) -> None:
    """List the datasets of the paper: which are here, and where a download would come from."""
    from rich.text import Text

    from tamiz.cli.console import Talk
    from tamiz.cli.show import show_datasets
    from tamiz.datasets import describe, find_data_home

    talk = Talk(quiet, json)
    listings = describe()
    talk.result({"data_home": str(find_data_home()), "datasets": listings})
    talk.show(show_datasets(listings), Text(f"Data home: {find_data_home()} (set TAMIZ_DATA_HOME to change it)"))


add_reproduce_commands(app, friendly)
# Further commands are registered here: `app.command()(friendly(function))`, or `app.add_typer(...)` for a group.


def main() -> None:
    """The entry point. After an interrupt the process ends at once, whatever its threads are doing."""
    alone = threading.main_thread()
    try:
        app(prog_name="tamiz")
    except SystemExit as end:
        waits = any(thread is not alone and not thread.daemon for thread in threading.enumerate())
        if end.code == EXIT_INTERRUPTED and waits:  # all is cleaned up, but Python would wait for threads that compile
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
