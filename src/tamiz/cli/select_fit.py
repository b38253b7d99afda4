"""Fit the final model of ``tamiz select`` and score its selection inside folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tamiz._utils.text import quote
from tamiz.cli.console import Terminal
from tamiz.cli.constraints import Constraints
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.estimator import ModelOptions, fit_model, model_maker
from tamiz.cli.prepare import Prepared, parse_k, resolve_k
from tamiz.cli.select import SelectOptions
from tamiz.cli.select_checks import count_permutations
from tamiz.estimators.chooser import round_numbers
from tamiz.estimators.networks import find_network
from tamiz.evaluation.cross_validation import cross_validate, curve_sizes
from tamiz.evaluation.metrics import Metric
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.subjects import Subject
from tamiz.rows.rows import Rows

#: Rows that every training part of the folds needs to be split once more, to choose M.
_ROWS_FOR_AUTO, _ROWS_OF_A_CLASS_FOR_AUTO = 8, 3


def asked_number(options: SelectOptions) -> int | float | str:
    """Return M as the user gave it: a number, a fraction or "auto"."""
    return "auto" if options.k in (None, "auto") and options.budget is None else parse_k(options.k or "1")


def check_asked(k: int | float | str, n_features: int) -> None:
    """Raise if the table has fewer columns than M."""
    if not isinstance(k, str):
        resolve_k(k, n_features)


def check_enough_rows(data: Prepared) -> None:
    """Raise if a training part of the folds cannot be split once more, to choose M."""
    if data.target.task == "regression":
        if len(data.y) < _ROWS_FOR_AUTO:
            raise CommandError(
                f"-k auto needs at least {_ROWS_FOR_AUTO} rows, there are {len(data.y)}: give -k a number.", EXIT_USAGE
            )
        return
    labels, counts = np.unique(data.y, return_counts=True)
    if counts.min() < _ROWS_OF_A_CLASS_FOR_AUTO:
        raise CommandError(
            f"-k auto needs at least {_ROWS_OF_A_CLASS_FOR_AUTO} rows of each class, and {quote(labels[counts.argmin()])} has "
            f"{counts.min()}: give -k a number.",
            EXIT_USAGE,
        )


def _model_options(options: SelectOptions, constraints: Constraints) -> ModelOptions:
    return ModelOptions(
        options.variant, options.network, options.loss or "auto", options.class_weight, constraints.parameters
    )


def fit_final(
    data: Prepared, k: int | str, options: SelectOptions, constraints: Constraints, terminal: Terminal
) -> tuple[Any, Any, Any]:
    """Return the encoder, the matrix of all rows and the model fitted on it."""
    with terminal.progress("final model on all rows", 1) as tick:
        encoder, matrix = data.whole()
        chosen = _model_options(options, constraints)
        roles = data.roles
        given = matrix, data.y, roles.weights, roles.groups, roles.time
        estimator = fit_model(chosen, data.target.task, k, options.seed, *given)
        tick()
    return encoder, matrix, estimator


def report_choice(estimator: Any, n_features: int, terminal: Terminal) -> None:
    """Report the M that was chosen, and by what."""
    choice = estimator.selection_.choices["n_features_to_select"]
    best = choice["candidates"][int(np.nanargmax(np.array(choice["mean"], dtype=float)))]
    terminal.say(
        f"Features to keep: {choice['chosen']:,} of {n_features:,}, the fewest within one standard error of the best mean score "
        f"(of {best:,}) on {len(choice['scores'][0])} folds of all rows; -k sets the number."
    )


def evaluate_final(
    data: Prepared,
    metric: Metric,
    options: SelectOptions,
    constraints: Constraints,
    estimator: Any,
    terminal: Terminal,
    automatic: bool,
) -> Evaluation:
    """Select and score in each fold, and with permuted rows."""
    network = find_network(options.network)
    k = estimator.n_features_to_select_
    n_permutations = count_permutations(options.permutations, network.quick, data, terminal)
    if not network.quick:
        n_fits = (5 + n_permutations) * len(data.folds) + 1
        terminal.say(
            f"Network {options.network}: {n_fits} trainings of seconds each (longer with wide tables), "
            f"{data.n_jobs} side by side; --network linear takes a fraction of that."
        )
    rows = data.as_rows(options.split_categories)
    make = model_maker(_model_options(options, constraints), data.target.task)
    selector = make("auto" if automatic else k, options.seed).set_params(**_of_columns(constraints, rows))
    subject = Subject(selector, rows, data.target.task)
    total = len(data.folds) + n_permutations
    with terminal.progress("cross-validation", total) as tick:
        return cross_validate(
            subject,
            data.folds,
            metric,
            n_folds=len(data.folds) // options.n_repeats,
            # Where a fit takes seconds instead of milliseconds there is no curve, and there are few random draws.
            sizes=_sizes(constraints, k, automatic) if network.quick else (),
            n_random=5 if network.quick else 3,
            n_permutations=n_permutations,
            n_kept=k,
            seed=options.seed,
            n_jobs=data.n_jobs,
            progress=lambda *_: tick(),
        )


def _of_columns(constraints: Constraints, rows: Rows) -> dict[str, Any]:
    """Return the constraints by names of columns of the file."""
    found: dict[str, Any] = {"groups": None}
    names = [rows.names[column] for column in rows.columns]
    for option in ("keep", "drop"):
        if option in constraints.parameters:
            found[option] = list(dict.fromkeys(names[i] for i in constraints.parameters[option]))
    if "costs" in constraints.parameters:
        costs = np.bincount(rows.columns, weights=constraints.parameters["costs"])
        found["costs"] = dict(zip(rows.names, costs.tolist(), strict=True))
    return found


def _sizes(constraints: Constraints, k: int, automatic: bool) -> list[int]:
    """Return the numbers of features of the curve: those that were tried, or numbers around the given one; none in a budget."""
    if constraints.parameters.get("budget") is not None:
        return []
    least, most = constraints.counts
    sizes = {*round_numbers(most, least), k} if automatic else {*curve_sizes(most, k)}
    return sorted(size for size in sizes if least <= size <= most)


def fit_other_sizes(estimator: Any, matrix: Any, data: Prepared, sizes: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield (M, model) for the final model with other numbers of features."""
    others = [size for size in sizes if size != estimator.n_features_to_select_]
    return estimator.fit_copies(others, matrix, data.y, sample_weight=data.roles.weights)


def report_convergence(evaluation: Evaluation, estimator: Any, terminal: Terminal) -> None:
    """Warn of fits in which the step limit had to decide."""
    late = sum(not fold.converged for fold in evaluation.folds) + (not estimator.selection_.converged)
    if late:
        terminal.warn(
            f"In {late} of {len(evaluation.folds) + 1} fits the step limit had to decide which features to keep."
        )
