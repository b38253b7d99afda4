"""scikit-learn's own checks, on every estimator of this room."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import E2EFSClassifier, E2EFSPath, E2EFSRegressor, ErfScaler, Pairs, StabilitySelection, Training

# As for scikit-learn's SGD estimators: rows are drawn in batches, and one row of weight 2 is drawn together with other rows
# than two rows of weight 1 are, so the numbers agree only up to that.
BATCHES = "batches are drawn at random, so a weighted row and a repeated row are not the same to the last digit"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": BATCHES,
}
SHORT = Training(ramp_steps=300, refinement_epochs=10)
OURS = {"training": SHORT, "random_state": 0}
STABILITY = {"n_resamples": 3, "max_false": 9, "assumption": "none", "random_state": 0}
ESTIMATORS = [
    E2EFSClassifier(**OURS),
    E2EFSClassifier(loss="logistic", **OURS),
    E2EFSClassifier(loss="softmax", normalize="standard", variant="hard", **OURS),
    E2EFSRegressor(**OURS),
    E2EFSRegressor(loss="huber", variant="ranking", **OURS),
    E2EFSClassifier(network="pairs", **OURS),
    E2EFSRegressor(network=Pairs(n_screened=2), **OURS),
    E2EFSPath([1, 0.5], estimator=E2EFSClassifier(**OURS), cv=2),
    E2EFSPath([1, 0.5], estimator=E2EFSRegressor(**OURS), cv=2),
    StabilitySelection(E2EFSClassifier(1, training=SHORT), **STABILITY),
    StabilitySelection(E2EFSRegressor(1, training=SHORT), **STABILITY),
    ErfScaler(),
    ErfScaler(with_mean=False),
]
WEIGHTED = (E2EFSClassifier, E2EFSRegressor, E2EFSPath)


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED if isinstance(estimator, WEIGHTED) else {}
)
@pytest.mark.filterwarnings("ignore:The network removes")  # many of the checks fit noise
def test_scikit_learn_checks(estimator, check):
    check(estimator)
