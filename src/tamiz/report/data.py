"""Records of what the report pages show; every part that is None or empty is left out of the page.

Scores, intervals, ranks and tests are the records of :mod:`tamiz.evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.intervals import Interval, MethodRank, PairedTest
from tamiz.evaluation.results import Evaluation, HeldOut
from tamiz.report.evidence import Correlations, FoldGrid, HeatMap, HeatSets, KeptSet, PairsFound, Projection, Stability
from tamiz.selection import Selection

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Group:
    """Describe one class (or third of a numeric target) in the distribution of a feature.

    ``quantiles`` holds five numbers: the 5th, 25th, 50th, 75th and 95th percentile; ``counts`` one number
    for each bin of the distribution; ``n_rows`` counts the rows that have a value, ``n_missing`` the others.
    """

    label: str
    n_rows: int
    quantiles: tuple[float, ...]
    counts: tuple[int, ...]
    n_missing: int = 0


@dataclass(frozen=True)
class Distribution:
    """Describe the distribution of a feature by class; all groups share ``edges`` (one more than there are bins).

    A feature that is yes or no (a category, or zeros and ones) has two bins, and ``is_share`` is set.
    """

    edges: tuple[float, ...]
    groups: tuple[Group, ...]
    n_missing: int = 0
    is_share: bool = False


@dataclass(frozen=True)
class StandIn:
    """Name a feature that was not kept and goes with one that was beyond chance, with their Pearson correlation."""

    name: str
    correlation: float


@dataclass(frozen=True)
class KeptFeature:
    """Describe one kept feature.

    ``effect`` is signed (the weight of the standardised feature in a linear model, or what ``effect_name`` of
    the report says); ``fold_share`` is the share of cross-validation folds that kept the feature, in [0, 1].
    ``class_effects`` holds one effect per class where there are more than two, ``fold_effects`` the effect in the model of
    each fold that kept the feature.
    """

    name: str
    index: int
    rank: int
    effect: float | None = None
    fold_share: float | None = None
    stand_ins: tuple[StandIn, ...] = ()
    distribution: Distribution | None = None
    class_effects: tuple[float, ...] = ()
    fold_effects: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scores:
    """Hold cross-validated scores, the selection made inside each fold.

    ``difference`` is *kept minus all*, ``difference_random`` *kept minus random*; both paired over folds. ``chance`` is
    the score of a prediction that knows nothing of the features; ``p_value`` how often a target without a signal scores as well.
    """

    metric: str
    kept: Interval
    all_features: Interval | None = None
    random_features: Interval | None = None
    difference: Interval | None = None
    difference_random: Interval | None = None
    n_folds: int | None = None
    higher_is_better: bool = True
    chance: float | None = None
    p_value: float | None = None

    @classmethod
    def of(cls, evaluation: Evaluation, chance: float | None = None) -> Scores:
        """Return the scores of an evaluation; an evaluation without a null has no p value."""
        null = getattr(evaluation, "null", None)
        return cls(
            metric=evaluation.metric.name,
            kept=evaluation.interval("kept"),
            all_features=evaluation.interval("all_features"),
            random_features=evaluation.interval("random_features"),
            difference=evaluation.difference("all_features"),
            difference_random=evaluation.difference("random_features"),
            n_folds=len(evaluation.folds),
            higher_is_better=evaluation.metric.greater_is_better,
            chance=chance,
            p_value=None if null is None else null.p_value,
        )


@dataclass(frozen=True)
class CurvePoint:
    """Hold the score with ``n_features`` features."""

    n_features: int
    score: Interval


@dataclass(frozen=True)
class Curve:
    """Hold the scores against M, and the chosen M."""

    metric: str
    points: tuple[CurvePoint, ...]
    chosen: int | None = None

    @classmethod
    def of(cls, evaluation: Evaluation, chosen: int) -> Curve | None:
        """Return the curve of an evaluation; None if it has none."""
        points = tuple(CurvePoint(size, interval) for size, interval in evaluation.curve())
        return cls(evaluation.metric.name, points, chosen) if points else None


@dataclass(frozen=True)
class Confusion:
    """Hold a confusion matrix: ``counts[i][j]`` rows of class ``labels[i]`` were predicted as ``labels[j]``."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.labels)
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise ValueError(f"counts must be a square table over the {size} labels")


@dataclass(frozen=True)
class Residuals:
    """Hold actual and predicted values of a numeric target, from held-out folds."""

    actual: tuple[float, ...]
    predicted: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.actual) != len(self.predicted):
            raise ValueError(f"there are {len(self.actual)} actual values and {len(self.predicted)} predicted ones")


