"""Run inside the environment of the peers (see speed.py): one selection of a peer on a saved table, its seconds as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings

import numpy as np


def e2efs_package(X: np.ndarray, y: np.ndarray, m: int) -> tuple[float, int]:
    """The authors' package, called as its description shows, until its selection has ended."""
    import e2efs

    model = e2efs.E2EFSSoft(n_features_to_select=m)
    began = time.perf_counter()
    model.fit(X, y, validation_data=(X, y), batch_size=2, max_epochs=2000)
    seconds = time.perf_counter() - began
    return seconds, int((np.asarray(model.get_mask()) > 0).sum())


def lassonet(X: np.ndarray, y: np.ndarray, m: int) -> tuple[float, int]:
    """LassoNet's path at its defaults; the number of features of the nearest point on the path."""
    from lassonet import LassoNetClassifier

    model = LassoNetClassifier(verbose=0)
    began = time.perf_counter()
    path = model.path(X, y)
    seconds = time.perf_counter() - began
    return seconds, min((int(point.selected.sum()) for point in path), key=lambda n: abs(n - m))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    name, path, m = sys.argv[1], sys.argv[2], int(sys.argv[3])
    table = np.load(path)
    seconds, kept = {"e2efs": e2efs_package, "lassonet": lassonet}[name](table["X"], table["y"], m)
    print("\n" + json.dumps({"seconds": seconds, "kept": kept}))
