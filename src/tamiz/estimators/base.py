"""What classifier and regressor share: check the rows, choose every "auto", run the engine, keep the result."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamiz._utils import validation
from tamiz._utils.progress import ProgressBar
from tamiz._utils.validation import check_table
from tamiz.core import VARIANTS, Rule
from tamiz.core.gates import DROPPED, Gates, possible_counts, read_gates
from tamiz.core.losses import Loss, get_loss
from tamiz.engines.contract import Fit, Problem, Progress, fit_with_rule
from tamiz.engines.linear import LinearModel
from tamiz.engines.schedule import Schedule
from tamiz.estimators.chooser import Choices, choose, cv_results, needs_choice
from tamiz.estimators.effects import PairEffect, contributions, joint_effects, record_effects
from tamiz.estimators.least_squares import calibrate, exchange_columns, fit_ridge
from tamiz.estimators.networks import NETWORKS, Dense, Network, Pairs, TorchNetwork, find_network
from tamiz.estimators.passes import SELECTION_ROWS, Stream, fit_in_passes, has_rare_class
from tamiz.estimators.training import GATING_PARAMETERS, Auto, NamedParameters, Options, Training, is_auto
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.rows import Rows
from tamiz.rows.scaling import (
    MissingValues,
    ScaledTable,
    apply_normalization,
    column_statistics,
    learn_missing,
    prepare_table,
)
from tamiz.rows.sources import as_source, in_blocks
from tamiz.rows.targets import EncodedTarget, as_target, encode_target

SPARSE_FORMATS = ("csr", "csc")
_USUAL = Training()


@dataclass(frozen=True, eq=False)
class Data:
    """The checked rows of a fit: what does not depend on M, shared by the fits of a path."""

    X: Any
    """The table without missing values, indicators behind the columns of the user."""
    n_features: int
    feature_names: np.ndarray | None
    target: EncodedTarget
    sample_weight: np.ndarray
    loss: Loss
    missing: MissingValues | None
    normalize: str | None
    statistics_weight: np.ndarray
    """Weights of the rows in mean and deviation of the columns."""

    @cached_property
    def table(self) -> ScaledTable:
        """Normalise the table, once."""
        return prepare_table(self.X, self.normalize, self.statistics_weight)

    @property
    def n_outputs(self) -> int:
        """Outputs of the model; two competing ones are one."""
        return self.loss.decision(self.target.values[:1]).shape[1]


@dataclass(frozen=True, eq=False)
class Gating:
    """How the columns of a table relate to the features of an engine."""

    gates: Gates
    """Over the columns of the user."""
    group_names: np.ndarray | None
    """Names of the groups, if groups were given."""
    indicated: np.ndarray
    """Columns whose indicators of missing values stand behind the columns of the user, in this order."""

    def restrict(self, problem: Problem) -> Problem:
        """Leave dropped columns out of a problem and number the features; an indicator is of the group of its column."""
        feature = self.gates.column_feature
        feature = np.concatenate([feature, feature[self.indicated]])
        columns = np.flatnonzero(feature != DROPPED)
        groups = feature[columns]
        plain = np.array_equal(groups, np.arange(self.gates.n_features))
        if columns.size < feature.size:
            offset = None if problem.offset is None else problem.offset[columns]
            problem = replace(problem, X=problem.X[:, columns], offset=offset, owned=True)
        return replace(problem, groups=None if plain else groups)

    def read_columns(self, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """List the columns that the model reads, indicators included, and the number of the unit of each, from 0 on."""
        columns = np.concatenate([np.flatnonzero(support), support.size + np.flatnonzero(support[self.indicated])])
        group = self.gates.group
        return columns, np.unique(np.concatenate([group, group[self.indicated]])[columns], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Plan:
    """Inputs of one run of an engine."""

    network: Network
    gating: Gating | None
    problem: Problem
    rule: Rule
    schedule: Schedule


def seed_of(random_state: Any) -> int:
    """Take an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


