"""What classifier and regressor share: from a checked table through an engine to fitted attributes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamiz._constraints import AUTO, NameOf, finite_number, whole_number
from tamiz._validation import check_kept_columns, check_table, check_target_length, resolve_n_features_to_select
from tamiz.core import VARIANTS, Rule
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import MASK_OPTIMIZERS
from tamiz.engines import Problem, Schedule
from tamiz.engines.budget import fit_with_rule
from tamiz.engines.contract import Fit, PathEngine, Progress
from tamiz.engines.schedule import SelectionL2
from tamiz.estimators._effects import record_effects
from tamiz.estimators._gating import Gating, read_gating, selectable
from tamiz.estimators.automatic import candidates_of_l2, cv_results, decide, is_auto, network_parameters
from tamiz.estimators.joint_effects import PairEffect, joint_effects
from tamiz.estimators.networks import NETWORKS, Network, find_network, find_schedule
from tamiz.estimators.progress import watch_selection
from tamiz.estimators.strength import fit_by_strength
from tamiz.preprocessing.exact import DEVIATIONS
from tamiz.preprocessing.missing import MissingValues, learn_missing
from tamiz.preprocessing.scaling import ScaledTable, apply_normalization, prepare_table
from tamiz.preprocessing.targets import EncodedTarget, as_target, encode_target
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


@dataclass(frozen=True, eq=False)
class FitPlan:
    """What an engine is told: network, what gates its columns, data, rule and schedule."""

    network: Network
    gating: Gating | None
    problem: Problem
    rule: Rule
    schedule: Schedule


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
        self._validate_params()
        find_network(self.network).engine(self)
        find_schedule(self)
        if self.strength is not None and self.n_features_to_select is not None:
            raise ValueError(
                f"strength={self.strength!r} leaves the number of features to the loss: leave n_features_to_select at None, "
                f"got {self.n_features_to_select!r}."
            )
        if self.strength is not None:
            others = [name for name in ("groups", "keep", "drop", "costs", "budget") if getattr(self, name) is not None]
            if others or self.missing != "error":
                raise ValueError(
                    f"strength={self.strength!r} prices single columns: it cannot be combined with "
                    f"{', '.join(others) or 'missing'}."
                )
        loss = self._find_loss()
        X = check_table(
            self, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=self._takes_nan()
        )
        names = getattr(self, "feature_names_in_", None)
        if is_auto(self.n_features_to_select):
            selectable(self, X.shape[1], names)
        elif check_size and read_gating(self, X.shape[1], names) is None:
            resolve_n_features_to_select(self.n_features_to_select, X.shape[1])
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
        weights = self._weigh(target, weights)
        missing = None
        n_features = X.shape[1]
        if self._takes_nan():
            missing = learn_missing(X, weights)
            X = missing.apply(X)
        table = prepare_table(X, self.normalize, weights)
        return PreparedData(n_features, names, table, target, weights, loss, X, missing)

    def _takes_nan(self) -> bool:
        return isinstance(self.missing, str) and self.missing == "indicator"

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        """Return the weights of the samples, with those of their classes."""
        return sample_weight

    def _fit_prepared(self, prepared: PreparedData, owned: bool, progress: Progress | None = None) -> Any:
        """Run the engine and store what came out; ``progress`` takes the place of the bar of ``verbose``."""
        plan = self._plan(prepared, owned)
        with watch_selection(self.verbose, plan.rule, plan.schedule.refinement_steps) as bar:
            fit = fit_with_rule(
                plan.network.engine(self),
                plan.problem,
                plan.rule,
                prepared.loss,
                plan.schedule,
                seed=seed_of(self.random_state),
                progress=progress or bar,
            )
        return self._store_fit(fit, prepared, plan)

    def _plan(self, prepared: PreparedData, owned: bool) -> FitPlan:
        """Return what the engine is told for a prepared table."""
        table = prepared.table
        gating = read_gating(self, prepared.n_features, prepared.feature_names, prepared.missing)
        if gating is None:
            m = resolve_n_features_to_select(self.n_features_to_select, prepared.n_features)
            counts: dict[str, Any] = {"n_features": prepared.n_features, "n_features_to_select": m}
        else:
            m, counts = gating.gates.expected_size, gating.gates.rule_options()
        schedule = self._schedule(find_schedule(self), table.values.shape[0], m, prepared.n_outputs)
        rule = Rule(
            **counts,
            variant=self.variant,
            mu=self.mu,
            rho=self.rho,
            warmup_steps=schedule.warmup_steps,
            ramp_steps=schedule.ramp_steps,
            max_steps=schedule.max_steps,
            mask_learning_rate=schedule.mask_learning_rate,
            mask_optimizer=self.mask_optimizer,
        )
        problem = Problem(table.values, prepared.target.values, prepared.sample_weight, table.offset, owned)
        if gating is not None:
            problem = gating.restrict(problem)
        return FitPlan(find_network(self.network), gating, problem, rule, schedule)

    def _store_fit(self, fit: Fit, prepared: PreparedData, plan: FitPlan) -> Any:
        """Store what the engine returned as fitted attributes."""
        table, target, gating = prepared.table, prepared.target, plan.gating
        selection = fit.selection if gating is None else gating.selection_of_columns(fit.selection)
        columns = selection.indices if gating is None else gating.read_columns(selection.support)

        self.n_features_in_ = prepared.n_features
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names
        self.n_features_to_select_ = int(selection.group_support.sum())
        self.network_ = plan.network.name
        self.l2_ = float(plan.schedule.l2)
        self.loss_ = prepared.loss.name
        self.normalize_ = self.normalize
        self.statistics_ = None if table.statistics is None else table.statistics.of(columns)
        self.missing_ = None if prepared.missing is None else prepared.missing.of(selection.indices)
        self._store_target(target)
        self.model_ = fit.model if target.scale is None else fit.model.rescaled(target.mean, target.scale)
        selection = self._rank(selection, prepared, fit.model, columns, gating)
        if selection.engine == "additive":
            effects = record_effects(self.model_, selection, self.statistics_, self.normalize_)
            selection = replace(selection, effects=effects)
        self.selection_ = selection.with_names(prepared.feature_names)
        self.ranking_ = self.selection_.ranking
        self.gamma_ = self.selection_.gamma
        self.n_iter_ = self.selection_.n_steps
        return self

    def _rank(
        self, selection: Selection, prepared: PreparedData, model: Any, columns: np.ndarray, gating: Gating | None
    ) -> Selection:
        """Return the selection with its kept features ranked by what they contribute to the outputs of the model."""
        from tamiz.engines.contribution import contributions  # loads numba

        # The engine may have overwritten the normalised table.
        kept = apply_normalization(prepared.source[:, columns], self.statistics_, self.normalize_)
        units = np.arange(columns.size) if gating is None else gating.units_of(columns)
        found = contributions(
            model, kept.values, kept.offset, prepared.sample_weight, units, seed=selection.seed or 0
        )  # fmt: skip
        return selection.ranked_by(found[units[: selection.n_features_to_select]])

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
        plans = [one._plan(prepared, owned=False) for one in copies]
        rules, schedules = [plan.rule for plan in plans], [plan.schedule for plan in plans]
        engine: Any = plans[0].network.engine(self)
        seed = seed_of(self.random_state)
        fits = engine.fit_path(plans[0].problem, rules, prepared.loss, schedules, seed=seed, progress=progress)
        for m, one, plan, fit in zip(ordered, copies, plans, fits, strict=True):
            yield m, one._store_fit(fit, prepared, plan)

    def _shares_steps(self, m: int, prepared: PreparedData) -> bool:
        """Return whether fits of clones with several M, ``m`` the largest, take common steps."""
        if self.verbose or not isinstance(self.random_state, numbers.Integral):  # a bar, or a seed, for each fit
            return False
        plan = clone(self).set_params(n_features_to_select=m)._plan(prepared, owned=False)
        return plan.gating is None and isinstance(plan.network.engine(self), PathEngine)

    def _schedule(self, decide: Callable[..., Schedule], n_samples: int, m: int, n_outputs: int) -> Schedule:
        """Return the schedule with every "auto" decided."""
        names = ("learning_rate", "l2", "batch_size", "warmup_steps", "ramp_steps", "refinement_epochs", "max_steps")
        return decide(n_samples, m, self._task, n_outputs=n_outputs, **{name: getattr(self, name) for name in names})

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


def seed_of(random_state: Any) -> int:
    """Return an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))
