"""What classifier and regressor share: from a checked table through an engine to fitted attributes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamiz._utils.validation import (
    AUTO,
    NameOf,
    check_kept_columns,
    check_table,
    check_target_length,
    finite_number,
    resolve_n_features_to_select,
    whole_number,
)
from tamiz.core import VARIANTS, Rule
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import MASK_OPTIMIZERS
from tamiz.engines import Problem, Schedule
from tamiz.engines.contract import Fit, PathEngine, Progress, fit_with_rule
from tamiz.engines.schedule import SelectionL2
from tamiz.estimators.chooser import candidates_of_l2, cv_results, decide, is_auto, network_parameters
from tamiz.estimators.networks import NETWORKS, Network, find_network, find_schedule
from tamiz.estimators.training import (
    OPTIONS,
    Gating,
    PairEffect,
    joint_effects,
    read_gating,
    record_effects,
    selectable,
    watch_selection,
)
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.scaling import MissingValues, ScaledTable, apply_normalization, learn_missing, prepare_table
from tamiz.rows.targets import EncodedTarget, as_target, encode_target
from tamiz.selection import Selection

SPARSE_FORMATS = ("csr", "csc")


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Everything of a fit that does not depend on M: shared by the fits of a path."""

    n_features: int
    feature_names: np.ndarray | None
    table: ScaledTable
    target: EncodedTarget
    sample_weight: np.ndarray
    loss: Loss
    source: Any
    """The table without missing values, of which the selected columns are looked at again after the fit."""
    missing: MissingValues | None = None

    @property
    def n_outputs(self) -> int:
        """Return the number of outputs of the model; two competing ones are one."""
        return self.loss.decision(self.target.values[:1]).shape[1]


def prepare_data(estimator: BaseE2EFS, X: Any, y: Any, sample_weight: Any, *, check_size: bool = True) -> PreparedData:
    """Check everything, encode the target, normalise the table.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are checked and read; it learns the number and names of the columns.
    X, y, sample_weight
        As in ``fit``.
    check_size : bool, default=True
        False leaves M for later.
    """
    estimator._validate_params()
    find_network(estimator.network).engine(estimator)
    find_schedule(estimator)
    _check_strength(estimator)
    loss = estimator._find_loss()
    X = check_table(
        estimator, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=estimator._takes_nan()
    )
    names = getattr(estimator, "feature_names_in_", None)
    if is_auto(estimator.n_features_to_select):
        selectable(estimator, X.shape[1], names)
    elif check_size and read_gating(estimator, X.shape[1], names) is None:
        resolve_n_features_to_select(estimator.n_features_to_select, X.shape[1])
    y = as_target(y)
    check_target_length(X, y)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is 0 for every row: there is nothing to train on.")
    weights = weights / weights.max()  # weights count relative to each other only; sums must not overflow
    if not weights.all():
        rows = np.flatnonzero(weights)
        X, y, weights = X[rows], y[rows], weights[rows]
    target = encode_target(y, loss)
    weights = estimator._weigh(target, weights)
    missing = None
    n_features = X.shape[1]
    if estimator._takes_nan():
        missing = learn_missing(X, weights)
        X = missing.apply(X)
    table = prepare_table(X, estimator.normalize, weights)
    return PreparedData(n_features, names, table, target, weights, loss, X, missing)


def _check_strength(estimator: BaseE2EFS) -> None:
    """Raise for parameters that do not go with a strength, which decides M by the loss alone."""
    if estimator.strength is None:
        return
    if estimator.n_features_to_select is not None:
        raise ValueError(
            f"strength={estimator.strength!r} leaves the number of features to the loss: leave n_features_to_select at None, "
            f"got {estimator.n_features_to_select!r}."
        )
    others = [name for name in OPTIONS if getattr(estimator, name) is not None]
    if others or estimator.missing != "error":
        raise ValueError(
            f"strength={estimator.strength!r} prices single columns: it cannot be combined with "
            f"{', '.join(others) or 'missing'}."
        )


def seed_of(random_state: Any) -> int:
    """Return an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


_SCHEDULE = ("learning_rate", "l2", "batch_size", "warmup_steps", "ramp_steps", "refinement_epochs", "max_steps")


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Hold what an engine is told: network, what gates its columns, data, rule and schedule."""

    network: Network
    gating: Gating | None
    problem: Problem
    rule: Rule
    schedule: Schedule


