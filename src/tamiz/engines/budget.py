"""Fit within a budget: what an engine kept, and whatever else still fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tamiz.core.closing import fill_budget
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Engine, Fit, Problem, Progress
from tamiz.engines.schedule import Schedule


def fit_with_rule(
    engine: Engine,
    problem: Problem,
    rule: Rule,
    loss: Loss,
    schedule: Schedule,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Fit:
    """Fit an engine; with a budget, take what was eliminated but still fits, and train the model on all of it.

    An engine eliminates features until the rest fits, and forgets what it eliminated. So where something still fits beside
    that, the model is trained once more, on the kept columns alone.

    Parameters
    ----------
    engine : Engine
        What trains the model.
    problem, rule, loss, schedule, seed, progress
        As for ``engine.fit``.

    Returns
    -------
    Fit
        The kept features cost at most the budget, and no other would still fit.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.linear import LinearEngine
    >>> from tamiz.engines.schedule import linear_schedule
    >>> X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 5] > 0, 1.0, -1.0)[:, None]
    >>> schedule = linear_schedule(60, 2, "classification", ramp_steps=2000, refinement_epochs=5)
    >>> rule = Rule(6, 0, ramp_steps=2000, costs=[1, 1, 1, 4, 1, 4], budget=9)
    >>> fit = fit_with_rule(LinearEngine(), Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.support[[3, 5]].tolist(), int(rule.costs[fit.selection.support].sum())
    ([True, True], 9)
    """
    if rule.costs is None:
        return engine.fit(problem, rule, loss, schedule, seed=seed, progress=progress)
    # The table is needed once more: no engine may overwrite it.
    problem = replace(problem, owned=False)
    fit = engine.fit(problem, rule, loss, schedule, seed=seed, progress=progress)
    selection = fit.selection
    ranking, n_kept = fill_budget(selection.ranking, int(selection.support.sum()), rule.costs, rule.limit)
    if n_kept == selection.support.sum():
        return fit
    kept = ranking <= n_kept
    columns = np.flatnonzero(problem.columns_of(kept))
    groups = None
    if problem.groups is not None:
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        groups = np.where(problem.groups[columns] < 0, -1, number[problem.groups[columns]])
    part = replace(
        problem,
        X=problem.X[:, columns],
        offset=None if problem.offset is None else problem.offset[columns],
        owned=True,
        groups=groups,
    )
    decided = replace(rule, n_features=n_kept, n_features_to_select=n_kept, costs=None, budget=None)
    model = engine.fit(part, decided, loss, schedule, seed=seed, progress=progress)
    seconds, n_steps = (getattr(selection, name) + getattr(model.selection, name) for name in ("seconds", "n_steps"))
    return Fit(replace(selection, support=kept, ranking=ranking, seconds=seconds, n_steps=n_steps), model.model)
