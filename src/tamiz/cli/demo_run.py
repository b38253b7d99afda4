"""``tamiz demo``: scikit-learn's breast-cancer table, 300 columns of noise added, 8 columns kept."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.cli.console import Talk
from tamiz.cli.estimator import ModelOptions
from tamiz.cli.prepare import TableOptions
from tamiz.cli.select_run import SelectOptions, run_select

N_NOISE, N_KEPT = 300, 8
FOLDER = "tamiz-demo"
_TABLE = "breast-cancer-with-noise.csv"


def write_demo_table(path: Path) -> None:
    """30 measurements of 569 tumours and 300 columns of noise, in shuffled order, with the diagnosis."""
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
    """Where the demo goes: as asked, else ``tamiz-demo`` here, else (nothing can be written here) a new folder."""
    if asked is not None:
        return asked
    here = Path(FOLDER)
    try:
        with tempfile.TemporaryDirectory(dir="."):
            return here
    except OSError:
        return Path(tempfile.mkdtemp(prefix="tamiz-")) / FOLDER


def is_earlier_demo(folder: Path) -> bool:
    """Whether a folder holds an earlier demo and nothing of the user's would be replaced."""
    try:
        record = json.loads((folder / "selected.json").read_text(encoding="utf-8"))
        return Path(record["file"]).name == _TABLE
    except (OSError, ValueError, KeyError, TypeError):
        return False


def run_demo(out: Path | None, force: bool, seed: int, talk: Talk) -> dict[str, Any]:
    """Run the demo; the record is that of ``tamiz select``, and how many of the kept columns are noise."""
    folder = find_folder(out)
    talk.say(
        f"scikit-learn's breast-cancer table: 569 tumours, 30 measurements of each, and {N_NOISE} columns of pure noise "
        f"added. Can {N_KEPT} columns be found that tell malignant from benign?"
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / _TABLE
        write_demo_table(path)
        options = SelectOptions(
            table=TableOptions(file=path, target="diagnosis", seed=seed),
            model=ModelOptions(),
            k=N_KEPT,
            out=folder,
            force=force or is_earlier_demo(folder),
            command=f"tamiz select {_TABLE} --target diagnosis -k {N_KEPT} --seed {seed}",
            copies=(path,),
        )
        record = run_select(options, talk)
    record["n_noise_kept"] = sum(kept["feature"].startswith("noise ") for kept in record["selected"])
    record["n_noise"] = N_NOISE
    return record
