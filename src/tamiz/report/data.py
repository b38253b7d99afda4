"""What the report pages show, and nothing else: plain frozen records that go to JSON and back.

Whoever has numbers to show (the estimators, the command line, a benchmark) fills one of the two big records,
:class:`SelectReport` or :class:`CompareReport`; every part that is None or empty is left out of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tamiz.report.records import Record
from tamiz.selection import Selection

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Score:
    """A number with its interval; ``low`` and ``high`` are None where nobody measured them."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(
        cls,
        values: Sequence[float] | np.ndarray,
        confidence: float = 0.95,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        test_share: float | None = None,
    ) -> Score:
        """The mean of scores over folds or splits, with an interval that stays inside ``bounds``.

        With the share of the rows that each split tests on, it is the interval of Nadeau and Bengio, which allows for
        the training rows that splits have in common; without, Student's t for independent scores.

        Examples
        --------
        >>> Score.of([0.8, 0.9, 1.0])
        Score(value=0.9, low=0.65..., high=1.14...)
        >>> Score.of([0.8, 0.9, 1.0], bounds=(0.0, 1.0), test_share=1 / 3)
        Score(value=0.9, low=0.50..., high=1.0)
        """
        from tamiz.evaluation.metrics import corrected_interval

        found = corrected_interval(values, test_share or 0.0, confidence, bounds)
        low, high = (None if math.isnan(end) else float(end) for end in (found.low, found.high))
        return cls(None if math.isnan(found.mean) else found.mean, low, high)


@dataclass(frozen=True)
class Group:
    """One class (or third of a numeric target) in the distribution of a feature.

    ``quantiles`` holds five numbers: the 5th, 25th, 50th, 75th and 95th percentile; ``counts`` one number
    for each bin of the distribution.
    """

    label: str
    n_rows: int
    quantiles: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Distribution:
    """How a feature is spread, by class; all groups share ``edges`` (one more than there are bins)."""

    edges: tuple[float, ...]
    groups: tuple[Group, ...]
    n_missing: int = 0


@dataclass(frozen=True)
class StandIn:
    """A feature that was not kept and could replace one that was: Pearson correlation over the rows."""

    name: str
    correlation: float


@dataclass(frozen=True)
class KeptFeature:
    """One kept feature.

    ``effect`` is signed (the weight of the standardised feature in a linear model, or what ``effect_name`` of
    the report says); ``fold_share`` is the share of cross-validation folds that kept the feature, in [0, 1].
    """

    name: str
    index: int
    rank: int
    effect: float | None = None
    fold_share: float | None = None
    stand_ins: tuple[StandIn, ...] = ()
    distribution: Distribution | None = None


@dataclass(frozen=True)
class Scores:
    """Cross-validated scores, the selection made inside each fold.

    ``difference`` is *kept minus all*, ``difference_random`` *kept minus random*; both paired over folds.
    """

    metric: str
    kept: Score
    all_features: Score | None = None
    random_features: Score | None = None
    difference: Score | None = None
    difference_random: Score | None = None
    n_folds: int | None = None
    higher_is_better: bool = True


@dataclass(frozen=True)
class CurvePoint:
    """The score with ``n_features`` features."""

    n_features: int
    score: Score


@dataclass(frozen=True)
class Curve:
    """Score against M, with the chosen M."""

    metric: str
    points: tuple[CurvePoint, ...]
    chosen: int | None = None


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix: ``counts[i][j]`` rows of class ``labels[i]`` were predicted as ``labels[j]``."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.labels)
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise ValueError(f"counts must be a square table over the {size} labels")


@dataclass(frozen=True)
class Residuals:
    """Actual and predicted values of a numeric target, from held-out folds."""

    actual: tuple[float, ...]
    predicted: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.actual) != len(self.predicted):
            raise ValueError(f"there are {len(self.actual)} actual values and {len(self.predicted)} predicted ones")


@dataclass(frozen=True)
class ImageMask:
    """The mean image of an image-shaped input, row by row, in any scale; the selection holds the mask."""

    height: int
    width: int
    mean: tuple[float, ...]


