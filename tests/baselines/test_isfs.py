"""Iterative SFS: its rounds, its order, its likeness to SFS."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz.baselines import ISFS, SFS
from tamiz.paper.deep import next_size


def informative_table(n_classes=2, n_samples=90, n_features=12, seed=0):
    """Columns 2 and 7 decide the class; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    value = X[:, 2] + X[:, 7]
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


@parametrize_with_checks([ISFS(**ISFS._fast_test_params)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_sizes_of_the_rounds():
    sizes = [100]
    while sizes[-1] > 40:
        sizes.append(next_size(sizes[-1], 0.9, 40))
    assert sizes == [100, 90, 81, 72, 64, 57, 51, 45, 40]
    assert next_size(3, 0.9, 1) == 2  # int(2.7)
    assert next_size(2, 0.99, 1) == 1  # always one fewer, or it would never end
    assert next_size(100, 0.0, 7) == 7


def test_rounds_and_scores():
    X, y = informative_table()
    selector = ISFS(4, keep_ratio=0.5, epochs=5, random_state=0).fit(X, y)
    # 12 features, then 6, of which 4 are wanted: two networks. The cut six lie below 1, the others from 1 to 2.
    assert selector.n_rounds_ == 2
    assert (np.sort(selector.scores_)[:6] < 1).all()
    assert (np.sort(selector.scores_)[6:] >= 1).all()
    assert selector.scores_[selector.scores_ >= 1].sum() == pytest.approx(
        6 + 1
    )  # six times 1, and shares that add to 1
    assert selector.n_steps_ == 2 * 5 * 45


def test_ratio_zero_is_sfs():
    X, y = informative_table()
    once = ISFS(3, keep_ratio=0.0, epochs=5, random_state=0).fit(X, y)
    plain = SFS(3, epochs=5, random_state=0).fit(X, y)
    assert once.n_rounds_ == 1
    assert np.array_equal(once.ranking_, plain.ranking_)


def test_first_round_is_sfs_and_each_round_trains_anew():
    X, y = informative_table()
    plain = SFS(6, epochs=5, random_state=0).fit(X, y)
    selector = ISFS(3, keep_ratio=0.5, epochs=5, random_state=0).fit(X, y)
    assert set(np.flatnonzero(selector.scores_ >= 1)) == set(np.flatnonzero(plain.ranking_ <= 6))
    cut = selector.scores_ < 1
    share = plain.scores_ * plain.training_loss_
    np.testing.assert_allclose(selector.scores_[cut], share[cut], rtol=1e-6)


def test_all_features_wanted():
    X, y = informative_table()
    selector = ISFS(12, epochs=2, random_state=0).fit(X, y)
    assert selector.n_rounds_ == 1
    assert selector.get_support().all()
    assert ISFS(1, epochs=2).fit(X[:, :1], y).get_support().tolist() == [True]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_informative_columns_are_found(n_classes, network):
    X, y = informative_table(n_classes, n_samples=300)
    parameters = {"epochs": 20, "batch_size": 30, "learning_rate": 0.02, "weight_l2": 0.001, "random_state": 0}
    selector = ISFS(2, network=network, keep_ratio=0.6, **parameters).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]


def test_regression():
    X, _ = informative_table()
    y = X[:, 3] - 2 * X[:, 5] + 100
    selector = ISFS(2, keep_ratio=0.5, epochs=20, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [3, 5]


def test_constant_columns_go_first():
    X, y = informative_table()
    X[:, [1, 5, 9]] = 3.0
    selector = ISFS(3, network="mlp", keep_ratio=0.7, epochs=2, random_state=0).fit(X, y)
    assert set(selector.ranking_[[1, 5, 9]]) == {10, 11, 12}
    assert not selector.scores_[[1, 5, 9]].any()


def test_images_keep_their_shape():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 64))
    y = (X[:, 27] > 0).astype(int)
    parameters = {"network": "cnn3", "input_shape": (1, 8, 8), "epochs": 6, "batch_size": 10, "learning_rate": 0.02}
    selector = ISFS(4, keep_ratio=0.4, random_state=0, **parameters).fit(X, y)
    assert selector.n_rounds_ == 3  # 64, 25, 10 of which 4 are wanted
    assert selector.get_support()[27]


@pytest.mark.parametrize("ratio", [1.0, -0.1, None, "a", np.nan])
def test_bad_ratio(ratio):
    X, y = informative_table()
    with pytest.raises(ValueError, match="'keep_ratio' parameter of ISFS must be a float"):
        ISFS(2, keep_ratio=ratio).fit(X, y)


@pytest.mark.data
@pytest.mark.skipif("TAMIZ_DATA_HOME" not in os.environ, reason="TAMIZ_DATA_HOME is not set")
def test_colon():
    table = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "colon.npz")
    X, y = table["X"], table["y"]
    selector = ISFS(20, keep_ratio=0.5, epochs=15, random_state=0).fit(X, y)
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    chosen, rest = correlation[selector.get_support()], correlation[~selector.get_support()]
    assert chosen.mean() > 2 * rest.mean()
