"""Decide what the data must tell: the weight decay, the network and M, each by inner folds and a rule in favour of the simple.

The decay is chosen first, then the network with it, then M with both, so that a fit never nests one search in another.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tamiz.engines.schedule import SelectionL2
from tamiz.estimators.choice import Choice, choose_guarded, choose_simplest, choose_unbeaten
from tamiz.estimators.inner_folds import (
    Scorer,
    Split,
    TrainingRows,
    find_scorer,
    has_classes,
    inner_splits,
    row_scores,
    smallest_class,
)
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, find_network

#: Folds that choose the weight decay, and how long their fits are: the order of the candidates shows early.
L2_FOLDS, L2_RAMP_STEPS, L2_REFINEMENT_EPOCHS = 3, 5000, 50
#: Scores that are 1 at best, so that a candidate can be left early.
SCORES_UP_TO_ONE = ("balanced_accuracy", "accuracy", "r2")
#: The largest M that is tried by itself.
MOST_FEATURES = 500
_QUIET = threading.Lock()


@dataclass
class Decided:
    """Hold what was decided: parameters for the final fit, and the records for ``Selection.choices``."""

    parameters: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the choices as plain values."""
        return {name: choice.to_dict() for name, choice in self.choices.items()}


def is_auto(value: Any) -> bool:
    """Return whether a parameter is left to the data.

    Examples
    --------
    >>> is_auto("auto"), is_auto(3)
    (True, False)
    """
    return isinstance(value, str) and value == "auto"


def candidates_of_l2(estimator: Any, n_samples: int, n_outputs: int) -> tuple[float, ...]:
    """Return the weight decays to choose from; one or none: there is nothing to choose.

    Examples
    --------
    >>> from tamiz import E2EFSRegressor
    >>> candidates_of_l2(E2EFSRegressor(), 100, 1), candidates_of_l2(E2EFSRegressor(network="mlp"), 100, 1)
    ((1.0, 0.1, 0.01), ())
    """
    network = "linear" if is_auto(estimator.network) else estimator.network
    choose = find_network(network).l2_candidates
    if choose is None or not is_auto(estimator.l2) or getattr(estimator, "schedule", None) == "paper":
        return ()
    return choose(n_samples, n_outputs, estimator._task)


def round_numbers(n_features: int, least: int = 1, most: int = MOST_FEATURES) -> list[int]:
    """Return values of M to try: 1, 2, 3, 5, 10, 20, 50, 100, ... from ``least``, up to all columns or ``most``.

    Examples
    --------
    >>> round_numbers(30), round_numbers(2000, least=4)
    ([1, 2, 3, 5, 10, 20, 30], [4, 5, 10, 20, 50, 100, 200, 500])
    """
    if least > n_features:
        raise ValueError(f"min_features_to_select is {least}, but there are {n_features} columns.")
    end = min(n_features, max(most, least))
    values = {3, *(digit * 10**power for power in range(int(math.log10(end)) + 1) for digit in (1, 2, 5))}
    return sorted({least, *(value for value in values if least < value < end), end})


def score_path(base: Any, values: Sequence[int], rows: TrainingRows, split: Split, scorer: Scorer) -> list[float]:
    """Return the score of each M on the held-out rows of a split; the table is normalised once for all of them."""
    train, test = rows.take(split[0]), rows.take(split[1])
    prepared = clone(base).set_params(n_features_to_select=None)._prepare(*train, check_size=False)
    scores = {m: scorer(fitted, *test[:2]) for m, fitted in base._fit_sizes(values, prepared)}
    return [scores[m] for m in values]


