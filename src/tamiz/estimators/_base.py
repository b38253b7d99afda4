"""What classifier and regressor share: one fit from a checked table to a record, and scores from M columns alone."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamiz._validation import check_table, check_target_length, resolve_n_features_to_select
from tamiz.core import VARIANTS, Rule
from tamiz.estimators import _parameters as check
from tamiz.estimators._compile_notice import announce_compilation
from tamiz.estimators._targets import Encoded, as_target
from tamiz.estimators.defaults import NETWORK_STARTS, Schedule, default_schedule, refinement_share
from tamiz.estimators.normalize import NORMALIZATIONS, Table, apply_normalization, prepare_table
from tamiz.estimators.progress import watch_selection
from tamiz.linear import engine
from tamiz.linear.fit import Training, fit_linear
from tamiz.linear.losses import LOSSES
from tamiz.networks._torch import require_torch
from tamiz.selection import Selection

SPARSE_FORMATS = ("csr", "csc")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything of a fit that does not depend on M: shared by the fits of a path."""

    facts: dict[str, Any]
    """``n_features_in_`` and ``feature_names_in_``."""
    table: Table
    target: Encoded
    sample_weight: np.ndarray
    loss: str
    schedule: Schedule

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return self.facts["n_features_in_"]

    @property
    def names(self) -> np.ndarray | None:
        """The names of the columns, if they have any."""
        return self.facts.get("feature_names_in_")


