"""What classifier and regressor share: check the rows, choose every "auto", run the engine, keep the result."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
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
from tamiz.core.gates import DROPPED, Gates, possible_counts, read_gates
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import VARIANTS, Rule
from tamiz.engines.contract import Fit, Problem, Progress, fit_with_rule
from tamiz.engines.linear import LinearModel
from tamiz.engines.schedule import Schedule
from tamiz.estimators.chooser import Choices, choose, cv_results
from tamiz.estimators.effects import PairEffect, contributions, joint_effects, record_effects
from tamiz.estimators.least_squares import calibrate, exchange_columns, fit_logistic, fit_ridge
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, Dense, Network, Pairs, TorchNetwork, find_network
from tamiz.estimators.passes import SELECTION_ROWS, fit_in_passes, has_rare_class, rows_that_fit
from tamiz.estimators.training import GATING_PARAMETERS, Auto, NamedParameters, Options, Training, is_auto
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.passes import Reservoir
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
from tamiz.selection import Selection

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand for the class of scikit-learn."""

    def with_callbacks(method: Any) -> Any:
        """Leave a method as it is."""
        return method


SPARSE_FORMATS = ("csr", "csc")
#: Parts of the training that callbacks of scikit-learn hear of.
N_PARTS = 100
#: Rows from which on the final linear model of classes is a logistic regression.
ROWS_FOR_LOGISTIC = 1_000
_USUAL = Training()


@dataclass(frozen=True, eq=False)
class Data:
    """The checked rows of a fit: what does not depend on M, shared by the fits of a path."""

    X: Any  # the table without missing values, indicators behind the columns of the user
    n_features: int
    feature_names: np.ndarray | None
    target: EncodedTarget
    sample_weight: np.ndarray
    loss: Loss
    missing: MissingValues | None
    normalize: str | None
    statistics_weight: np.ndarray  # weights of the rows in mean and deviation of the columns

    @cached_property
    def table(self) -> ScaledTable:
        """Normalise the table, once."""
        return prepare_table(self.X, self.normalize, self.statistics_weight)


@dataclass(frozen=True, eq=False)
class Plan:
    """Inputs of one run of an engine."""

    network: Network
    problem: Problem
    rule: Rule
    schedule: Schedule
    closed_form: bool  # whether columns are exchanged after the selection, and the model is a ridge regression
    gates: Gates | None  # how columns of the user relate to features of the engine; None: each column is a feature
    group_names: np.ndarray | None  # names of the groups, if groups were given


def seed_of(random_state: Any) -> int:
    """Take an integer as it is, so that the record can repeat the run; draw one from anything else."""
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