def choose_n_features(
    base: Any, values: Sequence[int], rows: TrainingRows, splits: Sequence[Split], n_jobs: int | None = None
) -> Choice:
    """Choose M by the scores of fits with each value on inner folds.

    Parameters
    ----------
    base : estimator
        With everything but M decided; its ``scoring`` and ``selection_rule`` are used.
    values : sequence of int
        Values of M, ascending.
    rows : TrainingRows
        The rows of the fit.
    splits : sequence of (train rows, test rows)
        The inner folds.
    n_jobs : int or None, default=None
        Folds that run at a time, as in joblib.
    """
    name, scorer = find_scorer(base, base.scoring, rows.y, base._task)
    jobs = (delayed(score_path)(base, values, rows, split, scorer) for split in splits)
    prefer = "threads" if find_network(base.network).compiled else "processes"
    scores = np.array(Parallel(n_jobs=n_jobs, prefer=prefer)(jobs)).T
    return Choice(list(values), scores, choose_simplest(scores, base.selection_rule), base.selection_rule, name)


def choose_l2(base: Any, candidates: Sequence[float], rows: TrainingRows, splits: Sequence[Split]) -> Choice:
    """Choose the weight decay of the linear model; the first candidate stays unless another is better beyond doubt."""
    short = {"ramp_steps": L2_RAMP_STEPS, "refinement_epochs": L2_REFINEMENT_EPOCHS}
    short = {name: value for name, value in short.items() if is_auto(getattr(base, name))}
    base = clone(base).set_params(network="linear", n_init="auto", **short)
    by_row = np.zeros((len(candidates), rows.y.shape[0]))
    by_fold = np.zeros((len(candidates), len(splits)))
    n = rows.y.shape[0]
    predicted: list[list[Any]] = [[] for _ in candidates]
    for split in splits:
        (X, y, weights), (X_test, _, _) = rows.take(split[0]), rows.take(split[1])
        prepared = clone(base)._prepare(X, y, weights)
        for place, l2 in enumerate(candidates):
            # As in the rule, the fewer rows there are, the stronger is the decay.
            candidate = clone(base).set_params(l2=SelectionL2(l2 * n / len(split[0])))
            predicted[place].append(candidate._fit_prepared(prepared, owned=False).predict(X_test))
            del candidate  # its record has several vectors of the width of the table
    order = np.concatenate([test for _, test in splits])
    for place in range(len(candidates)):
        of_rows = row_scores(np.concatenate(predicted[place]), rows.y[order], base._task)
        by_row[place, order] = of_rows
        by_fold[place] = [part.mean() for part in np.split(of_rows, np.cumsum([len(test) for _, test in splits])[:-1])]
    scoring = "balanced_accuracy" if has_classes(rows.y, base._task) else base._task
    return Choice(list(candidates), by_fold, choose_guarded(by_row), "guarded", scoring)


def choose_network(base: Any, rows: TrainingRows, splits: Sequence[Split], l2_of_linear: Any) -> Choice:
    """Choose the simplest network that is within one standard error of the best, or that the best does not clearly beat.

    The simplest comes first. A later one is left when no score on its remaining folds could make it the best: it would not be
    taken whatever they are.
    """
    names = [name for name in AUTOMATIC_NETWORKS if name in NETWORKS]
    scoring, scorer = find_scorer(base, base.scoring, rows.y, base._task)
    largest = 1.0 if scoring in SCORES_UP_TO_ONE else math.inf
    scores, reasons, best = np.full((len(names), len(splits)), np.nan), {}, -math.inf
    for place, name in enumerate(names):
        candidate = clone(base).set_params(**network_parameters(base, name, l2_of_linear))
        try:
            # A network that fails on a fold says so by its score; its warnings would only repeat that. The lock is there
            # because the filters of warnings belong to the whole process.
            with _QUIET, warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                for number, (train, test) in enumerate(splits):
                    model = clone(candidate).fit(*rows.take(train))
                    scores[place, number] = scorer(model, *rows.take(test)[:2])
                    done = number + 1
                    if done < len(splits) and np.nan_to_num(scores[place], nan=largest).mean() <= best:
                        reasons[name] = f"left after {done} of {len(splits)} folds: it could not become the best"
                        break
            best = max(best, float(np.nan_to_num(scores[place].mean(), nan=best)))
        except (MemoryError, ValueError) as error:
            if place == 0:
                raise
            reasons[name] = str(error)
    return Choice(names, scores, choose_unbeaten(scores), "unbeaten", scoring, reasons)