@dataclass(frozen=True)
class SelectReport(Record):
    """Everything the page of one selection shows.

    Parameters
    ----------
    title : str
        The heading, usually the name of the table.
    task : str
        "classification" or "regression" (shown as it is).
    n_rows, n_features : int
        Shape of the table as the selector saw it.
    selection : Selection
        What was kept and how the run went.
    kept : tuple of KeptFeature
        One record for each kept feature, best first.
    notes : tuple of str
        What was said aloud: how the task was found, which columns were encoded, what was imputed.
    settings, versions : mapping
        Shown as two small tables.
    command : str
        What to type to repeat the run.

    Examples
    --------
    >>> import numpy as np
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> kept = (KeptFeature("x1", index=1, rank=1, effect=-0.5),)
    >>> page = SelectReport("toy", "classification", 10, 2, selection, kept)
    >>> SelectReport.from_json(page.to_json()).kept[0].effect
    -0.5
    """

    title: str
    task: str
    n_rows: int
    n_features: int
    selection: Selection
    kept: tuple[KeptFeature, ...]
    scores: Scores | None = None
    curve: Curve | None = None
    confusion: Confusion | None = None
    residuals: Residuals | None = None
    image: ImageMask | None = None
    target: str | None = None
    effect_name: str = "weight of the standardised feature"
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    command: str | None = None
    created: str | None = None

    def __post_init__(self) -> None:
        n_kept = self.selection.n_features_to_select
        if [kept.rank for kept in self.kept] != list(range(1, n_kept + 1)):
            raise ValueError(f"kept must hold one record for each of the {n_kept} kept features, by rank")


@dataclass(frozen=True)
class MethodRank:
    """The mean rank of a method over splits and M (1 is best).

    ``significant`` marks a difference to the best method of the table; ``p_value`` is the test's, corrected.
    """

    method: str
    mean_rank: float
    p_value: float | None = None
    significant: bool = False


@dataclass(frozen=True)
class PairTest:
    """Wilcoxon signed-rank test of two methods over paired splits; ``difference`` is first minus second."""

    first: str
    second: str
    difference: float
    p_value: float | None
    significant: bool = False
    n_features: int | None = None


@dataclass(frozen=True)
class CompareReport(Record):
    """Everything the page of a comparison shows.

    Parameters
    ----------
    methods : tuple of str
        Names, in the order of all nested tables below.
    m_values : tuple of int
        The numbers of features compared.
    scores : nested tuple, ``scores[method][m][split]``
        One number for each split; None where a method failed.
    seconds : nested tuple, ``seconds[method][m]``
        Mean wall time of one selection.
    agreement : nested tuple, ``agreement[method][method]``
        Mean share of kept features two methods have in common, in [0, 1]; ``agreement_at`` is the M it
        was taken at.
    ranks : tuple of MethodRank
        Mean ranks, with significance marks.
    tests : tuple of PairTest
        Wilcoxon tests.
    test_share : float or None
        The share of the rows that each split tests on, for intervals that allow for the overlap of splits.

    Examples
    --------
    >>> scores = (((0.9, 1.0),), ((0.5, 0.6),))
    >>> page = CompareReport("toy", "classification", 10, 5, "accuracy", ("a", "b"), (2,), scores)
    >>> CompareReport.from_json(page.to_json()) == page
    True
    """

    title: str
    task: str
    n_rows: int
    n_features: int
    metric: str
    methods: tuple[str, ...]
    m_values: tuple[int, ...]
    scores: tuple[tuple[tuple[float | None, ...], ...], ...]
    seconds: tuple[tuple[float | None, ...], ...] = ()
    agreement: tuple[tuple[float | None, ...], ...] = ()
    agreement_at: int | None = None
    ranks: tuple[MethodRank, ...] = ()
    tests: tuple[PairTest, ...] = ()
    target: str | None = None
    alpha: float = 0.05
    higher_is_better: bool = True
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    command: str | None = None
    created: str | None = None
    test_share: float | None = None

    def __post_init__(self) -> None:
        if self.test_share is not None and not 0 < self.test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {self.test_share}")
        n_methods, n_values = len(self.methods), len(self.m_values)
        for name, table, width in (
            ("scores", self.scores, n_values),
            ("seconds", self.seconds, n_values),
            ("agreement", self.agreement, n_methods),
        ):
            if not table and name != "scores":  # the other two may be left out
                continue
            if len(table) != n_methods or any(len(row) != width for row in table):
                raise ValueError(f"{name} must be nested as {n_methods} methods by {width} values")
