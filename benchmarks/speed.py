"""Speed of the compiled engine, as ratios measured in one run.

    python benchmarks/speed.py [peers] [blas] [scaling] [sparse] [path] [imports] [compile]

Without arguments all parts run. ``peers`` builds an environment of its own for e2efs 1.0.1 and LassoNet 0.0.21 beside the
project's (``.venv-peers``), because they are GPL or pull in much; nothing of theirs is imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import RepeatedStratifiedKFold

from tamiz import E2EFSClassifier, E2EFSPath
from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Fit, Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule
from tamiz.paper import load_dataset
from tamiz.rows.scaling import prepare_table

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers"


def schedule_of(l2: float, batch_size: int, refinement_steps: int) -> Schedule:
    """Return a schedule with the paper's rates of the refinement."""
    return Schedule(
        learning_rate=3e-3, l2=l2, batch_size=batch_size, warmup_steps=0, ramp_steps=1, refinement_l2=l2,
        refinement_steps=refinement_steps, refinement_rates=(3e-3, 6e-4, 1.2e-4),
    )  # fmt: skip


def fit_linear(X: np.ndarray, y: np.ndarray, rule: Rule, schedule: Schedule) -> Fit:
    """Fit with the engine itself, without the estimators around it."""
    return LinearEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)


def best_of(action: Callable[[], object], times: int = 3) -> float:
    """Seconds of the quickest run: what the code costs when the machine leaves it alone."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def show(what: str, value: float, target: str) -> None:
    print(f"  {what:<66}{value:>12.4g}   target {target}", flush=True)


def colon_fold() -> tuple[np.ndarray, np.ndarray]:
    """The training part of the first fold of COLON."""
    data = load_dataset("colon", download=False)
    X, y = np.asarray(data.data), np.asarray(data.target)
    train, _ = next(RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=42).split(X, y))
    return X[train], y[train]


def peer_python() -> Path:
    """The interpreter of the peers' environment, made on first use."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        print("  installing the peers into", PEERS.name, flush=True)
        venv.create(PEERS, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "torch==2.13.0"], check=True)
        subprocess.run([*pip, "lightning>=2.2.5", "scikit-learn", "pandas", "lassonet==0.0.21"], check=True)
        # Its declared dependency "pytorch" is a stub on the registry, so it comes without dependencies.
        subprocess.run([*pip, "--no-deps", "e2efs==1.0.1"], check=True)
    return python


def peers() -> None:
    """One fold of COLON, M = 10, time to an exact selection."""
    X, y = colon_fold()
    model = E2EFSClassifier(10, random_state=0)
    model.fit(X, y)
    normalised = prepare_table(X, "erf").values
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "colon.npz"
        np.savez(path, X=normalised, y=y)
        for name, target in (("lassonet", ">= 300"), ("e2efs", ">= 1000")):
            before = best_of(lambda: model.fit(X, y), 10)
            output = subprocess.run(
                [str(peer_python()), str(HERE / "peers.py"), name, str(path), "10"],
                capture_output=True, text=True, cwd=folder, check=False,
            )  # fmt: skip
            after = best_of(lambda: model.fit(X, y), 10)
            if output.returncode:
                print(f"  {name} could not be run:", output.stderr.strip().splitlines()[-1])
                continue
            record = json.loads(output.stdout.strip().splitlines()[-1])
            ours = (before + after) / 2
            print(f"  {name}: {record['seconds']:.1f} s, kept {record['kept']}; ours {1000 * ours:.1f} ms, kept 10")
            show(f"time of {name} / ours", record["seconds"] / ours, target)