def plan_fit(estimator: BaseE2EFS, prepared: PreparedData, owned: bool) -> FitPlan:
    """Return what the engine is told for a prepared table; it may write to the table if that is ``owned``."""
    table = prepared.table
    gating = read_gating(estimator, prepared.n_features, prepared.feature_names, prepared.missing)
    if gating is None:
        m = resolve_n_features_to_select(estimator.n_features_to_select, prepared.n_features)
        counts: dict[str, Any] = {"n_features": prepared.n_features, "n_features_to_select": m}
    else:
        m, counts = gating.gates.expected_size, gating.gates.rule_options()
    given = {name: getattr(estimator, name) for name in _SCHEDULE}
    decide = find_schedule(estimator)
    schedule = decide(table.values.shape[0], m, estimator._task, n_outputs=prepared.n_outputs, **given)
    rule = Rule(
        **counts,
        variant=estimator.variant,
        mu=estimator.mu,
        rho=estimator.rho,
        warmup_steps=schedule.warmup_steps,
        ramp_steps=schedule.ramp_steps,
        max_steps=schedule.max_steps,
        mask_learning_rate=schedule.mask_learning_rate,
        mask_optimizer=estimator.mask_optimizer,
    )
    problem = Problem(table.values, prepared.target.values, prepared.sample_weight, table.offset, owned)
    if gating is not None:
        problem = gating.restrict(problem)
    return FitPlan(find_network(estimator.network), gating, problem, rule, schedule)


def run_plan(estimator: BaseE2EFS, prepared: PreparedData, plan: FitPlan, progress: Progress | None = None) -> Fit:
    """Run the engine; ``progress`` takes the place of the bar of ``verbose``."""
    with watch_selection(estimator.verbose, plan.rule, plan.schedule.refinement_steps) as bar:
        return fit_with_rule(
            plan.network.engine(estimator),
            plan.problem,
            plan.rule,
            prepared.loss,
            plan.schedule,
            seed=seed_of(estimator.random_state),
            progress=progress or bar,
        )


def store_fit(estimator: BaseE2EFS, fit: Fit, prepared: PreparedData, plan: FitPlan) -> Any:
    """Store what the engine returned as fitted attributes; return the estimator."""
    table, target, gating = prepared.table, prepared.target, plan.gating
    selection = fit.selection if gating is None else gating.selection_of_columns(fit.selection)
    columns = selection.indices if gating is None else gating.read_columns(selection.support)

    estimator.n_features_in_ = prepared.n_features
    if prepared.feature_names is not None:
        estimator.feature_names_in_ = prepared.feature_names
    estimator.n_features_to_select_ = int(selection.group_support.sum())
    estimator.network_ = plan.network.name
    estimator.l2_ = float(plan.schedule.l2)
    estimator.loss_ = prepared.loss.name
    estimator.normalize_ = estimator.normalize
    estimator.statistics_ = None if table.statistics is None else table.statistics.of(columns)
    estimator.missing_ = None if prepared.missing is None else prepared.missing.of(selection.indices)
    estimator._store_target(target)
    estimator.model_ = fit.model if target.scale is None else fit.model.rescaled(target.mean, target.scale)
    selection = _rank_kept(estimator, selection, prepared, fit.model, columns, gating)
    if selection.engine == "additive":
        effects = record_effects(estimator.model_, selection, estimator.statistics_, estimator.normalize_)
        selection = replace(selection, effects=effects)
    estimator.selection_ = selection.with_names(prepared.feature_names)
    estimator.ranking_ = estimator.selection_.ranking
    estimator.gamma_ = estimator.selection_.gamma
    estimator.n_iter_ = estimator.selection_.n_steps
    return estimator


def _rank_kept(
    estimator: BaseE2EFS,
    selection: Selection,
    prepared: PreparedData,
    model: Any,
    columns: np.ndarray,
    gating: Gating | None,
) -> Selection:
    """Return the selection with its kept features ranked by what they contribute to the outputs of the model."""
    from tamiz.estimators.training import contributions  # loads numba

    # The engine may have overwritten the normalised table.
    kept = apply_normalization(prepared.source[:, columns], estimator.statistics_, estimator.normalize_)
    units = np.arange(columns.size) if gating is None else gating.units_of(columns)
    found = contributions(
        model, kept.values, kept.offset, prepared.sample_weight, units, seed=selection.seed or 0
    )  # fmt: skip
    return selection.ranked_by(found[units[: selection.n_features_to_select]])


