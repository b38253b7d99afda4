"""Random fits over shapes, types, losses, variants, groups and budgets: exactly M features, always."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.core.losses import LOSSES
from tamiz.core.rule import VARIANTS

TYPES = [np.float64, np.float32, np.int64, np.int8, bool]
LAYOUTS = [np.ascontiguousarray, np.asfortranarray, lambda X: X[:, ::1], sp.csr_matrix, sp.csc_matrix, sp.coo_matrix]
pytestmark = pytest.mark.timeout(3600)


def random_table(rng):
    """Draws a table: usual numbers, and what tables should not hold but do."""
    n, f = int(rng.integers(4, 60)), int(rng.integers(1, 120))
    X = rng.normal(size=(n, f)) * 10.0 ** rng.choice([-8, -2, 0, 0, 0, 3, 12], size=f)
    strange = [
        lambda j: rng.normal(),  # constant
        lambda j: X[:, rng.integers(f)],  # twice the same
        lambda j: rng.integers(0, 2, n),
        lambda j: np.where(np.arange(n) == rng.integers(n), 1e6, X[:, j]),  # far out
        lambda j: 0,
        lambda j: 1e9 + np.arange(n),
    ]
    for j in rng.integers(f, size=rng.integers(0, 4)):
        X[:, j] = strange[rng.integers(len(strange))](j)
    dtype = TYPES[rng.integers(len(TYPES))]
    X = np.clip(X, -100, 100).astype(dtype) if dtype in (np.int64, np.int8, bool) else X.astype(dtype)
    if rng.random() < 0.3:
        X = X * (rng.random(X.shape) < 0.3)
    layout = LAYOUTS[rng.integers(len(LAYOUTS))]
    return layout(X), X


def random_target(rng, dense, task):
    n, f = dense.shape
    signal = dense[:, rng.integers(f)].astype(float)
    if task == "regression":
        y = signal + rng.normal(size=n) * max(1e-3, float(np.std(signal)))
        return y if rng.random() < 0.8 else np.column_stack([y, rng.normal(size=n)])
    classes = int(rng.integers(2, 5))
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return y if rng.random() < 0.7 else np.array([f"class {label}" for label in y])


def random_estimator(rng, task, f):
    m = int(rng.integers(1, f + 1)) if rng.random() < 0.8 else [None, 0.3][rng.integers(2)]
    losses = [name for name, loss in LOSSES.items() if (loss.task == "regression") == (task == "regression")]
    parameters = {
        "training": Training(
            ramp_steps=int(rng.integers(1, 150)),
            warmup_steps=int(rng.integers(0, 30)),
            refinement_epochs=int(rng.integers(0, 3)),
            max_steps="auto" if rng.random() < 0.7 else int(rng.integers(1, 100)),
            batch_size="auto" if rng.random() < 0.5 else int(rng.integers(1, 40)),
            mu=float(rng.choice([0.1, 1.0, 5.0])),
            rho=float(rng.choice([0.0, 0.75, 1.0])),
            fit_intercept=bool(rng.random() < 0.8),
        ),
        "variant": list(VARIANTS)[rng.integers(len(VARIANTS))],
        "network": "linear" if rng.random() < 0.9 else "additive",
        "normalize": ["erf", "standard"][rng.integers(2)],
        "loss": "auto" if rng.random() < 0.5 else losses[rng.integers(len(losses))],
        "l2": "auto" if rng.random() < 0.7 else float(10.0 ** rng.integers(-6, 3)),
        "random_state": int(rng.integers(1000)),
    }
    if task == "classification":
        parameters["class_weight"] = [None, "balanced"][rng.integers(2)]
        return E2EFSClassifier(m, **parameters)
    return E2EFSRegressor(m, **parameters)


def random_gates(rng, f):
    """Draws groups, forced columns and a budget that leave something to select; also returns the group of each column."""
    labels = rng.integers(0, max(1, f // 2), f) if rng.random() < 0.7 else np.arange(f)
    group = np.unique(labels, return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    gates = {"groups": labels.tolist()} if n_groups < f else {}
    m = int(rng.integers(1, n_groups + 1))
    order = rng.permutation(n_groups)
    n_kept = int(rng.integers(0, m + 1)) if rng.random() < 0.5 else 0
    n_dropped = int(rng.integers(0, n_groups - m + 1)) if rng.random() < 0.5 else 0
    if n_kept:
        gates["keep"] = [int(np.flatnonzero(group == one)[0]) for one in order[:n_kept]]
    if n_dropped:
        gates["drop"] = [int(np.flatnonzero(group == one)[0]) for one in order[n_groups - n_dropped :]]
    if rng.random() < 0.3:
        costs = rng.integers(1, 9, f).astype(float)
        of_groups = np.bincount(group, weights=costs)
        least = max(of_groups[order[:n_kept]].sum(), of_groups[order[: n_groups - n_dropped]].min())
        gates |= {"costs": costs, "budget": float(least + rng.integers(0, 20)), "n_features_to_select": None}
    else:
        gates["n_features_to_select"] = m
    return gates, group


def check_gates(estimator, gates, group):
    """Whole groups, forced ones in or out, exactly M of them or as much as the budget takes."""
    selection = estimator.selection_
    kept = np.unique(group[selection.support])
    np.testing.assert_array_equal(selection.support, np.isin(group, kept))
    forced, never = (np.unique(group[gates.get(name, [])]) for name in ("keep", "drop"))
    assert np.isin(forced, kept).all()
    assert not np.isin(never, kept).any()
    assert kept.size == estimator.n_features_to_select_
    if "budget" not in gates:
        assert kept.size == gates["n_features_to_select"]
        return
    costs = np.bincount(group, weights=gates["costs"])
    others = np.setdiff1d(np.arange(costs.size), np.concatenate([kept, never]))
    assert costs[kept].sum() <= gates["budget"]
    assert (costs[kept].sum() + costs[others] > gates["budget"]).all()


def check_case(number):
    rng = np.random.default_rng(number)
    task = ["classification", "regression"][rng.integers(2)]
    X, dense = random_table(rng)
    y = random_target(rng, dense, task)
    estimator = random_estimator(rng, task, dense.shape[1])
    weights = rng.random(dense.shape[0]) + 0.01 if rng.random() < 0.3 else None
    gates = None
    if rng.random() < 0.3:
        gates, group = random_gates(rng, dense.shape[1])
        estimator.set_params(**gates)
    estimator.fit(X, y, sample_weight=weights)
    if gates is not None:
        check_gates(estimator, gates, group)
        return
    m, f = estimator.n_features_to_select_, dense.shape[1]
    support = estimator.get_support(indices=True)
    assert support.size == m, f"{support.size} features kept, {m} asked for"
    assert np.unique(support).size == m
    assert set(np.unique(estimator.gamma_)) <= {0.0, 1.0}
    assert int(estimator.gamma_.sum()) == m
    assert estimator.ranking_.shape == (f,)
    assert np.array_equal(np.flatnonzero(estimator.ranking_ <= m), support)
    assert estimator.transform(X).shape == (dense.shape[0], m)
    predicted = estimator.predict(X)
    assert predicted.shape == np.shape(y)
    if task == "classification":
        assert np.isin(predicted, y).all()
    else:
        assert np.isfinite(predicted).all()


def test_exactly_m_features_whatever_the_table(cases, check_all):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # step limits of one step, constant columns
        check_all(check_case, cases(150, 10_000))
