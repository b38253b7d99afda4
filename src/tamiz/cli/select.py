"""``tamiz select``: keep the columns of a table that predict its target best. ``tamiz demo`` shows it at work."""

from __future__ import annotations

import csv
import json as json_module
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import KEEPING, MODEL, OUTPUT, SCORING, parse_assignments, parse_k

if TYPE_CHECKING:
    from tamiz.cli.console import Terminal

#: Files that the command writes.
RESULTS = ("report.html", "selected.csv", "selected.json", "reduced.*", "model.tamiz")
N_NOISE, N_KEPT = 300, 8
DEMO_TABLE = "breast-cancer-with-noise.csv"

Number = Annotated[
    str | None,
    opt.option(
        "-k",
        metavar="M",
        panel=KEEPING,
        help="Columns to keep: a number, a fraction such as 0.1, or auto: the fewest that score as well as the best "
        "number, within one standard error on inner folds.",
        show_default="auto",
    ),
]
Columns = list[str] | None


def select_command(
    file: opt.TablePath,
    k: Number = None,
    keep: Annotated[
        Columns, opt.option("--keep", metavar="COLUMN", panel=KEEPING, help="Column that is always kept. Repeatable.")
    ] = None,
    drop: Annotated[
        Columns, opt.option("--drop", metavar="COLUMN", panel=KEEPING, help="Column that is never kept. Repeatable.")
    ] = None,
    costs: Annotated[
        Columns,
        opt.option(
            "--costs",
            metavar="NAME=COST",
            panel=KEEPING,
            help="Cost of a column, or a CSV file of names and costs; others cost 1. Repeatable.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        opt.option("--budget", metavar="SUM", panel=KEEPING, help="Instead of -k: what the kept columns may cost."),
    ] = None,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    network: opt.Network = "linear",
    variant: opt.VariantName = "soft",
    loss: Annotated[
        str, opt.option("--loss", metavar="NAME", panel=MODEL, help="Loss of the model.", show_default=True)
    ] = "auto",
    class_weight: Annotated[
        str,
        opt.option(
            *("--class-weight",),
            metavar="NAME",
            panel=MODEL,
            show_default=True,
            help="balanced: each class counts the same.",
        ),
    ] = "balanced",
    missing: Annotated[
        opt.Missing,
        opt.option(
            "--missing", panel=MODEL, show_default=True, help="Missing numbers: the median, or also an indicator."
        ),
    ] = opt.Missing.median,
    training: Annotated[
        Columns,
        opt.option(
            *("--training",),
            metavar="NAME=VALUE",
            panel=MODEL,
            help="Parameter of Training: ramp_steps=4000. Repeatable.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 1,
    groups: opt.Groups = None,
    time: opt.Time = None,
    weights: opt.Weights = None,
    scoring: opt.Scoring = None,
    test: Annotated[
        Path | None,
        opt.option("--test", metavar="FILE", panel=SCORING, help="Further rows, on which the final model is scored."),
    ] = None,
    permutations: Annotated[
        int | None,
        opt.option(
            *("--permutations",),
            metavar="N",
            panel=SCORING,
            min=0,
            help="Shuffled targets to compare with; 0 for none.",
            show_default="up to 99, while fits are quick",
        ),
    ] = None,
    out: opt.Out = None,
    force: opt.Force = False,
    report: Annotated[
        bool, opt.option("--report/--no-report", panel=OUTPUT, show_default=True, help="Whether to write report.html.")
    ] = True,
    jobs: opt.Jobs = None,
    max_memory: Annotated[
        str | None,
        opt.option(
            *("--max-memory",),
            metavar="SIZE",
            panel=OUTPUT,
            show_default="a quarter of what is free",
            help="Memory to use, such as 500MB or 4GB; a larger table is read in passes.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        opt.option(
            *("--scheduler",),
            metavar="ADDRESS",
            panel=OUTPUT,
            help="Dask scheduler whose workers read the rows and run the folds: tcp://host:8786.",
        ),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Keep the k columns that predict the target best, with a cross-validated score and a report.

    Without -k the number is chosen on inner folds. Writes the kept columns (CSV, JSON), the reduced table, the fitted model and
    a report; prints alerts, the score of the kept, of all and of random columns, and a verdict.
    """
    number = parse_k(k) if k is not None else "auto"
    if class_weight not in ("balanced", "none"):
        raise CommandError(f"--class-weight must be balanced or none, got {class_weight!r}.", EXIT_USAGE)
    if budget is not None and k is not None:
        raise CommandError("--budget takes the place of -k: give one of them.", EXIT_USAGE)
    if costs and budget is None:
        raise CommandError("--costs need a --budget: say what the kept columns may cost together.", EXIT_USAGE)
    opt.check_network(network)
    opt.check_paths(file, test)
    arguments: dict[str, Any] = {
        **opt.reading_options(read, ignore, categorical),
        "k": number,
        "target": target[0] if target and len(target) == 1 else target,
        "task": None if task is None else str(task),
        "network": network,
        "variant": variant,
        "loss": loss,
        "class_weight": None if class_weight == "none" else class_weight,
        "missing": str(missing),
        "keep": keep,
        "drop": drop,
        "budget": budget,
        "costs": _read_costs(costs),
        "training": _make_training(training),
        "groups": groups,
        "time": time,
        "weights": weights,
        "scoring": scoring,
        "cv": folds,
        "repeats": repeats,
        "permutations": permutations,
        "test": test,
        "random_state": seed,
        "n_jobs": jobs,
        "max_memory": opt.parse_size(max_memory),
        "scheduler": scheduler,
    }

    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_select

    with Terminal(quiet, json) as terminal:
        record = run_select(file, arguments, out or opt.default_folder(file, "tamiz-"), force, terminal, report=report)
        terminal.finish(record, show_select(record), open_report and report)


def run_select(
    file: Path,
    arguments: dict[str, Any],
    out: Path,
    force: bool,
    terminal: Terminal,
    *,
    command: str | None = None,
    copies: Sequence[Path] = (),
    report: bool = True,
) -> dict[str, Any]:
    """Run a study of a file and write its results; return the record for JSON, with the files that were written."""
    from tamiz.cli.console import command_line
    from tamiz.cli.output import free_folder, output_folder
    from tamiz.study import select as run_study

    out = free_folder(out, force, terminal.say)
    with output_folder(out, force, RESULTS) as folder:
        study = run_study(file, report=terminal.say, progress=terminal.progress, **arguments)
        # The results are written before the report, which takes longest.
        files = study.save(folder)
        if report:
            study.report(folder / "report.html", command=command or command_line())
            files["report"] = "report.html"
        for path in copies:
            shutil.copy(path, folder / path.name)
    return {**study.to_dict(), "files": {name: str(out / file) for name, file in files.items()}}


def _make_training(texts: list[str] | None) -> Any:
    given = parse_assignments(texts, "--training")
    if not given:
        return None
    from tamiz.estimators.training import Training

    try:
        return Training(**given)
    except TypeError as error:
        raise CommandError(f"--training: {error}", EXIT_USAGE) from None


def _read_costs(texts: list[str] | None) -> dict[str, float] | None:
    """Read costs, each ``NAME=COST`` or a CSV file of names and costs."""
    costs: dict[str, float] = {}
    for text in texts or ():
        pairs: list[Sequence[str]] = [text.rpartition("=")[::2]]
        if "=" not in text:
            try:
                with open(text, encoding="utf-8-sig", newline="") as lines:
                    pairs = [row for row in csv.reader(lines) if row]
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(
                    f"--costs takes NAME=COST or a CSV file; {text!r} cannot be read: {error}.", EXIT_USAGE
                ) from None
        for place, pair in enumerate(pairs):
            try:
                name, value = pair
                costs[name.strip()] = float(value)
            except ValueError:
                if place == 0 and "=" not in text:  # a header
                    continue
                raise CommandError(
                    f"--costs takes NAME=COST, such as age=2.5; got {','.join(pair)!r}.", EXIT_USAGE
                ) from None
    return costs or None


def demo(
    out: opt.Out = None,
    force: opt.Force = False,
    seed: opt.Seed = 0,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Show it at work: 30 measurements of tumours hidden among 300 columns of noise, 8 columns kept.

    Needs no file, no network and no torch.
    """
    from rich.console import Group
    from rich.text import Text

    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_select

    with Terminal(quiet, json) as terminal, tempfile.TemporaryDirectory() as scratch:
        terminal.say(
            f"scikit-learn's breast-cancer table: 569 tumours, 30 measurements of each, and {N_NOISE} columns of pure noise "
            f"added. Can {N_KEPT} columns be found that tell malignant from benign?"
        )
        folder, path = _demo_folder(out), Path(scratch) / DEMO_TABLE
        write_demo_table(path)
        record = run_select(
            path,
            {"target": "diagnosis", "k": N_KEPT, "random_state": seed},
            folder,
            force or _is_earlier_demo(folder),
            terminal,
            command=f"tamiz select {DEMO_TABLE} --target diagnosis -k {N_KEPT} --seed {seed}",
            copies=(path,),
        )
        noise = sum(kept["column"].startswith("noise ") for kept in record["selected"])
        record |= {"n_noise": N_NOISE, "n_noise_kept": noise}
        sentence = (
            f"Of the {record['k']} columns kept, {noise} are noise: {N_NOISE - noise} of {N_NOISE} noise columns went."
        )
        shown = Text(sentence, style="bold green" if noise == 0 else "bold")
        terminal.finish(record, Group(show_select(record), shown), open_report)


def write_demo_table(path: Path) -> None:
    """Write 30 measurements of 569 tumours and 300 columns of noise, in shuffled order, with the diagnosis."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    generator = np.random.default_rng(0)
    columns = np.hstack([data.data, generator.normal(size=(data.data.shape[0], N_NOISE))])
    names = [*map(str, data.feature_names), *(f"noise {i}" for i in range(1, N_NOISE + 1))]
    order = generator.permutation(len(names))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(names[i] for i in order), "diagnosis"])
        for row, label in zip(columns[:, order], data.target, strict=True):
            writer.writerow([*(f"{value:.6g}" for value in row), data.target_names[label]])


def _demo_folder(asked: Path | None) -> Path:
    """Return the folder of the demo: as asked, else ``tamiz-demo`` here, else (if here is read-only) a new one."""
    if asked is not None:
        return asked
    try:
        with tempfile.TemporaryDirectory(dir="."):
            return Path("tamiz-demo")
    except OSError:
        return Path(tempfile.mkdtemp(prefix="tamiz-")) / "tamiz-demo"


def _is_earlier_demo(folder: Path) -> bool:
    """Check whether a folder holds an earlier demo, so that nothing of the user's would be replaced."""
    try:
        record = json_module.loads((folder / "selected.json").read_text(encoding="utf-8"))
        return Path(record["file"]).name == DEMO_TABLE
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
