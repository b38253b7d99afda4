"""Tell an engine what the parameters of an estimator ask for, run it, and rank what it kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._validation import resolve_n_features_to_select
from tamiz.core import Rule
from tamiz.engines import Problem, Schedule
from tamiz.engines.budget import fit_with_rule
from tamiz.engines.contract import Fit, Progress
from tamiz.estimators._effects import record_effects
from tamiz.estimators._gating import Gating, read_gating
from tamiz.estimators._prepared import PreparedData, seed_of
from tamiz.estimators.networks import Network, find_network, find_schedule
from tamiz.estimators.progress import watch_selection
from tamiz.preprocessing.scaling import apply_normalization
from tamiz.selection import Selection

if TYPE_CHECKING:
    from tamiz.estimators._base import BaseE2EFS

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
    from tamiz.engines.contribution import contributions  # loads numba

    # The engine may have overwritten the normalised table.
    kept = apply_normalization(prepared.source[:, columns], estimator.statistics_, estimator.normalize_)
    units = np.arange(columns.size) if gating is None else gating.units_of(columns)
    found = contributions(
        model, kept.values, kept.offset, prepared.sample_weight, units, seed=selection.seed or 0
    )  # fmt: skip
    return selection.ranked_by(found[units[: selection.n_features_to_select]])
