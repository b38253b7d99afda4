"""Keep compiled code apart for each state of the sources: numba checks the file of a function, not the files of its callees."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Fits whose kernels many tests need, in two parts that take about as long to compile.
WARM_UP = (
    """
for sparse in (False, True):
    warm_up(make_candidates(["e2efs-soft", "fisher", "relieff", "mim"], "classification"), "classification", sparse=sparse)
    warm_up(make_candidates(["e2efs-soft", "relieff", "mrmr"], "regression"), "regression", sparse=sparse)
""",
    """
for network in ("mlp", "pairs", "additive"):
    warm_up(make_candidates(["e2efs-soft"], "classification", network), "classification")
warm_up(make_candidates(["pair-search"], "classification"), "classification")
""",
)


def digest_of_compiled_sources() -> str:
    """Return a digest of every module whose text may end up in compiled code."""
    package = ROOT / "src" / "tamiz"
    texts = {path.relative_to(package): path.read_bytes() for path in sorted(package.rglob("*.py"))}
    return hashlib.sha256(
        b"".join(text for path, text in texts.items() if path.parts[0] in ("core", "engines") or b"numba" in text)
    ).hexdigest()[:16]


def pytest_configure(config):
    """Choose the folder before numba is loaded; subprocesses inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores SIGINT for its background jobs, and children inherit that: tests of interrupts would wait for ever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = ROOT / ".pytest_cache" / "numba"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / digest_of_compiled_sources()))
    for old in folder.glob("*"):
        if str(old) != os.environ["NUMBA_CACHE_DIR"]:
            shutil.rmtree(old, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Compile before the workers of a whole run start: each would compile the same at the same time."""
    config = session.config
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and config.getoption("numprocesses", None)
    done = Path(os.environ["NUMBA_CACHE_DIR"]) / "warm"
    if hasattr(config, "workerinput") or not whole or done.exists():
        return
    imports = "from tamiz.evaluation.comparison import make_candidates, warm_up\n"
    parts = [subprocess.Popen([sys.executable, "-c", imports + code], stderr=subprocess.DEVNULL) for code in WARM_UP]
    codes = [part.wait() for part in parts]
    if not any(codes):
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()