def prepare_once(estimator: BaseE2EFS, X: Any, y: Any, sample_weight: Any = None) -> PreparedData:
    """Check and normalise a table for fits that differ in M, network, groups, ``keep`` or ``drop``.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its ``normalize``, ``loss``, ``class_weight`` and ``missing`` hold for all fits.
    X, y : table and target
        As :meth:`E2EFSClassifier.fit` takes them.
    sample_weight : array-like or None, default=None
        Weights of the rows.

    Returns
    -------
    PreparedData
        For :func:`fit_prepared`.
    """
    return clone(estimator)._prepare(X, y, sample_weight, check_size=False)


def fit_prepared(estimator: BaseE2EFS, prepared: PreparedData, *, progress: Progress | None = None) -> Any:
    """Return a fitted copy of an estimator, trained on a prepared table, which is not changed.

    Nothing is chosen on inner folds: ``l2="auto"`` is the rule for the size of the table. The copy has the parameters that
    repeat the fit from the table itself.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        With a number of features and a network that are not "auto".
    prepared : PreparedData
        From :func:`prepare_once`.
    progress : callable or None, default=None
        Called about every ten milliseconds with (step, features alive, steps of refinement done); what it raises ends the
        fit.

    Returns
    -------
    E2EFSClassifier or E2EFSRegressor

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz import E2EFSClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X = rng.normal(size=(60, 8)) + 3 * np.outer(y, np.arange(8) == 5)
    >>> selector = E2EFSClassifier(random_state=0)
    >>> prepared = prepare_once(selector, X, y)
    >>> [fit_prepared(selector.set_params(n_features_to_select=m), prepared).get_support().sum() for m in (1, 3)]
    [np.int64(1), np.int64(3)]
    """
    return _with_rule(estimator, prepared)._fit_prepared(prepared, owned=False, progress=progress)


