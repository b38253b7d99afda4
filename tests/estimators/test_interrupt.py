"""Ctrl-C during a fit."""

from __future__ import annotations

import signal
import subprocess
import sys

INTERRUPTED = """
import threading
import numpy as np
from sklearn.exceptions import NotFittedError
from tamiz import E2EFSClassifier, Training

X = np.random.default_rng(0).normal(size=(80, 30))
y = X[:, 3] > 0
E2EFSClassifier(2, training=Training(ramp_steps=500)).fit(X, y)  # everything is compiled before the interrupt
clf = E2EFSClassifier(2, training=Training(ramp_steps=10**8), verbose=1)
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
assert {name for name in vars(clf) if name.endswith("_")} <= {"n_features_in_"}, vars(clf)
try:
    clf.predict(X)
except NotFittedError:
    print("not fitted")
assert threading.active_count() == 1
clf.set_params(training__ramp_steps=500, verbose=0).fit(X, y)
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
        out, _ = process.communicate(timeout=1200)
    finally:
        process.kill()
    assert out.split("\n")[:3] == ["interrupted", "not fitted", "fitted 2"]
    assert process.returncode == 0
