"""scikit-learn's own checks, on every estimator of this room."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import E2EFSClassifier, E2EFSRegressor, ErfScaler

# As for scikit-learn's SGD estimators: rows are drawn in batches, and one row of weight 2 is drawn together with other rows
# than two rows of weight 1 are, so the numbers agree only up to that.
BATCHES = "batches are drawn at random, so a weighted row and a repeated row are not the same to the last digit"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": BATCHES,
}
ESTIMATORS = [
    E2EFSClassifier(ramp_steps=1000, random_state=0),
    E2EFSClassifier(loss="logistic", ramp_steps=1000, random_state=0),
    E2EFSClassifier(loss="softmax", normalize="standard", variant="hard", ramp_steps=1000, random_state=0),
    E2EFSRegressor(ramp_steps=1000, random_state=0),
    E2EFSRegressor(loss="huber", variant="ranking", ramp_steps=1000, random_state=0),
    E2EFSClassifier(network="pairs", ramp_steps=1000, random_state=0),
    E2EFSRegressor(network="pairs", n_screened=2, ramp_steps=1000, random_state=0),
    ErfScaler(),
    ErfScaler(with_mean=False),
]


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: {} if isinstance(estimator, ErfScaler) else EXPECTED
)
@pytest.mark.filterwarnings("ignore:The network removes")  # many of the checks fit noise
def test_scikit_learn_checks(estimator, check):
    check(estimator)