class BaseE2EFS(SelectorMixin, BaseEstimator):
    """Base of :class:`E2EFSClassifier` and :class:`E2EFSRegressor`."""

    _task: ClassVar[str]
    _automatic_loss: ClassVar[str]

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        variant: str = "soft",
        network: str | Callable[..., Any] = "linear",
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
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.variant = variant
        self.network = network
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
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Select exactly M features and train the model on them, in one run.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Numbers, finite. Sparse tables are not densified.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            The target.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the samples; a weight of 0 is as if the row were not there.

        Returns
        -------
        self
        """
        # Whatever ends a fit early, also Ctrl-C, leaves an estimator that is not fitted.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        problem = self._prepare(X, y, sample_weight)
        return self._fit_prepared(problem, owned=problem.table.owned)

    def _fit_prepared(self, problem: Problem, owned: bool) -> Any:
        m = resolve_n_features_to_select(self.n_features_to_select, problem.n_features)
        seed = _seed(self.random_state)
        train = self._train_linear if self._is_linear else self._train_network
        attributes = train(problem, m, seed, owned)
        selection: Selection = attributes["selection_"].with_names(problem.names)
        statistics = problem.table.statistics
        attributes.update(
            problem.facts,
            selection_=selection,
            n_features_to_select_=m,
            ranking_=selection.ranking,
            gamma_=selection.gamma,
            n_iter_=selection.n_steps,
            loss_=problem.loss,
            normalize_=self.normalize,
            statistics_=None if statistics is None else statistics.of(selection.indices),
            **self._target_attributes(problem.target),
        )
        self.__dict__.update(attributes)
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Check everything, encode the target, normalise the table."""
        loss = self._check_parameters()
        witness = copy.copy(self)  # takes the attributes that the check sets, so that self stays as it is until the end
        X = check_table(witness, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2)
        facts = {name: value for name, value in vars(witness).items() if name not in vars(self)}
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
        target, weights = self._encode(y, loss, weights)
        schedule = self._schedule(X.shape[0])
        return Problem(facts, prepare_table(X, self.normalize, weights), target, weights, loss, schedule)

    def _encode(self, y: Any, loss: str, sample_weight: np.ndarray) -> tuple[Encoded, np.ndarray]:
        """The target as the loss wants it, and the weights with those of the classes."""
        raise NotImplementedError

    def _target_attributes(self, target: Encoded) -> dict[str, Any]:
        """What the fitted estimator keeps of its target."""
        raise NotImplementedError

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.network, str) and self.network == "linear"

    def _loss_name(self) -> str:
        return self._automatic_loss if isinstance(self.loss, str) and self.loss == "auto" else self.loss

    def _check_parameters(self) -> str:
        """Refuse bad parameters; the name of the loss."""
        losses = tuple(name for name, loss in LOSSES.items() if loss.task == self._task)
        check.check_choice("loss", self.loss, ("auto", *losses))
        check.check_choice("variant", self.variant, VARIANTS)
        check.check_choice("normalize", self.normalize, NORMALIZATIONS)
        if not callable(self.network):
            check.check_choice("network", self.network, ("linear", "mlp"))
        check.check_number("mu", self.mu, 1e-6, np.inf)
        check.check_number("rho", self.rho, 0, 1)
        if self._is_linear and str(self.device) != "cpu":
            raise ValueError(f"network='linear' runs on the CPU: leave device at 'cpu', got {self.device!r}.")
        if self._n_starts() > 1 and self._is_linear:
            raise ValueError(f"network='linear' has one start: leave n_init at 'auto', got {self.n_init!r}.")
        return self._loss_name()

    def _n_starts(self) -> int:
        return check.integer_or_auto("n_init", self.n_init, 1 if self._is_linear else NETWORK_STARTS, 1)

    def _schedule(self, n_samples: int) -> Schedule:
        """The schedule with every "auto" decided."""
        plan = default_schedule(n_samples, self._task, self._is_linear)
        l2 = check.number_or_auto("l2", self.l2, plan.l2, positive=False)
        rate = check.number_or_auto("learning_rate", self.learning_rate, plan.learning_rate, positive=True)
        return replace(
            plan,
            learning_rate=rate,
            refinement_learning_rate=plan.refinement_learning_rate if isinstance(self.learning_rate, str) else rate,
            l2=l2,
            refinement_l2=plan.refinement_l2 if isinstance(self.l2, str) else l2,
            batch_size=check.integer_or_auto("batch_size", self.batch_size, plan.batch_size, 1),
            warmup_steps=check.integer_or_auto("warmup_steps", self.warmup_steps, plan.warmup_steps, 0),
            ramp_steps=check.integer_or_auto("ramp_steps", self.ramp_steps, plan.ramp_steps, 1),
            refinement_epochs=check.integer_or_auto(
                "refinement_epochs", self.refinement_epochs, plan.refinement_epochs, 0
            ),
        )

    def _rule(self, problem: Problem, m: int) -> Rule:
        schedule = problem.schedule
        return Rule(
            problem.n_features,
            m,
            variant=self.variant,
            mu=self.mu,
            rho=self.rho,
            warmup_steps=schedule.warmup_steps,
            ramp_steps=schedule.ramp_steps,
            max_steps=check.integer_or_auto("max_steps", self.max_steps, 0, 1) or None,
            learning_rate=schedule.mask_learning_rate,
        )

    def _train_linear(self, problem: Problem, m: int, seed: int, owned: bool) -> dict[str, Any]:
        """The compiled engine."""
        schedule, rule = problem.schedule, self._rule(problem, m)
        share = refinement_share(m, self._task) if isinstance(self.l2, str) else 1.0
        training = Training(
            loss=problem.loss,
            learning_rate=schedule.learning_rate,
            l2=schedule.l2,
            refinement_l2=share * schedule.refinement_l2,
            batch_size=schedule.batch_size,
            refinement_steps=schedule.refinement_steps,
            fit_intercept=bool(self.fit_intercept),
        )
        announce_compilation(engine.run)
        with watch_selection(self.verbose, rule, schedule.refinement_steps) as progress:
            fit = fit_linear(
                problem.table.values,
                problem.target.values,
                rule,
                training,
                sample_weight=problem.sample_weight,
                offset=problem.table.offset,
                seed=seed,
                owned=owned,
                progress=progress,
            )
        coef, intercept = fit.coef, fit.intercept
        if problem.target.scale is not None:
            coef = coef * problem.target.scale[:, None]
            intercept = intercept * problem.target.scale + problem.target.mean
        elif problem.loss == "softmax" and coef.shape[0] == 2:
            # The softmax of two scores is the logistic function of their difference.
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return {"selection_": fit.selection, "coef_": coef, "intercept_": intercept}

    def _train_network(self, problem: Problem, m: int, seed: int, owned: bool) -> dict[str, Any]:
        """The torch engine, which is loaded here."""
        require_torch(f"network={self.network!r}")
        from tamiz.estimators._network import train_network

        selection, module = train_network(
            self.network,
            problem.table.dense(),
            problem.target,
            problem.sample_weight,
            loss=problem.loss,
            rule=self._rule(problem, m),
            schedule=problem.schedule,
            device=self.device,
            seed=seed,
            n_init=self._n_starts(),
            verbose=bool(self.verbose),
        )
        return {
            "selection_": selection,
            "module_": module,
            "output_mean_": problem.target.mean,
            "output_scale_": problem.target.scale,
        }

    def _scores(self, X: Any) -> np.ndarray:
        """What the model says for each row, (n_samples, n_outputs); only the M selected columns are looked at."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False, accept_sparse=list(SPARSE_FORMATS))
        table = apply_normalization(X[:, self.selection_.indices], self.statistics_, self.normalize_)
        if hasattr(self, "module_"):
            return self._network_scores(table.dense())
        offset = 0.0 if table.offset is None else self.coef_ @ table.offset
        return np.asarray(table.values @ self.coef_.T) + (offset + self.intercept_)

    def _network_scores(self, rows: np.ndarray) -> np.ndarray:
        from tamiz.estimators._network import outputs_of

        scores = outputs_of(self.module_, rows)
        if self.output_scale_ is not None:
            return scores * self.output_scale_ + self.output_mean_
        return scores[:, 1:] - scores[:, :1] if self.loss_ == "softmax" and scores.shape[1] == 2 else scores

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.selection_.support

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selection_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _seed(random_state: Any) -> int:
    """An integer is the seed itself, so that the record can repeat the run; anything else draws one."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))
