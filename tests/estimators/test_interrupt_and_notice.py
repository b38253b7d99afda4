"""What a terminal sees: Ctrl-C, and the word about compiling."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys

from tamiz.estimators._compile_notice import announce_compilation

INTERRUPTED = """
import threading
import numpy as np
from sklearn.exceptions import NotFittedError
from tamiz import E2EFSClassifier

X = np.random.default_rng(0).normal(size=(80, 30))
y = X[:, 3] > 0
clf = E2EFSClassifier(2, ramp_steps=10**8, verbose=1)
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
assert not [name for name in vars(clf) if name.endswith("_")], vars(clf)
try:
    clf.predict(X)
except NotFittedError:
    print("not fitted")
assert threading.active_count() == 1
clf.set_params(ramp_steps=500, verbose=0).fit(X, y)
print("fitted", clf.get_support().sum())
"""


def test_ctrl_c_leaves_an_estimator_that_is_not_fitted_and_a_process_that_goes_on():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # The bar's first line says that the engine is at work.
        shown = ""
        for line in process.stderr:
            shown += line
            if "selecting 2 of 30" in line:
                break
        assert "selecting 2 of 30" in shown
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert out.split("\n")[:3] == ["interrupted", "not fitted", "fitted 2"]
    assert process.returncode == 0


def load(path, name):
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def test_a_compilation_is_announced_and_a_cached_one_is_not(tmp_path, capsys):
    source = tmp_path / "small_kernel.py"
    source.write_text("from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n")
    first = load(source, "small_kernel")
    announce_compilation(first.twice)
    announce_compilation(first.twice)
    assert first.twice(3) == 6
    assert capsys.readouterr().err.count("compiling the engine for this machine") == 1
    assert first.twice(4) == 8
    again = load(source, "small_kernel")
    announce_compilation(again.twice)
    assert again.twice(3) == 6
    assert sum(again.twice.stats.cache_hits.values()) == 1
    assert capsys.readouterr().err == ""
