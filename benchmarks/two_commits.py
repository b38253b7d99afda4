"""Time two commits side by side in one run: a linear fit, a step with a mask, and ``tamiz select``.

python benchmarks/two_commits.py OLD [NEW] [--rounds 5]

Each commit is checked out into a temporary worktree; processes of both take turns, so that a busy machine slows both. The
best round of each counts, in processor time. Only names are used that both commits have.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = {
    "linear fit, 62 x 2,000, M = 20": """
import numpy as np
from tamiz import E2EFSClassifier
rng = np.random.default_rng(0)
y = np.arange(62) % 2
X = rng.normal(size=(62, 2000)) + np.outer(y, np.arange(2000) < 20)
job, repeats = (lambda: E2EFSClassifier(20, l2=1.6, random_state=0).fit(X, y)), 5
""",
    "linear fit, 5,000 x 200, M = 10": """
import numpy as np
from tamiz import E2EFSClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 200))
y = (X[:, :10].sum(axis=1) + rng.normal(size=5000) > 0).astype(int)
job, repeats = (lambda: E2EFSClassifier(10, l2=0.02, random_state=0).fit(X, y)), 5
""",
    "200 steps with a mask, F = 5,000": """
import torch
from tamiz.torch import FeatureMask
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(128, 5000), torch.randint(0, 2, (128,))
def job():
    mask = FeatureMask(5000, n_features_to_select=50)
    model = torch.nn.Sequential(mask, torch.nn.Linear(5000, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    mask.attach(optimizer, warmup_steps=20, ramp_steps=10_000)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
repeats = 2
""",
    "tamiz select, 62 x 2,000, -k 20": """
import os, subprocess, sys, tempfile
import numpy as np
rng = np.random.default_rng(0)
y = np.arange(62) % 2
X = rng.normal(size=(62, 2000)) + np.outer(y, np.arange(2000) < 20)
os.chdir(tempfile.mkdtemp())
header = ",".join([*(f"g{i}" for i in range(2000)), "y"])
np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.5g")
run = [sys.executable, "-c", "from tamiz.cli.main import main; main()"]
run += ["select", "t.csv", "-t", "y", "-k", "20", "--permutations", "20"]
def job():
    subprocess.run(run, check=True, capture_output=True)
repeats = 2
""",
}
TIMED = """
import resource, sys, time
sys.argv = ["tamiz"]
def used():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
job()
times = []
for _ in range(repeats):
    start = used()
    job()
    times.append(used() - start)
print(min(times))
"""


def measure(tree: Path, code: str) -> float:
    """Run a job in a process of its own and return the best time of its repeats."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code + TIMED], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{tree.name}: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Check out both commits, let them take turns, print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="jobs whose name holds this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trees = {name: Path(folder) / name for name in ("old", "new")}
        try:
            for name, tree in trees.items():
                subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, getattr(options, name)], check=True)
            for title, code in JOBS.items():
                if options.only not in title:
                    continue
                best = dict.fromkeys(trees, float("inf"))
                for _ in range(options.rounds):
                    for name, tree in trees.items():
                        best[name] = min(best[name], measure(tree, code))
                old, new = best["old"], best["new"]
                print(f"{title:36} old {old:8.4f} s  new {new:8.4f} s  new / old {new / old:.3f}", flush=True)
        finally:
            for tree in trees.values():
                subprocess.run(["git", "worktree", "remove", "--force", tree], check=False, capture_output=True)


if __name__ == "__main__":
    main()
