"""``tamiz demo``: scikit-learn's breast-cancer table, 300 columns of noise added, 8 columns kept."""

from __future__ import annotations

import csv
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamiz.cli.command import add_command, show_results
from tamiz.cli.options import Force, Open, Seed, TerminalOptions
from tamiz.cli.select import SelectOptions

if TYPE_CHECKING:
    from tamiz.cli.console import Terminal

N_NOISE, N_KEPT = 300, 8
FOLDER = "tamiz-demo"
_TABLE = "breast-cancer-with-noise.csv"


@dataclass(frozen=True, kw_only=True)
class DemoOptions(TerminalOptions):
    """Options of ``tamiz demo``."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder. Default: tamiz-demo, here.", show_default=False
        ),
    ] = None
    force: Force = False
    seed: Seed = 0
    open_report: Open = False


def demo(options: DemoOptions) -> None:
    """Show it at work: 30 measurements of tumours hidden among 300 columns of noise, 8 columns kept.

    Needs no file, no network and no torch.
    """
    from rich.text import Text

    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_select

    terminal = Terminal(options.quiet, options.json)
    record = run_demo(options, terminal)
    show_results(record, show_select(record), terminal, options.open_report)
    kept, noise = record["n_noise_kept"], record["n_noise"]
    sentence = f"Of the {record['k']} columns kept, {kept} are noise: {noise - kept} of {noise} noise columns went."
    terminal.show(Text(sentence, style="bold green" if kept == 0 else "bold"))


def write_demo_table(path: Path) -> None:
    """Write 30 measurements of 569 tumours and 300 columns of noise, in shuffled order, with the diagnosis."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(data.data.shape[0], N_NOISE))
    columns = np.hstack([data.data, noise])
    names = [*map(str, data.feature_names), *(f"noise {i}" for i in range(1, N_NOISE + 1))]
    order = generator.permutation(len(names))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(names[i] for i in order), "diagnosis"])
        for row, label in zip(columns[:, order], data.target, strict=True):
            writer.writerow([*(f"{value:.6g}" for value in row), data.target_names[label]])


def find_folder(asked: Path | None) -> Path:
    """Return the folder of the demo: as asked, else ``tamiz-demo`` here, else (if here is read-only) a new one."""
    if asked is not None:
        return asked
    here = Path(FOLDER)
    try:
        with tempfile.TemporaryDirectory(dir="."):
            return here
    except OSError:
        return Path(tempfile.mkdtemp(prefix="tamiz-")) / FOLDER


def is_earlier_demo(folder: Path) -> bool:
    """Check whether a folder holds an earlier demo, so that nothing of the user's would be replaced."""
    try:
        record = json.loads((folder / "selected.json").read_text(encoding="utf-8"))
        return Path(record["file"]).name == _TABLE
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def run_demo(options: DemoOptions, terminal: Terminal) -> dict[str, Any]:
    """Run the demo; return the record of ``tamiz select`` and how many of the kept columns are noise."""
    from tamiz.cli.select_run import run_select

    folder = find_folder(options.out)
    terminal.say(
        f"scikit-learn's breast-cancer table: 569 tumours, 30 measurements of each, and {N_NOISE} columns of pure noise "
        f"added. Can {N_KEPT} columns be found that tell malignant from benign?"
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / _TABLE
        write_demo_table(path)
        select_options = SelectOptions(
            file=path,
            target=["diagnosis"],
            k=str(N_KEPT),
            seed=options.seed,
            out=folder,
            force=options.force or is_earlier_demo(folder),
        )
        command = f"tamiz select {_TABLE} --target diagnosis -k {N_KEPT} --seed {options.seed}"
        record = run_select(select_options, terminal, command=command, copies=(path,))
    record["n_noise_kept"] = sum(kept["feature"].startswith("noise ") for kept in record["selected"])
    record["n_noise"] = N_NOISE
    return record


def register_demo(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        demo,
        DemoOptions,
        first=("out", "force", "seed"),
        epilog="Example: tamiz demo --open",
        short_help="Show it at work; needs no file.",
    )
