"""What classifier and regressor share: from a checked table through an engine to fitted attributes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from tamiz._constraints import AUTO, NameOf, finite_number, whole_number
from tamiz._validation import check_kept_columns, check_table
from tamiz.core import VARIANTS
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import MASK_OPTIMIZERS
from tamiz.engines.contract import PathEngine, Progress
from tamiz.engines.schedule import SelectionL2
from tamiz.estimators._gating import selectable
from tamiz.estimators._prepared import SPARSE_FORMATS, PreparedData, prepare_data, seed_of
from tamiz.estimators._training import plan_fit, run_plan, store_fit
from tamiz.estimators.automatic import candidates_of_l2, cv_results, decide, is_auto, network_parameters
from tamiz.estimators.joint_effects import PairEffect, joint_effects
from tamiz.estimators.networks import NETWORKS
from tamiz.estimators.strength import fit_by_strength
from tamiz.preprocessing.exact import DEVIATIONS
from tamiz.preprocessing.scaling import apply_normalization
from tamiz.preprocessing.targets import EncodedTarget


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