class BaseE2EFS(NamedParameters, SelectorMixin, BaseEstimator):
    """Base of :class:`E2EFSClassifier` and :class:`E2EFSRegressor`."""

    _task: ClassVar[str]
    _automatic_loss: ClassVar[str]
    _nested: ClassVar[dict[str, tuple[Any, ...]]] = {
        "training": (Training,),
        "network": (Dense, Pairs, TorchNetwork),
        "n_features_to_select": (Auto,),
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "network": [validation.NameOf(lambda: NETWORKS), Network, callable],
        "variant": [validation.NameOf(lambda: VARIANTS)],
        # Beyond 1e12 float32 overflows and any columns are kept.
        "l2": [validation.AUTO, validation.finite_number(0, most=1e12)],
        "normalize": [StrOptions({"auto", *DEVIATIONS}), None],
        # Checked where the columns and their names are known, and where the nearest name can be suggested.
        **dict.fromkeys(("n_features_to_select", *GATING_PARAMETERS, "scoring"), "no_validation"),
        "missing": [StrOptions({"error", "indicator"})],
        "cv": ["cv_object"],
        "training": [Training, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str | Auto | None = None,
        *,
        network: str | Network | Callable[..., Any] = "linear",
        variant: str = "soft",
        loss: str = "auto",
        l2: float | str = "auto",
        normalize: str | None = "auto",
        groups: Any = None,
        keep: Any = None,
        drop: Any = None,
        costs: Any = None,
        budget: float | None = None,
        missing: str = "error",
        cv: Any = 5,
        scoring: Any = None,
        training: Training | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self._keep_parameters(locals())

    def _keep_parameters(self, given: dict[str, Any]) -> None:
        self.__dict__.update({name: given[name] for name in self._get_param_names()})

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters, also nested ones such as ``training__ramp_steps`` and ``network__n_init``.

        Parameters
        ----------
        **parameters
            Names and values.

        Returns
        -------
        self
        """
        names = {name.partition("__")[0] for name in parameters}
        self._check_names(sorted(names), ValueError)
        # A nested parameter of an object that is still a name or None: make the object that it stands for.
        makers = {"training": lambda _: Training(), "network": find_network, "n_features_to_select": lambda _: Auto()}
        for name, make in makers.items():
            value = parameters.get(name, getattr(self, name))
            if any(one.startswith(f"{name}__") for one in parameters) and not hasattr(value, "get_params"):
                parameters = {**parameters, name: clone(make(value))}
        return super().set_params(**parameters)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, time: Any = None) -> Any:
        """Select exactly M features and train the model on them, in one run.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, or a table to be read in blocks
            Finite numbers, NaN where ``missing="indicator"``. Sparse tables are not densified. Tables beyond memory may be a
            ``np.memmap``, an array of HDF5 or Zarr, a path, glob or folder of Parquet, CSV, IPC or NDJSON files, a
            ``polars.LazyFrame``, a Dask array or data frame, or a :class:`~tamiz.rows.sources.BlockSource`; they, and
            tables of more than 200,000 rows, are read in passes (``passes_``).
        y : array-like, shape (n_samples,) or (n_samples, n_outputs), or str
            The target; the name of a column where ``X`` is read from files or a frame.
        sample_weight : array-like, shape (n_samples,), default=None
            Weights of the samples; a weight of 0 leaves the row out.
        groups : array-like, shape (n_samples,), default=None
            Groups of rows, such as patients: inner folds of what is "auto" keep the rows of a group together.
        time : array-like, shape (n_samples,), default=None
            Time of the rows: inner folds of what is "auto" train on earlier rows than they score.

        Returns
        -------
        self
        """
        self._forget()
        encoded, is_array = validation.encoded_columns(X), isinstance(X, np.ndarray)
        if encoded is not None and self.groups is None and (is_array or len(set(encoded[1])) < len(encoded[1])):
            # A column of the table is the unit of selection, also in the clones of inner folds.
            names, columns = encoded
            found = clone(self).set_params(groups=columns if len(set(columns)) < len(columns) else None)
            found.fit(np.asarray(X) if is_array else X, y, sample_weight, groups, time)
            given = self.get_params(deep=False)
            self.__dict__.update({name: value for name, value in vars(found).items() if name not in given})
            self.selection_ = found.selection_.with_names(names)
            return self
        source = as_source(X, y)
        if source is None and getattr(X, "ndim", 0) == 2 and X.shape[0] > 2 * SELECTION_ROWS:
            target = as_target(y)
            if not has_rare_class(target, self._task):  # all rows are at hand: none of a rare class may be lost
                source = in_blocks(X, target)
        if source is not None:
            self._validate_params()
            rows = {"sample_weight": sample_weight, "groups": groups, "time": time}
            found = fit_in_passes(self, source, self._get_training().max_memory, seed_of(self.random_state), rows)
            self.__dict__.update(found)
            return self
        return self._fit_rows(X, y, sample_weight, groups, time)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, time: Any = None) -> Any:
        """Fit on rows that are in memory."""
        data = self._check(X, y, sample_weight)
        seed, chosen, final = seed_of(self.random_state), Choices(), self
        if needs_choice(self):
            rows = Rows(X, y, sample_weight=sample_weight, groups=groups, time=time)
            chosen = choose(self, rows, self._possible_counts(data), seed)
            final = clone(self).set_params(**chosen.parameters)
        plan = final._plan(data)
        return self._store(data, plan, final._run(plan, data.loss, seed), chosen)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Add a batch of rows to those that were given before; fit anew whenever their number has doubled.

        A uniform sample of all rows is kept, within ``training.max_memory``, so that the fitted model is always one with
        exactly M features. :meth:`finish` fits it on the sample of all rows.

        Parameters
        ----------
        X, y
            Rows and their targets, in memory.
        classes : array-like or None, default=None
            All classes, as in scikit-learn: no model is fitted before a row of each has been seen.

        Returns
        -------
        self
        """
        checked = check_table(self, X, reset=not hasattr(self, "_stream"), allow_nan=self.missing == "indicator")
        y = as_target(y)
        validation.check_target_length(checked, y)
        if not hasattr(self, "_stream"):
            self._validate_params()
            self._stream = Stream(checked.shape[1], self._get_training().max_memory, seed_of(self.random_state))
        ready = self._stream.add(checked, y)
        if ready and (classes is None or set(np.asarray(classes).tolist()) <= set(self._stream.reservoir.targets())):
            self.finish()
        return self

    def finish(self) -> Any:
        """Fit the model on a sample of all rows that :meth:`partial_fit` was given.

        Returns
        -------
        self
        """
        if not hasattr(self, "_stream"):
            raise ValueError("There are no rows to finish with: call partial_fit first.")
        stream = self._stream
        stream.n_fitted = stream.n_rows
        X, y, _ = stream.reservoir.sample()
        self._forget()
        return self._fit_rows(X, y)

    def choose(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        time: Any = None,
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Choices:
        """Choose every "auto" by inner cross-validation, as :meth:`fit` does, without the fit on all rows.

        Parameters
        ----------
        X, y, sample_weight, groups, time
            As for :meth:`fit`.
        progress : callable or None, default=None
            Called about every ten milliseconds with what is chosen, the inner fits that are done and their number; what it
            raises ends the search.

        Returns
        -------
        Choices
            ``parameters`` for ``set_params``, and the record of each choice.

        Examples
        --------
        >>> import numpy as np
        >>> from tamiz import E2EFSClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 8))
        >>> E2EFSClassifier("auto", random_state=0).choose(X, X[:, 5] > 0).parameters["n_features_to_select"]
        1
        """
        data = clone(self)._check(X, y, sample_weight)
        if not needs_choice(self):
            return Choices()
        rows, seed = Rows(X, y, sample_weight=sample_weight, groups=groups, time=time), seed_of(self.random_state)
        return choose(self, rows, self._possible_counts(data), seed, progress=progress)

    def _forget(self) -> None:
        # Whatever ends a fit early, also Ctrl-C, leaves an estimator that is not fitted.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Check parameters, table, target and weights; encode the target."""
        self._validate_params()
        for given in (self.network, self.training):
            if isinstance(given, Options):
                given.check()
        loss, is_paper = self._find_loss(), self._get_training().is_paper
        allow_nan = self.missing == "indicator"
        X = check_table(self, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=allow_nan)
        if sp.issparse(X) and X.shape[0] * X.shape[1] <= find_network(self.network).dense_cells:
            X = X.toarray()
        y = as_target(y)
        validation.check_target_length(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is 0 for every row: there is nothing to train on.")
        weights = weights / weights.max()  # weights count relative to each other only; sums must not overflow
        if not weights.all():
            rows = np.flatnonzero(weights)
            X, y, weights = X[rows], y[rows], weights[rows]
        target = encode_target(y, loss)
        weighted = self._weigh(target, weights)
        n_features, missing = X.shape[1], None
        if allow_nan:
            missing = learn_missing(X, weighted)
            X = missing.apply(X)
        normalize = self.normalize
        if normalize == "auto":
            normalize = "erf2" if is_paper else "standard" if loss.name == "squared_error" else "erf"
        names = getattr(self, "feature_names_in_", None)
        of_statistics = weights if is_paper else weighted
        return Data(X, n_features, names, target, weighted, loss, missing, normalize, of_statistics)

    def _possible_counts(self, data: Data) -> tuple[int, int]:
        """Compute the least and the largest M that groups, forced columns and costs leave possible."""
        options = {name: getattr(self, name) for name in GATING_PARAMETERS}
        if self.budget is not None:  # raises unless M is None
            read_gates(data.n_features, self.n_features_to_select, **options, names=data.feature_names)
        return possible_counts(data.n_features, **options, names=data.feature_names)

    def _plan(self, data: Data, *, shared: bool = False) -> Plan:
        """Build the inputs of the engine, which may not write to a table that is ``shared`` by several fits."""
        options = {name: getattr(self, name) for name in GATING_PARAMETERS}
        indicated = np.zeros(0, dtype=np.int64) if data.missing is None else data.missing.indicated
        gating = None
        if indicated.size == 0 and all(value is None for value in options.values()):
            m = validation.resolve_n_features_to_select(self.n_features_to_select, data.n_features)
            counts: dict[str, Any] = {"n_features": data.n_features, "n_features_to_select": m}
        else:
            gates, names = read_gates(data.n_features, self.n_features_to_select, **options, names=data.feature_names)
            gating, m, counts = Gating(gates, names, indicated), gates.expected_size, gates.rule_options()
        network, training = find_network(self.network), self._get_training()
        sizes = {"n_outputs": data.n_outputs, "l2": self.l2, "variant": self.variant}
        schedule = network.schedule(training, data.X.shape[0], m, self._task, **sizes)
        counts |= {name: getattr(training, name) for name in ("mu", "rho", "mask_optimizer")}
        steps = ("warmup_steps", "ramp_steps", "max_steps", "mask_learning_rate")
        rule = Rule(**counts, variant=self.variant, **{name: getattr(schedule, name) for name in steps})
        if self._is_least_squares(data):  # refined in closed form
            schedule = replace(schedule, refinement_steps=0)
        table = data.table
        owned = table.owned and not shared and not self._is_least_squares(data)
        problem = Problem(table.values, data.target.values, data.sample_weight, table.offset, owned)
        if gating is not None:
            problem = gating.restrict(problem)
        return Plan(network, gating, problem, rule, schedule)

    def _is_least_squares(self, data: Data) -> bool:
        """Whether columns are exchanged after the selection and the model is a ridge regression on those kept."""
        plain = data.loss.name == "squared_error" and is_auto(self.l2) and not self._get_training().is_paper
        return plain and find_network(self.network).name in ("linear", "auto")

    def _run(self, plan: Plan, loss: Loss, seed: int, progress: Progress | None = None) -> Fit:
        """Run the engine; without ``progress``, ``verbose`` shows a bar."""
        bar = None
        if self.verbose and progress is None:
            bar = ProgressBar(f"selecting {plan.rule.n_features_to_select} of {plan.rule.n_features}", delay=0.0)

            def progress(step: int, n_alive: int, refined: int) -> None:
                # When the selection will be closed is not known before it is; the end of the ramp is a fair guess.
                before = step - refined if refined else max(step, plan.rule.warmup_steps + plan.rule.ramp_steps)
                total = before + plan.schedule.refinement_steps
                bar.update(step, total, "refining" if refined else f"{n_alive} alive")

        engine = plan.network.engine(self._get_training())
        try:
            return fit_with_rule(engine, plan.problem, plan.rule, loss, plan.schedule, seed=seed, progress=progress)
        finally:
            if bar is not None:
                bar.close()

    def _store(self, data: Data, plan: Plan, fit: Fit, chosen: Choices) -> Any:
        """Rank the selected columns by their contributions and set the fitted attributes."""
        gating, least_squares = plan.gating, self._is_least_squares(data)
        if least_squares and gating is None:
            fit = exchange_columns(fit, plan.problem, plan.schedule.l2, fit.selection.seed or 0)
        record = fit.selection
        support, ranking, history, groups = record.support, record.ranking, dict(record.history), None
        if gating is not None:
            ranking, support = gating.gates.rank_columns(ranking, int(support.sum()))
            groups = None if gating.group_names is None else gating.gates.group
            if "gamma_path_features" in history:
                history["gamma_path_features"] = gating.gates.first_columns()[history["gamma_path_features"]]
        indices = np.flatnonzero(support)
        columns, units = (indices, np.arange(indices.size)) if gating is None else gating.read_columns(support)
        # The engine may have overwritten the normalised table. Statistics of all columns, kept until now, would be four
        # float32 vectors of memory during training: those of the selected columns are computed again.
        few = data.X[:, columns]
        statistics = None if data.normalize is None else column_statistics(few, data.statistics_weight)
        kept = apply_normalization(few, statistics, data.normalize)
        model = fit.model
        if least_squares:
            intercept = bool(self._get_training().fit_intercept)
            model = fit_ridge(kept, data.target.values, data.sample_weight, intercept)
        elif data.loss.name == "squared_hinge" and isinstance(model, LinearModel) and not self._get_training().is_paper:
            l2, n_features = plan.schedule.refinement_l2, plan.rule.n_features
            model = calibrate(model, kept, data.target.values, data.sample_weight, l2, max(n_features, columns.size))
        found = contributions(model, kept.values, kept.offset, data.sample_weight, units, seed=record.seed or 0)
        contribution = np.zeros(data.n_features)
        contribution[indices] = found[units[: indices.size]]
        order = np.argsort(ranking, kind="stable")[: indices.size]
        order = order[np.argsort(-contribution[order], kind="stable")]
        ranked = ranking.copy()
        ranked[order] = np.arange(1, order.size + 1)

        scale = data.target.scale
        self.model_ = model if scale is None else model.rescaled(data.target.mean, scale)
        if isinstance(self.model_, LinearModel):
            self.coef_, self.intercept_ = self.model_.coef, self.model_.intercept
        is_additive = plan.network.name == "additive"
        effects = record_effects(self.model_, order, indices, statistics, data.normalize) if is_additive else None
        ranks: dict[str, Any] = {
            "support": support,
            "ranking": ranked,
            "elimination": ranking,
            "contribution": contribution,
        }
        names: dict[str, Any] = {
            "feature_names": data.feature_names,
            "group_names": None if gating is None else gating.group_names,
        }
        run: dict[str, Any] = {"history": history, "choices": chosen.records(), "effects": effects}
        self.selection_ = replace(record, **ranks, **names, groups=groups, **run)
        self.ranking_, self.gamma_, self.n_iter_ = ranked, self.selection_.gamma, self.selection_.n_steps
        self.n_features_to_select_ = int(self.selection_.group_support.sum())
        self.network_ = next((name for name, one in NETWORKS.items() if one is plan.network), plan.network.name)
        self.l2_, self.loss_ = float(plan.schedule.l2), data.loss.name
        self.normalize_, self.statistics_ = data.normalize, statistics
        self.missing_ = None if data.missing is None else data.missing.of(indices)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        if "n_features_to_select" in chosen.choices:
            self.cv_results_ = cv_results(chosen.choices["n_features_to_select"])
        self._store_target(data.target)
        return self

    def _get_training(self) -> Training:
        return _USUAL if self.training is None else self.training

    def _find_loss(self) -> Loss:
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        return get_loss(self._automatic_loss if automatic else self.loss)

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        """Multiply the weights of the samples by those of their classes."""
        return sample_weight

    def _store_target(self, target: EncodedTarget) -> None:
        """Store what the fitted estimator keeps of its target."""
        raise NotImplementedError

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Data:
        """Check and normalise a table for fits that differ in M, network, groups, ``keep`` or ``drop``.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Data
            For :meth:`fit_prepared`.
        """
        data = clone(self)._check(X, y, sample_weight)
        _ = data.table
        return data

    def fit_prepared(self, data: Data, *, progress: Progress | None = None) -> Any:
        """Fit a copy on a prepared table, which is not changed.

        Nothing is chosen on inner folds.

        Parameters
        ----------
        data : Data
            From :meth:`prepare`.
        progress : callable or None, default=None
            Called about every ten milliseconds with (step, features alive, steps of refinement done); what it raises ends
            the fit.

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
        >>> data = E2EFSClassifier(random_state=0).prepare(X, y)
        >>> [int(E2EFSClassifier(m, random_state=0).fit_prepared(data).get_support().sum()) for m in (1, 3)]
        [1, 3]
        """
        if is_auto(self.n_features_to_select) or is_auto(self.network):
            raise ValueError("fit_prepared chooses nothing from the data: give a number of features and a network.")
        return clone(self)._fit_data(data, progress)

    def _fit_data(self, data: Data, progress: Progress | None = None) -> Any:
        """Fit on a table that other fits share."""
        plan = self._plan(data, shared=True)
        return self._store(data, plan, self._run(plan, data.loss, seed_of(self.random_state), progress), Choices())

    def copy_for(self, n_features_to_select: int) -> Any:
        """Copy the estimator for another M, not fitted, with the network that this fit chose.

        Parameters
        ----------
        n_features_to_select : int
            M of the copy.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        network = self.network_ if "network" in self.selection_.choices else self.network
        return clone(self).set_params(n_features_to_select=n_features_to_select, network=network)

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
        if sizes:
            base = self.copy_for(max(sizes))
            yield from base._fit_sizes(sizes, base._check(X, y, sample_weight))

    def _fit_sizes(
        self, sizes: Sequence[int], data: Data, progress: Progress | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (M, clone fitted for it), largest M first, on a table that all fits share, which none may write to."""
        copies = [clone(self).set_params(n_features_to_select=m) for m in sorted(set(sizes), reverse=True)]
        plans = [one._plan(data, shared=True) for one in copies]
        engine: Any = plans[0].network.engine(self._get_training())
        # A bar, or a seed, for each fit: else fits take common steps where the engine can do that.
        alone = self.verbose or not isinstance(self.random_state, numbers.Integral) or plans[0].gating is not None
        if alone or not hasattr(engine, "fit_path"):
            fits: Iterator[Fit] = (
                one._run(plan, data.loss, seed_of(one.random_state), progress)
                for one, plan in zip(copies, plans, strict=True)
            )
        else:
            rules, schedules = [plan.rule for plan in plans], [plan.schedule for plan in plans]
            fits = engine.fit_path(
                plans[0].problem, rules, data.loss, schedules, seed=int(self.random_state), progress=progress
            )
        for one, plan, fit in zip(copies, plans, fits, strict=True):
            yield one.n_features_to_select, one._store(data, plan, fit, Choices())

    @property
    def feature_importances_(self) -> np.ndarray:
        """Contribution of each column to the outputs of the model; 0 for columns that were not selected."""
        check_is_fitted(self)
        assert self.selection_.contribution is not None
        return self.selection_.contribution

    @property
    def pairs_(self) -> list[PairEffect]:
        """Joint effects of the fitted model, strongest first (pair network only)."""
        return joint_effects(self.model_, self.selection_, self.missing_)

    @property
    def module_(self) -> Any:
        """The trained network as an ``nn.Module`` over the M selected columns (networks with hidden layers only)."""
        model = self.model_
        return model.to_torch() if hasattr(model, "to_torch") else model.module

    def _scores(self, X: Any) -> np.ndarray:
        """Compute the outputs of the model, (n_samples, n_outputs); only the M selected columns are read.

        A data frame may hold the selected columns alone, in any order.
        """
        check_is_fitted(self)
        allow_nan = self.missing_ is not None
        kept = validation.check_kept_columns(self, X, self.selection_.indices, allow_nan)
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
        tags.input_tags.allow_nan = isinstance(self.missing, str) and self.missing == "indicator"
        tags.target_tags.required = True
        return tags
