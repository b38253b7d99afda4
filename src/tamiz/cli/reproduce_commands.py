"""The commands of ``tamiz reproduce``: what may be typed. What they do is in :mod:`tamiz.cli.reproduce_run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz.cli import options as opt

Datasets = Annotated[
    str | None,
    typer.Option("--datasets", "-d", help="Separated by commas; see tamiz datasets.", show_default="the table's"),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "-m",
        help="Separated by commas: e2efs, e2efs-soft, e2efs-ranking, fisher, mim, relieff, inffs, ilfs, svm-rfe, lasso, dfs, "
        "sfs, isfs, sfs+dfs, random-forest, mrmr. Rows for random and for all features are added.",
        show_default="the table's",
    ),
]
Jobs = Annotated[
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
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="The folder of the run; finished cells in it are not computed again. Default: tamiz-reproduce-NAME, here.",
        show_default=False,
    ),
]
Repeats = Annotated[int | None, typer.Option("--repeats", help="Repeats of the splits.", min=1, show_default="20")]

app = typer.Typer(
    name="reproduce",
    help="Run the paper's tables and figures again. A run may be killed and started again: it goes on where it was.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _options(name: str, named: dict[str, Any]) -> Any:
    from tamiz.cli.reproduce_run import RunOptions

    return RunOptions(
        out=named["out"] or Path(f"tamiz-reproduce-{name}"),
        jobs=named.get("jobs"),
        dask=named.get("dask"),
        command=shlex.join(["tamiz", *sys.argv[1:]]),
    )


def _run(name: str, wishes: dict[str, Any], named: dict[str, Any]) -> None:
    from tamiz.cli.console import Terminal
    from tamiz.cli.reproduce_run import finish, given, run_protocol

    talk = Terminal(named["quiet"], named["json"])
    options = _options(name, named)
    finish(run_protocol(name.replace("-", "_"), given(**wishes), options, talk), talk)


def microarray(
    datasets: Datasets = None,
    methods: Methods = None,
    learners: Annotated[
        str | None, typer.Option("--learners", help="Separated by commas: naivef, naive, svm.", show_default="all")
    ] = None,
    k: Annotated[
        str | None,
        typer.Option("-k", help="Numbers of features, separated by commas.", show_default="10,50,100,150,200"),
    ] = None,
    repeats: Repeats = None,
    grid: Annotated[
        str, typer.Option("--grid", help="What the SVM chooses from: small, or full (the paper's, ten times the work).")
    ] = "small",
    seed: opt.Seed = 0,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    out: Out = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """The table "Microarray and FS challenge": 3-fold x 20, mean balanced accuracy over five numbers of features."""
    named = dict(locals())
    from tamiz.cli.reproduce_run import numbers, words

    wishes = {
        "datasets": words(datasets),
        "methods": words(methods),
        "learners": words(learners),
        "m_values": numbers(k),
        "n_repeats": repeats,
        "grid": grid,
        "seed": seed,
    }
    _run("microarray", wishes, named)


def three_layer(
    datasets: Datasets = None,
    methods: Methods = None,
    repeats: Repeats = None,
    seed: opt.Seed = 0,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    out: Out = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """The figure with the three-layer network: balanced accuracy against the number of features. Needs torch."""
    named = dict(locals())
    from tamiz.cli.reproduce_run import words

    wishes = {"datasets": words(datasets), "methods": words(methods), "n_repeats": repeats, "seed": seed}
    _run("three-layer", wishes, named)


def ground_truth(
    problems: Annotated[
        str | None,
        typer.Option("--problems", help="Separated by commas: ring, xor, ring+xor, ring+xor+sum.", show_default="all"),
    ] = None,
    methods: Methods = None,
    sizes: Annotated[
        str | None, typer.Option("--sizes", help="Numbers of columns p, separated by commas.", show_default="8 to 2048")
    ] = None,
    folds: Annotated[int | None, typer.Option("--folds", help="Folds of each table.", min=2, show_default="6")] = None,
    seed: opt.Seed = 0,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    out: Out = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """The share of true features found on tables whose truth is known. Needs no data set."""
    named = dict(locals())
    from tamiz.cli.reproduce_run import numbers, words

    wishes = {
        "problems": words(problems),
        "methods": words(methods),
        "sizes": numbers(sizes),
        "n_folds": folds,
        "seed": seed,
    }
    _run("ground-truth", wishes, named)


def madelon(
    methods: Methods = None,
    k: Annotated[int, typer.Option("-k", help="How many features are kept.", min=1)] = 20,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs with other seeds.", min=1, show_default="5")] = None,
    seed: opt.Seed = 0,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    out: Out = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """MADELON with 20 features: the AUROC of a forest on what each method keeps."""
    named = dict(locals())
    from tamiz.cli.reproduce_run import words

    _run("madelon", {"methods": words(methods), "k": k, "n_runs": runs, "seed": seed}, named)


def images(
    datasets: Datasets = None,
    methods: Methods = None,
    configuration: Annotated[
        str,
        typer.Option("--configuration", "-c", help="small (a CNN, two cores) or full (the paper's, meant for a GPU)."),
    ] = "small",
    runs: Annotated[int | None, typer.Option("--runs", help="Runs with other seeds.", min=1, show_default="1")] = None,
    device: Annotated[str, typer.Option("--device", help="Where torch runs: cpu, cuda.")] = "cpu",
    seed: opt.Seed = 0,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    out: Out = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """The tables of MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, with the masks as pictures. Needs torch."""
    named = dict(locals())
    from tamiz.cli.reproduce_run import words

    wishes = {
        "datasets": words(datasets),
        "methods": words(methods),
        "configuration": configuration,
        "n_runs": runs,
        "device": device,
        "seed": seed,
    }
    _run("images", wishes, named)


def surfaces(out: Out = None, json: opt.Json = False, quiet: opt.Quiet = False) -> None:
    """The paper's first figure: the penalties as surfaces over two features."""
    named = dict(locals())
    from tamiz.cli.console import Terminal
    from tamiz.cli.reproduce_run import finish, run_surfaces

    talk = Terminal(quiet, json)
    finish(run_surfaces(_options("surfaces", named), talk), talk)


def page(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("results.md"),
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Put the tables of several runs on one page of Markdown."""
    from tamiz.cli.console import Terminal
    from tamiz.cli.reproduce_run import build_page

    talk = Terminal(quiet, json)
    talk.result(build_page(folders, out, talk))


def add_commands(root: typer.Typer, friendly: Callable[..., Any]) -> None:
    """Put ``reproduce`` and its commands under the command ``tamiz``."""
    # In the list of commands the first words of a help text would be cut off in the middle.
    commands = {
        microarray: ("The table of microarrays.", "microarray -d colon,lung -m e2efs,e2efs-soft,fisher"),
        three_layer: ("The figure with the three-layer network.", "three-layer -d madelon --repeats 2"),
        ground_truth: (
            "True features found, on tables with a known truth.",
            "ground-truth --problems xor --sizes 8,64",
        ),
        madelon: ("MADELON with 20 features.", "madelon"),
        images: ("The tables of the images.", "images -d mnist"),
        surfaces: ("The first figure: the penalties as surfaces.", "surfaces"),
        page: ("Put several runs on one page.", "page tamiz-reproduce-microarray --out docs/results.md"),
    }
    for command, (words, example) in commands.items():
        name = command.__name__.replace("_", "-")
        epilog = f"Example: tamiz reproduce {example}"
        app.command(name, short_help=words, epilog=epilog)(friendly(command))
    root.add_typer(app, name="reproduce")
