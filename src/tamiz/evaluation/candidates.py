"""Candidates of a comparison: how each selector is made, and what must be compiled before its time is taken."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.estimators.networks import find_network
from tamiz.evaluation.methods import REFERENCE_METHODS, make_seeded, rank_for_targets

#: Sets of random features whose scores are averaged, in each fold.
RANDOM_DRAWS = 5
#: What a selector that cannot be fitted raises; a comparison goes on without it.
FIT_ERRORS = (ValueError, FloatingPointError, ImportError, TypeError, MemoryError)


@dataclass(frozen=True)
class Candidate:
    """Describe how a selector takes part in a comparison.

    Parameters
    ----------
    make : callable
        ``make(n_features_to_select, seed)`` returns a selector with ``fit`` and ``ranking_``.
    nested : {"any", "largest", "smallest", "each"}, default="any"
        M at which one fit serves every M, see :class:`~tamiz.baselines.Method`.
    keeps_all : bool, default=False
        Whether it keeps every feature, whatever M is.
    in_threads : bool, default=True
        Whether its fits may run in threads; if not, they run one after the other when the rest is done.
    is_reference : bool, default=False
        Whether it is a line to compare with (all features, random ones) and no competitor: it is neither ranked nor tested.
    n_draws : int, default=1
        Fits with other seeds whose scores are averaged, in each fold.
    joint : bool, default=False
        Whether it takes several targets at once; others are fitted to each target, see
        :func:`~tamiz.evaluation.methods.rank_for_targets`.
    """

    make: Callable[[int, int], Any]
    nested: str = "any"
    keeps_all: bool = False
    in_threads: bool = True
    is_reference: bool = False
    n_draws: int = 1
    joint: bool = False

    def rank(self, n_features_to_select: int, seed: int, X: Any, y: np.ndarray) -> np.ndarray:
        """Fit a selector and return its ranking of the features."""
        if y.ndim > 1 and not self.joint:
            return rank_for_targets(lambda: self.make(n_features_to_select, seed), X, y)
        return np.asarray(self.make(n_features_to_select, seed).fit(X, y).ranking_)


def make_candidates(names: Sequence[str], task: str, network: str = "linear") -> dict[str, Candidate]:
    """Make the candidates of a comparison from the names of methods.

    All features and random ones are references; the score of random features is averaged over several draws.

    Parameters
    ----------
    names : sequence of str
        As :func:`~tamiz.baselines.registry.canonical_name` spells them.
    task : {"classification", "regression"}
        Task.
    network : {"linear", "mlp"}, default="linear"
        Network of E2E-FS.

    Raises
    ------
    ValueError
        If a method cannot be fitted for the task.

    Examples
    --------
    >>> make_candidates(["fisher", "svm-rfe"], "classification")["svm-rfe"].nested
    'smallest'
    """
    candidates = {}
    for name in names:
        info = get_method(name)
        if task not in info.tasks:
            raise ValueError(f"The method {name!r} needs classes, but the task is regression. Leave it out.")
        its_network = info.options.get("network", network) if info.trains_model else "linear"
        make = partial(make_seeded, name, task=task, network=its_network)
        made, kind = make(1, 0), find_network(its_network)
        if info.trains_model:
            kind.engine(made)  # a package that is missing is reported here, not by every fold
        in_threads = info.engine != "torch" and kind.compiled
        is_reference = info.name in REFERENCE_METHODS
        n_draws = RANDOM_DRAWS if is_reference and not info.keeps_all else 1
        joint = info.trains_model or is_reference
        candidates[name] = Candidate(make, info.nested, info.keeps_all, in_threads, is_reference, n_draws, joint)
    return candidates


def warm_up(candidates: Mapping[str, Candidate], task: str, n_classes: int = 2, sparse: bool = False) -> None:
    """Fit every candidate once on a small table, so that no fit is timed with imports and compilation.

    Parameters
    ----------
    candidates : mapping of str to Candidate
        Methods by name.
    task : {"classification", "regression"}
        Task.
    n_classes : int, default=2
        Number of classes, for code that is compiled for two or for more.
    sparse : bool, default=False
        Whether the tables of the comparison are sparse.
    """
    import scipy.sparse as sp

    generator = np.random.default_rng(0)
    n_rows = max(24, 6 * n_classes)
    X = generator.normal(size=(n_rows, 12)).astype(np.float32)  # wide enough for a screening
    y = np.resize(np.arange(n_classes), n_rows) if task == "classification" else X[:, 0].astype(np.float64)
    for one in candidates.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                one.make(1, 0).fit(sp.csr_matrix(X) if sparse else X, y)
            except FIT_ERRORS:
                continue  # reported where it fails on the table itself
