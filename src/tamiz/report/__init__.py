"""Reports: a study, a comparison or a search for pairs as one HTML file, and the same pictures with matplotlib."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tamiz._utils.files import write_atomic

__all__ = ["report"]


def report(
    source: Any, X: Any = None, y: Any = None, *, path: str | os.PathLike[str] = "report.html", **details: Any
) -> Path:
    """Write a report as one HTML file that needs nothing else.

    Parameters
    ----------
    source : Study, fitted estimator or pipeline, Selection, Comparison or PairSearch
        What to show.
    X, y : table and target, default=None
        What an estimator was fitted on. With them the page shows distributions and correlations.
    path : path-like, default="report.html"
        Where to write; a file of that name is replaced.
    **details
        Options of :func:`tamiz.report.page.render`: ``cv``, ``image_shape``, ``spreadsheet_safe``, and what the page says about
        the run.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from tamiz import Selection
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]), feature_names=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = report(selection, path=Path(folder) / "report.html")
    ...     written.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file, such as {target / 'report.html'}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write the report to; create it first.")
    from tamiz.report.page import render

    write_atomic(target, render(source, X, y, **details))
    return target
