"""Fit several estimators on one table that is checked and normalised once, with a way to end a fit early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import clone

from tamiz.engines.contract import Progress
from tamiz.engines.schedule import SelectionL2
from tamiz.estimators._base import BaseE2EFS
from tamiz.estimators._prepared import PreparedData
from tamiz.estimators.automatic import candidates_of_l2, is_auto


def prepare_once(estimator: BaseE2EFS, X: Any, y: Any, sample_weight: Any = None) -> PreparedData:
    """Check and normalise a table for fits that differ in M, network, groups, ``keep`` or ``drop``.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its ``normalize``, ``loss``, ``class_weight`` and ``missing`` hold for all fits.
    X, y : table and target
        As :meth:`E2EFSClassifier.fit` takes them.
    sample_weight : array-like or None, default=None
        Weights of the rows.

    Returns
    -------
    PreparedData
        For :func:`fit_prepared`.
    """
    return clone(estimator)._prepare(X, y, sample_weight, check_size=False)


def fit_prepared(estimator: BaseE2EFS, prepared: PreparedData, *, progress: Progress | None = None) -> Any:
    """Return a fitted copy of an estimator, trained on a prepared table, which is not changed.

    Nothing is chosen on inner folds: ``l2="auto"`` is the rule for the size of the table. The copy has the parameters that
    repeat the fit from the table itself.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        With a number of features and a network that are not "auto".
    prepared : PreparedData
        From :func:`prepare_once`.
    progress : callable or None, default=None
        Called about every ten milliseconds with (step, features alive, steps of refinement done); what it raises ends the
        fit.

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
    >>> selector = E2EFSClassifier(random_state=0)
    >>> prepared = prepare_once(selector, X, y)
    >>> [fit_prepared(selector.set_params(n_features_to_select=m), prepared).get_support().sum() for m in (1, 3)]
    [np.int64(1), np.int64(3)]
    """
    return _with_rule(estimator, prepared)._fit_prepared(prepared, owned=False, progress=progress)


def fit_prepared_sizes(
    estimator: BaseE2EFS, sizes: Sequence[int], prepared: PreparedData, *, progress: Progress | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (M, fitted copy) for several M, each as :func:`fit_prepared` returns it, from the largest M to the smallest.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        As for :func:`fit_prepared`; its own number of features is not used.
    sizes : sequence of int
        The values of M.
    prepared : PreparedData
        From :func:`prepare_once`.
    progress : callable or None, default=None
        As for :func:`fit_prepared`.

    Yields
    ------
    (int, estimator)
    """
    yield from _with_rule(estimator, prepared)._fit_sizes(sizes, prepared, progress)


def _with_rule(estimator: BaseE2EFS, prepared: PreparedData) -> BaseE2EFS:
    """Return a copy whose weight decay is that of the rule for the size of the table."""
    if is_auto(estimator.n_features_to_select) or is_auto(estimator.network):
        raise ValueError("fit_prepared chooses nothing from the data: give a number of features and a network.")
    final = clone(estimator)
    candidates = candidates_of_l2(final, prepared.target.values.shape[0], prepared.n_outputs)
    if len(candidates) > 1:
        final.set_params(l2=SelectionL2(candidates[0]))
    return final
