"""What classifier and regressor share: from a checked table through an engine to fitted attributes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamiz._constraints import AUTO, NameOf, finite_number, whole_number
from tamiz._validation import check_table, check_target_length, resolve_n_features_to_select
from tamiz.core import VARIANTS, Rule
from tamiz.core.losses import Loss, get_loss
from tamiz.engines import Problem, Schedule
from tamiz.engines.budget import fit_with_rule
from tamiz.estimators._effects import record_effects
from tamiz.estimators._gating import read_gating
from tamiz.estimators.networks import NETWORKS, find_network
from tamiz.estimators.progress import watch_selection
from tamiz.preprocessing.missing import MissingValues, learn_missing
from tamiz.preprocessing.scaling import ScaledTable, apply_normalization, prepare_table
from tamiz.preprocessing.targets import EncodedTarget, as_target, encode_target

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
    missing: MissingValues | None = None


class BaseE2EFS(SelectorMixin, BaseEstimator):
    """Base of :class:`E2EFSClassifier` and :class:`E2EFSRegressor`."""

    _task: ClassVar[str]
    _automatic_loss: ClassVar[str]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": "no_validation",  # resolve_n_features_to_select knows how many features there are
        "variant": [NameOf(lambda: VARIANTS)],
        "network": [NameOf(lambda: NETWORKS), callable],
        "hidden_layer_sizes": ["array-like"],  # the engine checks the sizes
        "normalize": [StrOptions({"erf", "standard"}), None],
        "learning_rate": [AUTO, finite_number(0, or_equal=False)],
        "l2": [AUTO, finite_number(0)],
        "batch_size": [AUTO, whole_number(1)],
        "warmup_steps": [AUTO, whole_number(0)],
        "ramp_steps": [AUTO, whole_number(1)],
        "refinement_epochs": [AUTO, whole_number(0)],
        "max_steps": [AUTO, whole_number(1)],
        "n_init": [AUTO, whole_number(1)],
        "mu": [finite_number(1e-6)],
        "rho": [Interval(numbers.Real, 0, 1, closed="both")],
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
        n_features_to_select: int | float | None = None,
        *,
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
        mu: float = 1.0,
        rho: float = 0.75,
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
        self.mu = mu
        self.rho = rho
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
        return self._fit_prepared(prepared, owned=prepared.table.owned)

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, check_size: bool = True) -> PreparedData:
        """Check everything, encode the target, normalise the table; ``check_size=False`` leaves M for later."""
        self._validate_params()
        find_network(self.network).engine(self)
        loss = self._find_loss()
        X = check_table(
            self, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=self._takes_nan()
        )
        names = getattr(self, "feature_names_in_", None)
        if check_size and read_gating(self, X.shape[1], names) is None:
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
        return PreparedData(n_features, names, table, target, weights, loss, missing)

    def _takes_nan(self) -> bool:
        return isinstance(self.missing, str) and self.missing == "indicator"

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        """Return the weights of the samples, with those of their classes."""
        return sample_weight

    def _fit_prepared(self, prepared: PreparedData, owned: bool) -> Any:
        """Run the engine and store what came out."""
        table, target, loss = prepared.table, prepared.target, prepared.loss
        gating = read_gating(self, prepared.n_features, prepared.feature_names, prepared.missing)
        if gating is None:
            m = resolve_n_features_to_select(self.n_features_to_select, prepared.n_features)
            counts: dict[str, Any] = {"n_features": prepared.n_features, "n_features_to_select": m}
        else:
            m, counts = gating.gates.expected_size, gating.gates.rule_options()
        network = find_network(self.network)
        schedule = self._schedule(network.schedule, table.values.shape[0], m)
        rule = Rule(
            **counts,
            variant=self.variant,
            mu=self.mu,
            rho=self.rho,
            warmup_steps=schedule.warmup_steps,
            ramp_steps=schedule.ramp_steps,
            max_steps=schedule.max_steps,
            mask_learning_rate=schedule.mask_learning_rate,
        )
        problem = Problem(table.values, target.values, prepared.sample_weight, table.offset, owned)
        if gating is not None:
            problem = gating.restrict(problem)
        with watch_selection(self.verbose, rule, schedule.refinement_steps) as progress:
            fit = fit_with_rule(
                network.engine(self), problem, rule, loss, schedule, seed=_seed(self.random_state), progress=progress
            )
        selection = fit.selection if gating is None else gating.selection_of_columns(fit.selection)
        columns = selection.indices if gating is None else gating.read_columns(selection.support)

        self.n_features_in_ = prepared.n_features
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names
        self.n_features_to_select_ = int(selection.group_support.sum())
        self.loss_ = loss.name
        self.normalize_ = self.normalize
        self.statistics_ = None if table.statistics is None else table.statistics.of(columns)
        self.missing_ = None if prepared.missing is None else prepared.missing.of(selection.indices)
        self._store_target(target)
        self.model_ = fit.model if target.scale is None else fit.model.rescaled(target.mean, target.scale)
        if selection.engine == "additive":
            effects = record_effects(self.model_, selection, self.statistics_, self.normalize_)
            selection = replace(selection, effects=effects)
        self.selection_ = selection.with_names(prepared.feature_names)
        self.ranking_ = self.selection_.ranking
        self.gamma_ = self.selection_.gamma
        self.n_iter_ = self.selection_.n_steps
        return self

    def _store_target(self, target: EncodedTarget) -> None:
        """Store what the fitted estimator keeps of its target."""
        raise NotImplementedError

    def _schedule(self, decide: Callable[..., Schedule], n_samples: int, m: int) -> Schedule:
        """Return the schedule with every "auto" decided."""
        names = ("learning_rate", "l2", "batch_size", "warmup_steps", "ramp_steps", "refinement_epochs", "max_steps")
        return decide(n_samples, m, self._task, **{name: getattr(self, name) for name in names})

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
    def module_(self) -> Any:
        """Return the trained network as an ``nn.Module`` over the M selected columns (networks with hidden layers only)."""
        model = self.model_
        return model.to_torch() if hasattr(model, "to_torch") else model.module

    def _scores(self, X: Any) -> np.ndarray:
        """Return the outputs of the model, (n_samples, n_outputs); only the M selected columns are read."""
        check_is_fitted(self)
        allow_nan = self.missing_ is not None
        X = check_table(self, X, reset=False, accept_sparse=list(SPARSE_FORMATS), allow_nan=allow_nan)
        X = X[:, self.selection_.indices]
        if self.missing_ is not None:
            X = self.missing_.apply(X)
        table = apply_normalization(X, self.statistics_, self.normalize_)
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


def _seed(random_state: Any) -> int:
    """Return an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))
