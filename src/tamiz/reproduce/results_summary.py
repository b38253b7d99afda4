"""Summary of several runs: for each data set the best method, E2E-FS, the best other method, and published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamiz.reproduce.protocol import REFERENCES
from tamiz.reproduce.scores import HeadlineScore
from tamiz.reproduce.summary import format_cell, markdown_table

#: Methods with a column of their own.
VARIANTS_SHOWN = {"e2efs": "E2E-FS", "e2efs-soft": "E2E-FS-Soft"}
#: Methods that are not known from elsewhere: not what E2E-FS is compared with.
OWN_METHODS = {*VARIANTS_SHOWN, "e2efs-ranking", "pairs", "pair-search"}


@dataclass(frozen=True)
class HeadlineRow:
    """Hold the scores of one data set and recipe, of a protocol.

    Attributes
    ----------
    protocol, dataset, measure, basis : str
        Where the scores are from; see :class:`~tamiz.reproduce.scores.HeadlineScore`.
    page : str
        Page of the run that has the best row.
    recipe : str or None
        Recipe of the networks, None if there is only one.
    best : HeadlineScore
        Best row of all methods that select.
    variants : dict of str to HeadlineScore
        Best row of each variant of E2E-FS that was run.
    other : HeadlineScore or None
        Best row of the methods that are known from elsewhere.
    """

    protocol: str
    page: str
    dataset: str
    measure: str
    basis: str
    recipe: str | None
    best: HeadlineScore
    variants: Mapping[str, HeadlineScore]
    other: HeadlineScore | None

    @property
    def label(self) -> str:
        """Name of the data set, with the recipe in brackets."""
        return self.dataset if self.recipe is None else f"{self.dataset} [{self.recipe}]"


def headline_rows(scores: Iterable[tuple[str, str, HeadlineScore]]) -> list[HeadlineRow]:
    """Return the rows of the summary, in the order of the scores.

    Parameters
    ----------
    scores : iterable of (protocol, page, score)
        Scores of all runs. Runs of one protocol may share a data set: their scores are compared if the basis is the same.
        Random features and all features are no selections and are left out.

    Examples
    --------
    >>> made = [
    ...     HeadlineScore("COLON", "accuracy", "3 splits", method, method.title(), value)
    ...     for method, value in (("fisher", 0.8), ("mim", 0.7), ("e2efs", 0.9), ("all", 1.0))
    ... ]
    >>> (row,) = headline_rows(("microarray", "microarray.md", score) for score in made)
    >>> row.best.value, row.variants["e2efs"].value, row.other.label
    (0.9, 0.9, 'Fisher')
    """
    groups: dict[tuple[str, str, str, str], list[HeadlineScore]] = {}
    pages: dict[HeadlineScore, str] = {}
    for protocol, page, score in scores:
        if score.method not in REFERENCES:
            pages.setdefault(score, page)
            groups.setdefault((protocol, score.dataset, score.measure, score.basis), []).append(score)
    rows = []
    for (protocol, dataset, measure, basis), found in groups.items():
        recipes: list[str | None] = list(dict.fromkeys(sorted(score.recipe for score in found if score.recipe)))
        for recipe in recipes or [None]:
            # What trains no network is the same whatever the recipe.
            pool = [score for score in found if score.recipe in (recipe, None)]
            variants = {name: _best(pool, {name}) for name in VARIANTS_SHOWN}
            best = max(pool, key=lambda score: score.value)
            other = _best(pool, {score.method for score in pool} - OWN_METHODS)
            known = {name: score for name, score in variants.items() if score is not None}
            rows.append(HeadlineRow(protocol, pages[best], dataset, measure, basis, recipe, best, known, other))
    return rows


def _best(scores: Sequence[HeadlineScore], methods: set[str]) -> HeadlineScore | None:
    return max((score for score in scores if score.method in methods), key=lambda score: score.value, default=None)


def summary_table(rows: Sequence[HeadlineRow]) -> str:
    """Return the table of the summary as Markdown; the name of a protocol is a link to the page of the run.

    Examples
    --------
    >>> score = HeadlineScore("ring", "share", "6 folds", "e2efs", "E2E-FS", 0.5, published=0.25)
    >>> print(summary_table(headline_rows([("ground-truth", "results/ground-truth.md", score)])))
    | run | data set | best method | E2E-FS | E2E-FS-Soft | best other method |
    |---|---|---:|---:|---:|---:|
    | [ground-truth](results/ground-truth.md) | ring | E2E-FS: 0.500 (0.250) | 0.500 (0.250) | – | – |
    """
    lines = [
        [
            f"[{row.protocol}]({row.page})",
            row.label,
            _cell(row.best, row.best.label),
            *(_cell(row.variants.get(name), _detail(row.variants.get(name))) for name in VARIANTS_SHOWN),
            _cell(row.other, "" if row.other is None else row.other.label),
        ]
        for row in rows
    ]
    return markdown_table(["run", "data set", "best method", *VARIANTS_SHOWN.values(), "best other method"], lines, 2)


def _detail(score: HeadlineScore | None) -> str:
    return "" if score is None else score.detail


def _cell(score: HeadlineScore | None, label: str) -> str:
    if score is None:
        return "–"
    published = "" if score.published is None else f" ({format_cell(score.published)})"
    return (f"{label}: " if label else "") + format_cell(score.value) + published