@contextmanager
def fit_task(estimator: Any, parent: Any, name: str, n_parts: int = 0, **data: Any) -> Iterator[Any]:
    """Tell the callbacks of an estimator that a part of its fit begins and ends; None without callbacks.

    The context of the part is that of scikit-learn's ``CallbackContext``, the whole fit where ``parent`` is None.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        yield None
        return
    begin = estimator._init_callback_context if parent is None else parent.subcontext
    context = begin(name, max_subtasks=n_parts)
    context.call_on_fit_task_begin(estimator=estimator, **data)
    yield context
    context.call_on_fit_task_end(estimator=estimator, **data)


class BaseE2EFS(NamedParameters, CallbackSupportMixin, SelectorMixin, BaseEstimator):
    """Base of :class:`E2EFSClassifier` and :class:`E2EFSRegressor`."""

    selection_: Selection
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

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call; a study makes thousands.
        return super()._get_param_names()

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

    @with_callbacks
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
        # Whatever ends a fit early, also Ctrl-C, leaves an estimator that is not fitted.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        settings, X, names = self._for_table(X)
        source = as_source(X, y)
        if source is None and getattr(X, "ndim", 0) == 2 and X.shape[0] > 2 * SELECTION_ROWS:
            target = as_target(y)
            if not has_rare_class(target, self._task):  # all rows are at hand: none of a rare class may be lost
                source = in_blocks(X, target)
        of_rows = {"sample_weight": sample_weight, "groups": groups, "time": time}
        if source is not None:
            self._validate_params()
            max_memory = (self.training or _USUAL).max_memory
            self.__dict__.update(fit_in_passes(settings, source, max_memory, seed_of(self.random_state), of_rows))
        else:
            data, chosen = self.prepare(X, y, sample_weight), None
            seed, automatic = seed_of(self.random_state), self._is_automatic()
            with fit_task(self, None, "fit", 1 + automatic, X=X, y=y) as whole:
                if automatic:
                    with fit_task(self, whole, "choose"):
                        chosen = choose(settings, Rows(X, y, **of_rows), settings._possible_counts(data), seed)
                    settings = clone(settings).set_params(**chosen.parameters)
                with fit_task(self, whole, "train", N_PARTS) as task:
                    if chosen is not None and chosen.fitted is not None:
                        found = {name: value for name, value in vars(chosen.fitted).items() if name.endswith("_")}
                        self.__dict__.update(found, selection_=replace(found["selection_"], choices=chosen.records()))
                    else:
                        plan = settings._plan(data)
                        self._store(data, plan, settings._run(plan, data.loss, seed, task=task), chosen)
        if names is not None:
            self.selection_ = self.selection_.with_names(names)
        return self

    def _for_table(self, X: Any) -> tuple[Any, Any, list[str] | None]:
        """Make a column of the user's table the unit: group the levels of an encoded one, and list the names of features."""
        encoded = validation.encoded_columns(X) if self.groups is None else None
        if encoded is None:
            return self, X, None
        names, columns = encoded
        settings = clone(self).set_params(groups=columns) if len(set(columns)) < len(columns) else self
        return settings, np.asarray(X) if isinstance(X, np.ndarray) else X, names

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
            n_rows = rows_that_fit((self.training or _USUAL).max_memory, checked.shape[1], SELECTION_ROWS)
            self._stream, self._n_fitted = Reservoir(n_rows, seed_of(self.random_state)), 0
        self._stream.push(checked, y)
        ready = self._stream.n_seen >= 2 * self._n_fitted  # the rows have doubled
        if ready and (classes is None or set(np.asarray(classes).tolist()) <= set(self._stream.targets())):
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
        self._n_fitted = self._stream.n_seen
        X, y, _ = self._stream.sample()
        return self.fit(X, y)

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
        settings, X, _ = self._for_table(X)
        data = self.prepare(X, y, sample_weight)
        if not self._is_automatic():
            return Choices()
        rows, seed = Rows(X, y, sample_weight=sample_weight, groups=groups, time=time), seed_of(self.random_state)
        return choose(settings, rows, settings._possible_counts(data), seed, progress=progress)

    def _is_automatic(self) -> bool:
        """Whether M or the network is chosen on inner folds."""
        return is_auto(self.n_features_to_select) or is_auto(self.network)

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Data:
        """Check a table, for fits that differ in M, network, groups, ``keep`` or ``drop``; it is normalised once for all.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Data
            For :meth:`fit_prepared`.
        """
        self._validate_params()
        for given in (self.network, self.training):
            if isinstance(given, Options):
                given.check()
        loss, is_paper = self._find_loss(), (self.training or _USUAL).recipe == "paper"
        allow_nan, names_of = self.missing == "indicator", clone(self)
        X = check_table(names_of, X, reset=True, accept_sparse=list(SPARSE_FORMATS), min_samples=2, allow_nan=allow_nan)
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
        names, of_statistics = getattr(names_of, "feature_names_in_", None), weights if is_paper else weighted
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
        gates = group_names = None
        if indicated.size == 0 and all(value is None for value in options.values()):
            m = validation.resolve_n_features_to_select(self.n_features_to_select, data.n_features)
            of_rule: dict[str, Any] = {"n_features": data.n_features, "n_features_to_select": m}
        else:
            gates, group_names = read_gates(
                data.n_features, self.n_features_to_select, **options, names=data.feature_names
            )
            m, of_rule = gates.expected_size, gates.rule_options()
        network, training = find_network(self.network), self.training or _USUAL
        n_outputs = data.loss.decision(data.target.values[:1]).shape[1]  # two competing ones are one
        sizes = {"n_outputs": n_outputs, "l2": self.l2, "variant": self.variant}
        schedule = network.schedule(training, data.X.shape[0], m, self._task, **sizes)
        of_rule |= {name: getattr(training, name) for name in ("mu", "rho", "mask_optimizer")}
        steps = ("warmup_steps", "ramp_steps", "max_steps", "mask_learning_rate")
        rule = Rule(**of_rule, variant=self.variant, **{name: getattr(schedule, name) for name in steps})
        closed_form = data.loss.name == "squared_error" and is_auto(self.l2) and training.recipe != "paper"
        closed_form = closed_form and network.name in ("linear", "auto")
        most = m if gates is None else data.X.shape[1]
        if closed_form or (network.name in ("linear", "auto") and self._ends_logistic(data, most)):
            schedule = replace(schedule, refinement_steps=0)
        table = data.table
        owned = table.owned and not shared and not closed_form
        problem = Problem(table.values, data.target.values, data.sample_weight, table.offset, owned)
        if gates is not None:
            feature = gates.column_feature
            feature = np.concatenate([feature, feature[indicated]])  # an indicator is of the group of its column
            columns = np.flatnonzero(feature != DROPPED)
            if columns.size < feature.size:
                offset = None if problem.offset is None else problem.offset[columns]
                problem = replace(problem, X=problem.X[:, columns], offset=offset, owned=True)
            is_plain = np.array_equal(feature[columns], np.arange(gates.n_features))
            problem = replace(problem, groups=None if is_plain else feature[columns])
        return Plan(network, problem, rule, schedule, closed_form, gates, group_names)

    def _run(self, plan: Plan, loss: Loss, seed: int, progress: Progress | None = None, task: Any = None) -> Fit:
        """Run the engine; without ``progress``, ``verbose`` shows a bar, and callbacks hear of ``task``."""
        if progress is not None or not (self.verbose or task):
            bar = None
        else:
            n_done, title = 0, f"selecting {plan.rule.n_features_to_select} of {plan.rule.n_features}"
            bar = ProgressBar(title, delay=0.0) if self.verbose else None

            def progress(step: int, n_alive: int, refined: int) -> None:
                nonlocal n_done
                # When the selection will be closed is not known before it is; the end of the ramp is a fair guess.
                before = step - refined if refined else max(step, plan.rule.warmup_steps + plan.rule.ramp_steps)
                total = before + plan.schedule.refinement_steps
                if bar is not None:
                    bar.update(step, total, "refining" if refined else f"{n_alive} alive")
                while task is not None and n_done < N_PARTS * step // total:
                    with fit_task(self, task, "refinement" if refined else "selection"):
                        n_done += 1

        engine = plan.network.engine(self.training or _USUAL)
        try:
            return fit_with_rule(engine, plan.problem, plan.rule, loss, plan.schedule, seed=seed, progress=progress)
        finally:
            if bar is not None:
                bar.close()

    def _store(self, data: Data, plan: Plan, fit: Fit, chosen: Choices | None = None) -> Any:
        """Rank the selected columns by their contributions and set the fitted attributes."""
        gates = plan.gates
        if plan.closed_form and plan.problem.groups is None and plan.rule.costs is None:
            fit = exchange_columns(fit, plan.problem, plan.schedule.l2, fit.selection.seed or 0)
        record, model = fit.selection, fit.model
        support, elimination, history = record.support, record.ranking, dict(record.history)
        if gates is not None:
            elimination, support = gates.rank_columns(elimination, int(support.sum()))
            if "gamma_path_features" in history:
                history["gamma_path_features"] = gates.first_columns()[history["gamma_path_features"]]
        indices = columns = np.flatnonzero(support)
        units = np.arange(indices.size)
        if gates is not None:
            indicated = np.zeros(0, dtype=np.int64) if data.missing is None else data.missing.indicated
            columns = np.concatenate([indices, support.size + np.flatnonzero(support[indicated])])
            of_groups = np.concatenate([gates.group, gates.group[indicated]])
            units = np.unique(of_groups[columns], return_inverse=True)[1]
        # The engine may have overwritten the normalised table. Statistics of all columns, kept until now, would be four
        # float32 vectors of memory during training: those of the selected columns are computed again.
        few = data.X if columns.size == data.X.shape[1] else data.X[:, columns]
        statistics = None if data.normalize is None else column_statistics(few, data.statistics_weight)
        model, kept, normalize, loss = self._final_model(model, data, plan, few, statistics)
        found = contributions(model, kept.values, kept.offset, data.sample_weight, units, seed=record.seed or 0)
        contribution = np.zeros(data.n_features)
        contribution[indices] = found[units[: indices.size]]
        order = np.argsort(elimination, kind="stable")[: indices.size]
        order = order[np.argsort(-contribution[order], kind="stable")]
        ranking = elimination.copy()
        ranking[order] = np.arange(1, order.size + 1)
        if data.target.scale is not None:
            model = model.rescaled(data.target.mean, data.target.scale)
        effects = None
        if plan.network.name == "additive":
            effects = record_effects(model, order, indices, statistics, normalize)

        self.selection_ = replace(
            record,
            support=support,
            ranking=ranking,
            elimination=elimination,
            contribution=contribution,
            history=history,
            effects=effects,
            feature_names=data.feature_names,
            groups=None if gates is None or plan.group_names is None else gates.group,
            group_names=plan.group_names,
            choices={} if chosen is None else chosen.records(),
        )
        self.model_ = model
        if isinstance(model, LinearModel):
            self.intercept_ = model.intercept
        self.ranking_, self.gamma_, self.n_iter_ = ranking, support.astype(np.float32), record.n_steps
        n_units = indices.size if gates is None or plan.group_names is None else np.unique(gates.group[indices]).size
        self.n_features_to_select_ = n_units
        self.network_ = next((name for name, one in NETWORKS.items() if one is plan.network), plan.network.name)
        self.l2_, self.loss_ = float(plan.schedule.l2), loss
        self.normalize_, self.statistics_ = normalize, statistics
        self.missing_ = None if data.missing is None else data.missing.of(indices)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        if chosen is not None and "n_features_to_select" in chosen.choices:
            self.cv_results_ = cv_results(chosen.choices["n_features_to_select"])
        if self._task == "classification":
            self.classes_: Any = data.target.classes
            self.multilabel_ = data.target.codes is None
        else:
            self.one_dimensional_ = data.target.one_dimensional
        return self

    def _final_model(self, model: Any, data: Data, plan: Plan, few: Any, statistics: Any) -> tuple[Any, Any, Any, str]:
        """Train or calibrate the model of the kept columns; return it, these columns, their normalisation and its loss."""
        normalize, loss, training = data.normalize, data.loss.name, self.training or _USUAL
        kept, n_features = apply_normalization(few, statistics, normalize), max(plan.rule.n_features, few.shape[1])
        of_rows = data.target.values, data.sample_weight
        if plan.closed_form:
            return fit_ridge(kept, *of_rows, n_features, bool(training.fit_intercept)), kept, normalize, loss
        if loss != "squared_hinge" or not isinstance(model, LinearModel) or training.recipe == "paper":
            return model, kept, normalize, loss
        if not self._ends_logistic(data, few.shape[1]):
            return calibrate(model, kept, *of_rows, plan.schedule.refinement_l2, n_features), kept, normalize, loss
        # erf bends what is a line in a column, for the sake of far values: the rows tell which is better.
        kinds = ("erf", "standard") if self.normalize == "auto" else (normalize,)
        tables = [apply_normalization(few, statistics, kind) for kind in kinds]
        model, best = fit_logistic(tables, *of_rows, n_features)
        return model, tables[best], kinds[best], "logistic" if of_rows[0].shape[1] == 1 else "softmax"

    def _ends_logistic(self, data: Data, n_columns: int) -> bool:
        """Whether the final linear model of so many columns is a logistic regression."""
        training = self.training or _USUAL
        automatic = self.loss == "auto" and is_auto(self.l2) and training.recipe != "paper" and training.fit_intercept
        classes = data.loss.name == "squared_hinge" and data.target.codes is not None
        return bool(automatic) and classes and data.X.shape[0] >= max(ROWS_FOR_LOGISTIC, 10 * n_columns)

    def _find_loss(self) -> Loss:
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        return get_loss(self._automatic_loss if automatic else self.loss)

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        """Multiply the weights of the samples by those of their classes."""
        return sample_weight

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
        if self._is_automatic():
            raise ValueError("fit_prepared chooses nothing from the data: give a number of features and a network.")
        found = clone(self)
        plan = found._plan(data, shared=True)
        return found._store(data, plan, found._run(plan, data.loss, seed_of(found.random_state), progress))

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
        choice = self.selection_.choices.get("network")
        network = self.network if choice is None else AUTOMATIC_NETWORKS[choice["chosen"]]
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
            yield from base._fit_sizes(sizes, base.prepare(X, y, sample_weight))

    def _fit_sizes(
        self, sizes: Sequence[int], data: Data, progress: Progress | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (M, clone fitted for it), largest M first, on a table that all fits share, which none may write to."""
        copies = [clone(self).set_params(n_features_to_select=m) for m in sorted(set(sizes), reverse=True)]
        plans = [one._plan(data, shared=True) for one in copies]
        engine: Any = plans[0].network.engine(self.training or _USUAL)
        # A bar, or a seed, for each fit: else fits take common steps where the engine can do that.
        alone = self.verbose or not isinstance(self.random_state, numbers.Integral) or plans[0].gates is not None
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
            yield one.n_features_to_select, one._store(data, plan, fit)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Contribution of each column to the outputs of the model; 0 for columns that were not selected."""
        check_is_fitted(self)
        assert self.selection_.contribution is not None
        return self.selection_.contribution

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the normalised columns, 0 for those not selected (linear network only)."""
        model, indices = self.model_, self.selection_.indices
        if not isinstance(model, LinearModel):
            raise AttributeError(f"the network {self.network_!r} has no coef_; see feature_importances_")
        found = np.zeros((len(model.coef), self.selection_.n_features), dtype=model.coef.dtype)
        found[:, indices] = model.coef[:, : indices.size]  # weights of missing indicators follow
        return found

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