def blas() -> None:
    """GISETTE-sized: the whole fit against bare products in BLAS for the same batches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5000)).astype(np.float32)
    y = np.where(X[:, :20].sum(1) > 0, 1.0, -1.0)[:, None]
    rule = Rule(5000, 50, warmup_steps=500, ramp_steps=20_000)
    schedule = schedule_of(l2=100 / 6000, batch_size=120, refinement_steps=150 * 50)
    fit = fit_linear(X, y, rule, schedule)
    steps = fit.selection.n_steps
    began = time.perf_counter()
    fit_linear(X, y, rule, schedule)
    ours = time.perf_counter() - began
    v, d = rng.normal(size=5000).astype(np.float32), rng.normal(size=120).astype(np.float32)
    batches = [rng.permutation(6000)[:120] for _ in range(50)]

    def bare(n: int) -> None:
        for i in range(n):
            rows = X[batches[i % 50]]
            rows @ v
            rows.T @ d

    sample = 500
    theirs = best_of(lambda: bare(sample)) * steps / sample
    print(
        f"  {steps} steps, the mask closed at {fit.selection.closed_at}: ours {ours:.2f} s, bare products {theirs:.2f} s"
    )
    show("whole fit / bare X[batch] @ v and X[batch].T @ d, same steps", ours / theirs, "<= 2")


def scaling() -> None:
    """Cost of a step against the number of columns, all of them alive."""
    sizes, seconds = [10**3, 10**4, 10**5, 10**6], []
    rng = np.random.default_rng(0)
    for f in sizes:
        X = rng.normal(size=(4, f)).astype(np.float32)
        y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
        steps = max(20, 10**7 // f)

        def run(steps: int, X=X, y=y, f=f) -> None:
            # Warm-up and a ramp so long that nothing dies; the limit ends the run.
            rule = Rule(f, f - 1, ramp_steps=10**9, max_steps=steps, mask_learning_rate=1e-9)
            fit_linear(X, y, rule, schedule_of(l2=0.0, batch_size=2, refinement_steps=0))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the limit ends the run is meant
            run(1)
            # The difference of two runs: memory and the sorting at the end come once a run, not once a step.
            seconds.append((best_of(lambda: run(3 * steps)) - best_of(lambda: run(steps))) / (2 * steps))  # noqa: B023
        print(f"  F = {f:>9,}: {1e6 * seconds[-1]:10.2f} microseconds a step")
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    show("exponent of the cost of a step in F, 10^3 to 10^6", exponent, "about 1")


def resident(field: str) -> int:
    """Bytes of this process now ("VmRSS") or at most so far ("VmHWM"), from Linux.

    Not ``getrusage``: its maximum is handed down from the parent, and a large parent hides all that the child takes.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def sparse_child() -> None:
    """Runs in a process of its own, so that its peak memory is its own."""
    rng = np.random.default_rng(0)
    n, f, k = 10_000, 1_000_000, 100
    indices = rng.integers(0, f, size=n * k, dtype=np.int32)
    data = rng.random(n * k).astype(np.float32)
    X = sp.csr_matrix((data, indices, np.arange(0, n * k + 1, k)), shape=(n, f))
    X.sum_duplicates()
    y = (np.asarray(X[:, :2000].sum(1)).ravel() > np.asarray(X[:, 2000:4000].sum(1)).ravel()).astype(int)
    E2EFSClassifier(2, random_state=0).fit(X[:50, :100], np.arange(50) % 2)  # the code is loaded and compiled now
    before = resident("VmRSS")
    began = time.perf_counter()
    model = E2EFSClassifier(100, random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    used = resident("VmHWM") - before
    matrix = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(json.dumps({"used": used, "matrix": matrix, "seconds": seconds, "kept": int(model.get_support().sum())}))


def sparse() -> None:
    """10,000 x 1,000,000 with 100 entries a row: 100 columns, and the memory it takes."""
    output = subprocess.run([sys.executable, __file__, "sparse-child"], capture_output=True, text=True, check=True)
    record = json.loads(output.stdout.strip().splitlines()[-1])
    vector = 4 * 10**6
    beyond = (record["used"] - 4 * record["matrix"]) / vector
    print(
        f"  kept {record['kept']} in {record['seconds']:.1f} s; peak {record['used'] / 1e6:.0f} MB above the start, "
        f"matrix {record['matrix'] / 1e6:.0f} MB, a vector {vector / 1e6:.0f} MB"
    )
    show("vectors of length F beyond four matrices", beyond, "<= 12")


def path() -> None:
    """Five values of M side by side against one."""
    data = load_dataset("lung", download=False)
    X, y = np.asarray(data.data), np.asarray(data.target)
    numbers = [10, 50, 100, 150, 200]
    one = best_of(lambda: E2EFSClassifier(100, random_state=0).fit(X, y))
    five = best_of(lambda: E2EFSPath(numbers, estimator=E2EFSClassifier(random_state=0), cv=None, n_jobs=2).fit(X, y))
    show("five values of M on two cores / one", five / one, "<= 3")


def imports() -> None:
    """`import tamiz` against what it stands on."""

    def seconds(code: str) -> float:
        return best_of(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    ours, base = seconds("import tamiz"), seconds("import sklearn.linear_model, numba")
    full = seconds("from tamiz import E2EFSClassifier")
    show("import tamiz / import sklearn.linear_model, numba", ours / base, "<= 1.2")
    show("from tamiz import E2EFSClassifier / the same", full / base, "(for information)")


def compile_times() -> None:
    """The first call on a new machine and a later one, each in a fresh process."""
    code = (
        "import time, numpy as np; from tamiz import E2EFSClassifier; X = np.random.default_rng(0).normal(size=(40, 200));"
        "y = np.arange(40) % 2; t = time.perf_counter(); E2EFSClassifier(5, random_state=0).fit(X, y);"
        "print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as folder:
        run = lambda: float(  # noqa: E731
            subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True, text=True, check=True,
            ).stdout
        )  # fmt: skip
        first, later = run(), run()
    print(f"  first call on a new machine {first:.1f} s, first call of a later process {later:.2f} s")


PARTS = {
    "peers": peers,
    "blas": blas,
    "scaling": scaling,
    "sparse": sparse,
    "path": path,
    "imports": imports,
    "compile": compile_times,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["sparse-child"]:
        sparse_child()
    else:
        for part in sys.argv[1:] or PARTS:
            print(f"{part}: {PARTS[part].__doc__}")
            PARTS[part]()