def fit_prepared_sizes(
    estimator: BaseE2EFS, sizes: Sequence[int], prepared: PreparedData, *, progress: Progress | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (M, fitted copy) for several M, each as :func:`fit_prepared` returns it, from the largest M to the smallest.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        As for :func:`fit_prepared`; its own number of features is not used.
    sizes : sequence of int
        The values of M.
    prepared : PreparedData
        From :func:`prepare_once`.
    progress : callable or None, default=None
        As for :func:`fit_prepared`.

    Yields
    ------
    (int, estimator)
    """
    yield from _with_rule(estimator, prepared)._fit_sizes(sizes, prepared, progress)


def _with_rule(estimator: BaseE2EFS, prepared: PreparedData) -> BaseE2EFS:
    """Return a copy whose weight decay is that of the rule for the size of the table."""
    if is_auto(estimator.n_features_to_select) or is_auto(estimator.network):
        raise ValueError("fit_prepared chooses nothing from the data: give a number of features and a network.")
    final = clone(estimator)
    candidates = candidates_of_l2(final, prepared.target.values.shape[0], prepared.n_outputs)
    if len(candidates) > 1:
        final.set_params(l2=SelectionL2(candidates[0]))
    return final


def count_grid(n_features: int) -> list[int]:
    """Return the numbers of features that are tried: all small ones, then each larger by a factor of the root of 2.

    Examples
    --------
    >>> count_grid(20)
    [1, 2, 3, 4, 6, 8, 11, 16, 20]
    """
    steps = math.ceil(2 * math.log2(n_features)) + 1
    return sorted({min(n_features, round(2 ** (i / 2))) for i in range(steps)})


def training_loss(estimator: BaseE2EFS, prepared: PreparedData) -> float:
    """Return the weighted mean loss of a fitted estimator on the rows that it was fitted on; targets as the engine saw them.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted.
    prepared : PreparedData
        What it was fitted on.
    """
    from tamiz.engines.dense import mean_loss  # loads numba

    table, target, selection = prepared.table, prepared.target, estimator.selection_
    gating = read_gating(estimator, prepared.n_features, prepared.feature_names, prepared.missing)
    columns = selection.indices if gating is None else gating.read_columns(selection.support)
    offset = None if table.offset is None else table.offset[columns]
    scores = estimator.model_.scores(table.values[:, columns], offset)
    if target.scale is not None:
        scores = (scores - target.mean) / target.scale
    if scores.shape[1] < target.values.shape[1]:  # two classes with an output each are decided by the difference
        scores = np.column_stack([np.zeros(scores.shape[0]), scores])
    problem = Problem(table.values, target.values, prepared.sample_weight)
    return mean_loss(prepared.loss, problem, scores, np.arange(problem.n_samples))[0]


def strength_ranges(losses: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Return for which strengths each M minimises ``loss + strength * M``: the path over the strength.

    Parameters
    ----------
    losses : mapping of int to float
        Training loss for each M.

    Returns
    -------
    dict of int to (lowest, highest strength)
        Only those M that are best for some strength above 0, in ascending order; the smallest M has no highest strength.

    Examples
    --------
    >>> strength_ranges({1: 1.0, 2: 0.4, 4: 0.3, 8: 0.3})
    {1: (0.6, inf), 2: (0.05, 0.6), 4: (0.0, 0.05)}
    """
    hull: list[int] = []
    for m in sorted(losses):
        if hull and losses[m] >= losses[hull[-1]]:
            continue
        while len(hull) > 1 and _price(losses, hull[-1], m) >= _price(losses, hull[-2], hull[-1]):
            hull.pop()
        hull.append(m)
    prices = [math.inf, *(_price(losses, one, two) for one, two in pairwise(hull)), 0.0]
    return {m: (float(low), float(high)) for m, high, low in zip(hull, prices, prices[1:])}


def _price(losses: Mapping[int, float], fewer: int, more: int) -> float:
    """Return by how much each further feature lowers the loss, rounded so that equal slopes are equal."""
    return round((losses[fewer] - losses[more]) / (more - fewer), 12)


def fit_by_strength(base: BaseE2EFS, prepared: PreparedData, strength: float) -> Any:
    """Return the fitted estimator with the smallest ``training loss + strength * M`` over :func:`count_grid`.

    No loss is below zero, so the grid ends where the features alone cost more than the best so far.
    """
    best: tuple[float, Any] | None = None
    for m in count_grid(prepared.n_features):
        if best is not None and strength * m >= best[0]:
            break
        # The table is shared by all fits: none may write to it.
        fitted = clone(base).set_params(n_features_to_select=m, strength=None)._fit_prepared(prepared, owned=False)
        cost = training_loss(fitted, prepared) + strength * m
        if best is None or cost < best[0]:
            best = cost, fitted
    assert best is not None
    return best[1]


class BaseE2EFS(SelectorMixin, BaseEstimator):
    """Base of :class:`E2EFSClassifier` and :class:`E2EFSRegressor`."""

    _task: ClassVar[str]
    _automatic_loss: ClassVar[str]
    schedule: str = "auto"  # a parameter of the classifier only: the paper trains no regressor

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": "no_validation",  # resolve_n_features_to_select knows how many features there are
        "selection_rule": [StrOptions({"one_se", "best"}), finite_number(0)],
        "min_features_to_select": [whole_number(1)],
        "scoring": "no_validation",  # find_scorer suggests the nearest name
        "cv": ["cv_object"],
        "variant": [NameOf(lambda: VARIANTS)],
        "network": [NameOf(lambda: NETWORKS), callable],
        "hidden_layer_sizes": ["array-like"],  # the engine checks the sizes
        "normalize": [StrOptions(set(DEVIATIONS)), None],
        "learning_rate": [AUTO, finite_number(0, or_equal=False)],
        "l2": [AUTO, finite_number(0, most=1e12)],  # beyond, float32 overflows and any columns are kept
        "batch_size": [AUTO, whole_number(1)],
        "warmup_steps": [AUTO, whole_number(0)],
        "ramp_steps": [AUTO, whole_number(1)],
        "refinement_epochs": [AUTO, whole_number(0)],
        "max_steps": [AUTO, whole_number(1)],
        "n_init": [AUTO, whole_number(1)],
        "n_screened": [AUTO, whole_number(1)],
        "mu": [finite_number(1e-6)],
        "rho": [Interval(numbers.Real, 0, 1, closed="both")],
        "strength": [finite_number(0, or_equal=False), None],
        "mask_optimizer": [NameOf(lambda: MASK_OPTIMIZERS)],
        "fit_intercept": ["boolean"],
        "groups": "no_validation",  # read_gates knows the columns and their names
        "keep": "no_validation",
        "drop": "no_validation",
        "costs": "no_validation",
        "budget": "no_validation",
        "missing": [StrOptions({"error", "indicator"})],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str | None = None,
        *,
        selection_rule: str | float = "one_se",
        min_features_to_select: int = 1,
        scoring: Any = None,
        cv: Any = 5,
        variant: str = "soft",
        network: str | Callable[..., Any] = "linear",
        hidden_layer_sizes: Sequence[int] = (50, 25, 10),
        loss: str = "auto",
        normalize: str | None = "erf",
        learning_rate: float | str = "auto",
        l2: float | str = "auto",
        batch_size: int | str = "auto",
        warmup_steps: int | str = "auto",
        ramp_steps: int | str = "auto",
        refinement_epochs: int | str = "auto",
        max_steps: int | str = "auto",
        n_init: int | str = "auto",
        n_screened: int | str = "auto",
        mu: float = 1.0,
        rho: float = 0.75,
        mask_optimizer: str = "adam",
        strength: float | None = None,
        fit_intercept: bool = True,
        groups: Any = None,
        keep: Any = None,
        drop: Any = None,
        costs: Any = None,
        budget: float | None = None,
        missing: str = "error",
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.selection_rule = selection_rule
        self.min_features_to_select = min_features_to_select
        self.scoring = scoring
        self.cv = cv
        self.variant = variant
        self.network = network
        self.hidden_layer_sizes = hidden_layer_sizes
        self.loss = loss
        self.normalize = normalize
        self.learning_rate = learning_rate
        self.l2 = l2
        self.batch_size = batch_size
        self.warmup_steps = warmup_steps
        self.ramp_steps = ramp_steps
        self.refinement_epochs = refinement_epochs
        self.max_steps = max_steps
        self.n_init = n_init
        self.n_screened = n_screened
        self.mu = mu
        self.rho = rho
        self.mask_optimizer = mask_optimizer
        self.strength = strength
        self.fit_intercept = fit_intercept
        self.groups = groups
        self.keep = keep
        self.drop = drop
        self.costs = costs
        self.budget = budget
        self.missing = missing
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Select exactly M features and train the model on them, in one run.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Finite numbers, NaN where ``missing="indicator"``. Sparse tables are not densified.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            The target.
        sample_weight : array-like, shape (n_samples,), default=None
            Weights of the samples; a weight of 0 leaves the row out.

        Returns
        -------
        self
        """
        # Whatever ends a fit early, also Ctrl-C, leaves an estimator that is not fitted.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        prepared = self._prepare(X, y, sample_weight)
        if self.strength is not None:
            found = fit_by_strength(self, prepared, float(self.strength))
            return self._take_over(found)
        if not self._asks_the_data(prepared):
            return self._fit_prepared(prepared, owned=prepared.table.owned)
        seed, n_outputs = seed_of(self.random_state), prepared.n_outputs
        counts = selectable(self, prepared.n_features, prepared.feature_names)
        del prepared  # inner fits hold tables of their own
        decided = decide(self, X, y, sample_weight, counts, n_outputs, seed)
        final = clone(self).set_params(random_state=seed, **decided.parameters)
        prepared = final._prepare(X, y, sample_weight)
        final._fit_prepared(prepared, owned=prepared.table.owned)
        final.selection_ = replace(final.selection_, choices=decided.records())
        if "n_features_to_select" in decided.choices:
            final.cv_results_ = cv_results(decided.choices["n_features_to_select"])
        return self._take_over(final)

    def _take_over(self, fitted: Any) -> Any:
        """Take the fitted attributes of another estimator."""
        for name in [name for name in vars(fitted) if name.endswith("_")]:
            setattr(self, name, getattr(fitted, name))
        return self

    def _asks_the_data(self, prepared: PreparedData) -> bool:
        """Return whether a parameter is to be chosen on inner folds."""
        if is_auto(self.n_features_to_select) or is_auto(self.network):
            return True
        return len(candidates_of_l2(self, prepared.target.values.shape[0], prepared.n_outputs)) > 1

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, check_size: bool = True) -> PreparedData:
        """Check everything, encode the target, normalise the table; ``check_size=False`` leaves M for later."""
        return prepare_data(self, X, y, sample_weight, check_size=check_size)

    def _takes_nan(self) -> bool:
        return isinstance(self.missing, str) and self.missing == "indicator"

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        """Return the weights of the samples, with those of their classes."""
        return sample_weight

    def _fit_prepared(self, prepared: PreparedData, owned: bool, progress: Progress | None = None) -> Any:
        """Run the engine and store what came out; ``progress`` takes the place of the bar of ``verbose``."""
        plan = plan_fit(self, prepared, owned)
        return store_fit(self, run_plan(self, prepared, plan, progress), prepared, plan)

    def _store_target(self, target: EncodedTarget) -> None:
        """Store what the fitted estimator keeps of its target."""
        raise NotImplementedError

    def copy_for(self, n_features_to_select: int) -> Any:
        """Return an estimator for another M that is not fitted, with the weight decay and network that this fit chose.

        Parameters
        ----------
        n_features_to_select : int
            M of the copy.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        chosen: dict[str, Any] = {}
        if "network" in self.selection_.choices:
            chosen |= network_parameters(self, self.network_, self.l2)
        if "l2" in self.selection_.choices and self.network_ == "linear":
            chosen["l2"] = SelectionL2(self.l2_)
        return clone(self).set_params(n_features_to_select=n_features_to_select, **chosen)

    def fit_copies(self, sizes: Sequence[int], X: Any, y: Any, sample_weight: Any = None) -> Iterator[tuple[int, Any]]:
        """Yield (M, fitted copy) for several M; each is ``copy_for(M).fit(X, y)``, with the table prepared once.

        Parameters
        ----------
        sizes : sequence of int
            The values of M.
        X, y, sample_weight
            As for :meth:`fit`.

        Yields
        ------
        (int, estimator)
            From the largest M to the smallest.
        """
        if not sizes:
            return
        base = self.copy_for(max(sizes))
        prepared = base._prepare(X, y, sample_weight)
        yield from base._fit_sizes(sizes, prepared)

    def _fit_sizes(
        self, sizes: Sequence[int], prepared: PreparedData, progress: Progress | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (M, clone fitted for it), largest M first, on a table that all fits share, which none may write to."""
        ordered = sorted(set(sizes), reverse=True)
        copies = [clone(self).set_params(n_features_to_select=m) for m in ordered]
        if not self._shares_steps(ordered[0], prepared):
            for m, one in zip(ordered, copies, strict=True):
                yield m, one._fit_prepared(prepared, owned=False, progress=progress)
            return
        plans = [plan_fit(one, prepared, owned=False) for one in copies]
        rules, schedules = [plan.rule for plan in plans], [plan.schedule for plan in plans]
        engine: Any = plans[0].network.engine(self)
        seed = seed_of(self.random_state)
        fits = engine.fit_path(plans[0].problem, rules, prepared.loss, schedules, seed=seed, progress=progress)
        for m, one, plan, fit in zip(ordered, copies, plans, fits, strict=True):
            yield m, store_fit(one, fit, prepared, plan)

    def _shares_steps(self, m: int, prepared: PreparedData) -> bool:
        """Return whether fits of clones with several M, ``m`` the largest, take common steps."""
        if self.verbose or not isinstance(self.random_state, numbers.Integral):  # a bar, or a seed, for each fit
            return False
        plan = plan_fit(clone(self).set_params(n_features_to_select=m), prepared, owned=False)
        return plan.gating is None and isinstance(plan.network.engine(self), PathEngine)

    def _find_loss(self) -> Loss:
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        return get_loss(self._automatic_loss if automatic else self.loss)

    @property
    def coef_(self) -> np.ndarray:
        """Return the weights of the selected columns (linear network only)."""
        return self.model_.coef

    @property
    def intercept_(self) -> np.ndarray:
        """Return the constant terms (linear network only)."""
        return self.model_.intercept

    @property
    def pairs_(self) -> list[PairEffect]:
        """Return the joint effects of the fitted model, strongest first (pair network only)."""
        return joint_effects(self)

    @property
    def module_(self) -> Any:
        """Return the trained network as an ``nn.Module`` over the M selected columns (networks with hidden layers only)."""
        model = self.model_
        return model.to_torch() if hasattr(model, "to_torch") else model.module

    def _scores(self, X: Any) -> np.ndarray:
        """Return the outputs of the model, (n_samples, n_outputs); only the M selected columns are read.

        A data frame may hold the selected columns alone, in any order.
        """
        check_is_fitted(self)
        allow_nan = self.missing_ is not None
        kept = check_kept_columns(self, X, self.selection_.indices, allow_nan)
        if kept is None:
            X = check_table(self, X, reset=False, accept_sparse=list(SPARSE_FORMATS), allow_nan=allow_nan)
            kept = X[:, self.selection_.indices]
        if self.missing_ is not None:
            kept = self.missing_.apply(kept)
        table = apply_normalization(kept, self.statistics_, self.normalize_)
        return self.model_.scores(table.values, table.offset)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.selection_.support

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selection_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan()
        tags.target_tags.required = True
        return tags
