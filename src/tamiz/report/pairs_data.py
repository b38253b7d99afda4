"""Record of what the page of a search for pairs shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamiz.evaluation.stability import library_versions
from tamiz.report.data import Scalar

if TYPE_CHECKING:  # a report of something else need not load the search
    from tamiz.pairs.result import Pair, PairCells, PairSearch

#: Pairs that are drawn; significant ones, and at least a few.
MOST_PICTURES, FEWEST_PICTURES = 12, 4


@dataclass(frozen=True, eq=False)
class PairPicture:
    """Hold one pair and the target in the cells of its two columns."""

    pair: Pair
    cells: PairCells


@dataclass(frozen=True, eq=False)
class PairsReport:
    """Hold everything the page of a search for pairs shows.

    Parameters
    ----------
    title : str
        Heading, usually the name of the table.
    task : str
        "classification" or "regression" (shown as it is).
    search : PairSearch
        What was found.
    pictures : tuple of PairPicture
        Pairs to draw, strongest first.
    level_names : mapping, default={}
        For columns of text the names of their categories, by name of the column and code.
    target : str or None, default=None
        Name of the target.
    notes : tuple of str, default=()
        What the run reported.
    settings, versions : mapping, default={}
        Shown as two small tables.
    seed : int or None, default=None
        Seed of the run.
    command : str or None, default=None
        Command that repeats the run.
    created : str or None, default=None
        Date and time in ISO format.
    """

    title: str
    task: str
    search: PairSearch
    pictures: tuple[PairPicture, ...]
    level_names: Mapping[str, Mapping[float, str]] = field(default_factory=dict)
    target: str | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    command: str | None = None
    created: str | None = None


def pairs_report(
    search: PairSearch,
    *,
    title: str = "Pairs",
    task: str = "search for pairs",
    target: str | None = None,
    level_names: Mapping[str, Mapping[float, str]] | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Scalar] | None = None,
    seed: int | None = None,
    command: str | None = None,
    created: str | None = None,
) -> PairsReport:
    """Gather what the page of a search for pairs shows.

    Parameters
    ----------
    search : PairSearch
        What :func:`tamiz.find_pairs` found.
    title : str, default="Pairs"
        Name of the table.
    task : str, default="search for pairs"
        Task.
    target : str or None, default=None
        Name of the target.
    level_names, notes, settings, seed, command, created : default=None
        As in :class:`PairsReport`.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz import find_pairs
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> page = pairs_report(find_pairs(X, X[:, 1] * X[:, 3] > 0, random_state=0))
    >>> page.pictures[0].pair.indices, page.pictures[0].cells.means.shape
    ((1, 3), (5, 5))
    """
    n_drawn = min(max(len(search.significant_pairs()), FEWEST_PICTURES), MOST_PICTURES)
    pictures = tuple(PairPicture(pair, search.cells(*pair.indices)) for pair in search.pairs[:n_drawn])
    return PairsReport(
        title=title,
        task=task,
        search=search,
        pictures=pictures,
        level_names=dict(level_names or {}),
        target=target,
        notes=tuple(notes),
        settings=dict(settings or {}),
        versions=library_versions(),
        seed=seed,
        command=command,
        created=created,
    )