def network_parameters(base: Any, name: str, l2_of_linear: Any) -> dict[str, Any]:
    """Return the parameters of a candidate, without those that its network does not take."""
    parameters: dict[str, Any] = {"network": name}
    if NETWORKS[name].convex:
        parameters["n_init"] = "auto"
    if name in ("linear", "additive"):
        parameters["n_screened"] = "auto"
    if name == "linear":
        parameters["l2"] = l2_of_linear
    return parameters


def decide(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    counts: tuple[int, int],
    n_outputs: int,
    seed: int,
    values: Sequence[int] | None = None,
) -> Decided:
    """Decide every "auto" of an estimator that the data must tell.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters; it is not changed.
    X, y, sample_weight : array-like
        The data of its fit, checked.
    counts : (int, int)
        The least and the largest M that are possible.
    n_outputs : int
        Outputs of the model.
    seed : int
        Seed of the inner fits and folds.
    values : sequence of int or None, default=None
        Values of M of a path, which is chosen from elsewhere; None: M is that of the estimator.
    """
    rows = TrainingRows(X, y, sample_weight)
    decided = Decided()
    base = clone(estimator).set_params(random_state=seed, verbose=0)
    if values is None and is_auto(base.n_features_to_select):
        values = round_numbers(counts[1], max(counts[0], base.min_features_to_select))
    if values is not None:  # one M for decay and network, in the middle of the path
        base.set_params(n_features_to_select=values[len(values) // 2])
    candidates = candidates_of_l2(base, rows.y.shape[0], n_outputs)
    l2 = base.l2
    if len(candidates) > 1 and _can_split(rows, base._task):
        splits = inner_splits(rows, base._task, L2_FOLDS, seed, "l2='auto'")
        choice = decided.choices["l2"] = choose_l2(base, candidates, rows, splits)
        l2 = SelectionL2(choice.chosen)
    if is_auto(base.network):
        splits = inner_splits(rows, base._task, base.cv, seed, "network='auto'")
        network = decided.choices["network"] = choose_network(base, rows, splits, l2)
        decided.parameters |= network_parameters(base, network.chosen, l2)
    elif isinstance(l2, SelectionL2):
        decided.parameters["l2"] = l2
    if is_auto(estimator.n_features_to_select):
        base.set_params(**decided.parameters)
        splits = inner_splits(rows, base._task, base.cv, seed, "n_features_to_select='auto'")
        assert values is not None
        chosen = decided.choices["n_features_to_select"] = choose_n_features(base, values, rows, splits)
        decided.parameters["n_features_to_select"] = int(chosen.chosen)
    return decided


def _can_split(rows: TrainingRows, task: str) -> bool:
    """Return whether every class can be learnt and tested; if not, the rule decides about the weight decay."""
    return not has_classes(rows.y, task) or smallest_class(rows.y)[1] >= 2


def cv_results(choice: Choice) -> dict[str, np.ndarray]:
    """Return the scores of a choice of M in the form of scikit-learn's ``RFECV.cv_results_``.

    Examples
    --------
    >>> found = cv_results(Choice([1, 2], np.array([[0.5, 0.7], [0.9, 0.9]]), 1, "best", "accuracy"))
    >>> sorted(found), found["n_features"].tolist()
    (['mean_test_score', 'n_features', 'split0_test_score', 'split1_test_score', 'std_test_score'], [1, 2])
    """
    splits = {f"split{number}_test_score": scores for number, scores in enumerate(choice.scores.T)}
    return {
        "n_features": np.array(choice.candidates),
        "mean_test_score": choice.scores.mean(axis=1),
        "std_test_score": choice.scores.std(axis=1),
        **splits,
    }
