"""Splits of the paper's tables: three stratified folds, repeated twenty times, and the parts of a data set in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.reproduce.sources import load_checked, nonzero_columns

N_FOLDS, N_REPEATS, SPLIT_SEED = 3, 20, 42
#: Data sets of which the paper splits the training rows of the challenge only: its table counts 3,153 of GINA.
TRAINING_ROWS_ONLY = ("gina", "gina_rebuilt")


def split_rows(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of one split; later repeats do not change earlier ones.

    Examples
    --------
    >>> train, test = split_rows(np.array([0, 0, 0, 1, 1, 1]), 4)
    >>> train.size, test.size
    (4, 2)
    """
    from sklearn.model_selection import RepeatedStratifiedKFold

    splitter = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=split // N_FOLDS + 1, random_state=SPLIT_SEED)
    return list(splitter.split(np.zeros((y.size, 1)), y))[split]


@dataclass(frozen=True, eq=False)
class SplitParts:
    """Hold the two parts of a data set in one split, without the columns that are zero in the training part.

    ``columns`` are the numbers of the columns that are left, out of ``n_features``.
    """

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray
    columns: np.ndarray
    n_features: int


def load_split(name: str, data_home: str | None, checksum: str, split: int) -> SplitParts:
    """Load a data set, check that it is the one of the plan, and split it."""
    dataset, _ = load_checked(name, data_home, checksum)
    rows = np.arange(dataset.target.size)
    if name in TRAINING_ROWS_ONLY and dataset.train is not None:
        rows = dataset.train
    train, test = (rows[part] for part in split_rows(dataset.target[rows], split))
    alive = nonzero_columns(dataset.data[train])
    return SplitParts(
        dataset.data[train][:, alive],
        dataset.target[train],
        dataset.data[test][:, alive],
        dataset.target[test],
        alive,
        int(dataset.data.shape[1]),
    )
