"""Count what a walk through the program passes: modules, functions, calls and the depth of the stack.

    python benchmarks/walk.py            # a linear fit and `tamiz select`
    python benchmarks/walk.py -v         # and list the functions

The second run of each is traced, so that imports and compilation do not count. Comprehensions and lambdas are not functions.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import tamiz

ROOT = str(Path(tamiz.__file__).parent)


def trace(run: Callable[[], Any]) -> tuple[Counter[tuple[str, str]], int]:
    """Count the calls of each function of tamiz during a run, and the depth of its stack."""
    calls: Counter[tuple[str, str]] = Counter()
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or code.co_name.startswith("<"):
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            calls[code.co_filename[len(ROOT) + 1 :], code.co_qualname] += 1
        elif event == "return":
            depth -= 1

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls, deepest


def linear_fit() -> None:
    """Fit a small table."""
    X = np.random.default_rng(0).normal(size=(100, 60))
    tamiz.E2EFSClassifier(5, random_state=0).fit(X, X[:, 3] > 0)


def select_command() -> None:
    """Run ``tamiz select`` on a small file."""
    from typer.testing import CliRunner

    from tamiz.cli.main import app

    X = np.random.default_rng(0).normal(size=(80, 30))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(f"c{i}" for i in range(30)), "y"])
            writer.writerows([*row, "yes" if row[3] > 0 else "no"] for row in X.round(4).tolist())
        options = ["select", str(file), "--target", "y", "-k", "3", "--out", folder + "/out", "--jobs", "1"]
        result = CliRunner().invoke(app, options)
        assert result.exit_code == 0, result.output


def main() -> None:
    """Print one line for each walk."""
    warnings.simplefilter("ignore")
    print("| walk | modules | functions | calls | depth |")
    print("|---|---:|---:|---:|---:|")
    for name, run in (("linear fit", linear_fit), ("tamiz select", select_command)):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            run()
            calls, depth = trace(run)
        modules = {module for module, _ in calls}
        print(f"| {name} | {len(modules)} | {len(calls)} | {calls.total()} | {depth} |")
        if "-v" in sys.argv:
            for (module, function), count in sorted(calls.items()):
                print(f"    {module} {function} {count}")


if __name__ == "__main__":
    main()
