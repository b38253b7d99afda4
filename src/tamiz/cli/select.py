"""``tamiz select``: keep the columns of a table that predict its target best. ``tamiz demo`` shows it at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamiz.cli import options as opt

if TYPE_CHECKING:
    from tamiz.cli.console import Terminal
    from tamiz.study import Study

N_NOISE, N_KEPT = 300, 8
DEMO_TABLE = "breast-cancer-with-noise.csv"


def select_command(
    file: opt.TablePath,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    k: opt.Number = None,
    fdr: opt.Fdr = None,
    keep: opt.Keep = None,
    drop: opt.Drop = None,
    network: opt.Network = "auto",
    missing: opt.MissingOption = opt.Missing.median,
    training: opt.TrainingOption = None,
    seed: opt.Seed = 0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 1,
    groups: opt.Groups = None,
    time: opt.Time = None,
    weights: opt.Weights = None,
    scoring: opt.Scoring = None,
    test: opt.Test = None,
    permutations: opt.Permutations = None,
    out: opt.Out = None,
    force: opt.Force = False,
    report: opt.Report = True,
    jobs: opt.Jobs = None,
    max_memory: opt.MaxMemory = None,
    scheduler: opt.Scheduler = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Keep the k columns that predict the target best, with a cross-validated score and a report.

    Without -k or --fdr the number is chosen on inner folds. Writes the kept columns
    (CSV, JSON), the reduced table, the fitted model and a report; prints alerts,
    the score of the kept, of all and of random columns, and a verdict.
    """
    arguments: dict[str, Any] = {"k": opt.parse_k(k) if k is not None else "auto", "keep": keep, "drop": drop}
    opt.check_paths(file, test)
    arguments |= {"network": opt.pick_name(network, opt.NETWORKS, "network"), "missing": str(missing), "fdr": fdr}
    arguments |= opt.parse_reading(read, ignore, categorical) | opt.parse_training(training)
    arguments |= {"target": target[0] if target and len(target) == 1 else target, "task": task and str(task)}
    arguments |= {"groups": groups, "time": time, "weights": weights, "scoring": scoring, "cv": folds, "test": test}
    arguments |= {"repeats": repeats, "permutations": permutations, "random_state": seed, "n_jobs": jobs}
    arguments |= {"max_memory": opt.parse_size(max_memory), "scheduler": scheduler}

    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_select

    with Terminal(quiet, json) as terminal:
        with terminal.results(out, file, "tamiz-", force) as folder:
            study = run_study(file, arguments, folder, terminal)
        if report:
            study.report(terminal.write("report", "report.html"), command=terminal.command)
        terminal.finish(study.to_dict(), lambda record: show_select(record, terminal.notes), open_report)


def run_study(file: Path, arguments: dict[str, Any], folder: Path, terminal: Terminal) -> Study:
    """Run a study of a file and write its results."""
    from tamiz.study import select

    study = select(file, report=terminal.say, progress=terminal.progress, **arguments)
    for kind, name in study.save(folder).items():
        terminal.write(kind, name)
    return study


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

    with Terminal(quiet, json) as terminal:
        terminal.say(
            f"scikit-learn's breast-cancer table: 569 tumours, 30 measurements of each, and {N_NOISE} columns of pure noise "
            f"added. Can {N_KEPT} columns be found that tell malignant from benign?"
        )
        with terminal.results(out, Path("demo.csv"), "tamiz-", force) as folder:
            table = folder / DEMO_TABLE
            write_demo_table(table)
            arguments = {"target": "diagnosis", "k": N_KEPT, "random_state": seed}
            command = f"tamiz select {DEMO_TABLE} --target diagnosis -k {N_KEPT} --seed {seed}"
            study = run_study(table, arguments, folder, terminal)
        study.report(terminal.write("report", "report.html"), command=command)
        record = study.to_dict()
        noise = sum(kept["column"].startswith("noise ") for kept in record["selected"])
        record |= {"file": DEMO_TABLE, "n_noise": N_NOISE, "n_noise_kept": noise}
        said = f"Of the {N_KEPT} columns kept, {noise} are noise: {N_NOISE - noise} of {N_NOISE} noise columns went."
        shown = Text(said, style="bold green" if noise == 0 else "bold")
        terminal.finish(record, lambda record: Group(show_select(record, terminal.notes), shown), open_report)


def write_demo_table(path: Path) -> None:
    """Write 30 measurements of 569 tumours and 300 columns of noise, in shuffled order, with the diagnosis."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    generator = np.random.default_rng(0)
    columns = np.hstack([data.data, generator.normal(size=(data.data.shape[0], N_NOISE))])
    names = [*map(str, data.feature_names), *(f"noise {i}" for i in range(1, N_NOISE + 1))]
    order = generator.permutation(len(names))
    cells = np.column_stack([np.char.mod("%.6g", columns[:, order]), data.target_names[data.target]])
    header = ",".join([*(names[i] for i in order), "diagnosis"])
    np.savetxt(path, cells, fmt="%s", delimiter=",", header=header, comments="")
