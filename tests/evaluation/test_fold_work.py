"""One fold: what is fitted on which rows."""

import numpy as np
import pytest

from tamiz import E2EFSClassifier, Training
from tamiz.evaluation.fold_work import FoldTask, FoldWork
from tamiz.evaluation.metrics import BALANCED_ACCURACY


@pytest.fixture(scope="module")
def task():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 6))
    y = (X[:, 2] > 0).astype(int)
    rows = np.arange(40)
    folds = [(rows[rows % 2 != part], rows[rows % 2 == part]) for part in (0, 1)]
    return FoldTask(
        lambda train, test: (X[train], X[test]),
        y,
        folds,
        lambda m, seed: E2EFSClassifier(m, training=Training(ramp_steps=300), random_state=seed),
        1,
        BALANCED_ACCURACY,
        "classification",
        sizes=(1, 3),
        n_random=2,
    )


def test_rows_are_those_of_the_fold(task):
    work = FoldWork(task, 1)
    assert work.train.shape == work.test.shape == (20, 6)
    np.testing.assert_array_equal(work.y_test, task.y[1::2])
    assert work.seed == task.seed + 1


def test_a_permutation_moves_targets_and_not_features(task):
    order = np.arange(40)[::-1]
    plain, shuffled = FoldWork(task, 0), FoldWork(task, 0, targets=order)
    np.testing.assert_array_equal(plain.train, shuffled.train)
    np.testing.assert_array_equal(shuffled.y_test, task.y[order][::2])


def test_the_fold_keeps_scores_outputs_and_a_curve(task):
    ticks = []
    work = FoldWork(task, 0)
    found = work.kept(lambda: ticks.append(1))
    assert found["support"].tolist() == [False, False, True, False, False, False]
    assert set(found["curve"]) == {1, 3}
    assert found["curve"][1] == found["kept"]
    assert len(found["predicted"]) == 20
    assert "kept" in found["outputs"]
    assert len(ticks) == 2
    assert "all_features" in work.all_features(lambda: ticks.append(1))
    assert "random_features" in work.random_features(lambda: ticks.append(1))
    assert len(ticks) == 4