@dataclass(frozen=True)
class ImageMask:
    """Hold the mean image of an image-shaped input, row by row, in any scale; the selection holds the mask."""

    height: int
    width: int
    mean: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SelectReport:
    """Hold everything the page of one selection shows.

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
        What the run reported: how the task was found, which columns were encoded, what was imputed.
    settings, versions : mapping
        Shown as two small tables.
    command : str
        What to type to repeat the run.
    verdict : str
        Sentence on the top; the default is made from the scores.
    classes : tuple of str
        Labels of the classes, in the order of the outputs.
    residuals_by_target : tuple of (str, Residuals)
        Of several targets, the name and the held-out predictions of each.
    stability, fold_grid : Stability and FoldGrid
        How alike the selections of the folds are.
    heat_sets : HeatSets or None, default=None
        Heat maps of the sets of other M.
    heat_map, correlations, pairs : HeatMap, Correlations and PairsFound
        What the kept columns show together.
    held_out, projections : HeldOut and tuple of Projection
        Predictions of rows that a model had not seen.
    kept_sets : tuple of KeptSet
        What is kept with every M of the curve.
    class_images : tuple of (str, ImageMask)
        Mean image of each class.
    columns : tuple of int
        Number of the column of each feature as its file counts; without, they count from 0 as in an array.

    Examples
    --------
    >>> import numpy as np
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> kept = (KeptFeature("x1", index=1, rank=1, effect=-0.5),)
    >>> SelectReport("toy", "classification", 10, 2, selection, kept).kept[0].effect
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
    residuals_by_target: tuple[tuple[str, Residuals], ...] = ()
    image: ImageMask | None = None
    target: str | None = None
    effect_name: str = "weight of the standardised feature"
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    command: str | None = None
    created: str | None = None
    verdict: str | None = None
    classes: tuple[str, ...] = ()
    stability: Stability | None = None
    fold_grid: FoldGrid | None = None
    heat_map: HeatMap | None = None
    heat_sets: HeatSets | None = None
    correlations: Correlations | None = None
    pairs: PairsFound | None = None
    held_out: HeldOut | None = None
    projections: tuple[Projection, ...] = ()
    kept_sets: tuple[KeptSet, ...] = ()
    class_images: tuple[tuple[str, ImageMask], ...] = ()
    columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        n_kept = self.selection.n_features_to_select
        if [kept.rank for kept in self.kept] != list(range(1, n_kept + 1)):
            raise ValueError(f"kept must hold one record for each of the {n_kept} kept features, by rank")

    def column_of(self, index: int) -> int:
        """Return the number of the column of a feature, as its file counts."""
        return self.columns[index] if self.columns else index


@dataclass(frozen=True, eq=False)
class CompareReport:
    """Hold everything the page of a comparison shows.

    Parameters
    ----------
    title : str
        Heading, usually the name of the table.
    task : str
        "classification" or "regression" (shown as it is).
    n_rows, n_features : int
        Shape of the table.
    comparison : Comparison
        Scores by method, M and split, with their intervals, and seconds.
    agreement : ndarray of shape (methods, methods) or None, default=None
        Mean share of kept features that two methods have in common, in [0, 1].
    agreement_at : int or None, default=None
        M of the agreement.
    ranks : tuple of MethodRank, default=()
        Mean ranks, with significance marks.
    tests : tuple of PairedTest, default=()
        Tests of all pairs.
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

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> found = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), np.array([[[0.9, 1.0]], [[0.5, 0.6]]]))
    >>> CompareReport("toy", "classification", 10, 5, found).metric
    'balanced accuracy'
    """

    title: str
    task: str
    n_rows: int
    n_features: int
    comparison: Comparison
    agreement: np.ndarray | None = None
    agreement_at: int | None = None
    ranks: tuple[MethodRank, ...] = ()
    tests: tuple[PairedTest, ...] = ()
    target: str | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    command: str | None = None
    created: str | None = None

    def __post_init__(self) -> None:
        n_methods = len(self.methods)
        if self.agreement is not None and np.shape(self.agreement) != (n_methods, n_methods):
            raise ValueError(f"agreement must have {n_methods} methods by {n_methods}, got {np.shape(self.agreement)}")

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.comparison.metric.name

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return self.comparison.methods

    @property
    def m_values(self) -> tuple[int, ...]:
        """Numbers of features."""
        return self.comparison.m_values

    @property
    def alpha(self) -> float:
        """Level of the tests."""
        return self.comparison.alpha
