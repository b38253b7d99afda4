"""Methods by name: one description each, for every command."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.baselines.registry import available, canonical_name, get_method
from tamiz.errors import UnknownNameError
from tamiz.evaluation.comparison import DEFAULT_METHODS, make_seeded, pick_methods
from tamiz.evaluation.subjects import rank_for_targets


@pytest.mark.parametrize("method", available())
def test_every_method_can_be_picked_made_and_has_a_title(method):
    assert canonical_name(method.upper()) == method
    assert make_seeded(method, 3, 0).n_features_to_select == 3
    assert get_method(method).name == method
    assert get_method(method).title != method or method == "random"


def test_the_defaults_are_methods_for_their_task():
    for task, names in DEFAULT_METHODS.items():
        assert pick_methods(names) == names
        assert all(task in get_method(name).tasks for name in names)


def test_unknown_method_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown method 'e2efs-sotf'. Did you mean 'e2efs-soft'\?"):
        canonical_name("e2efs-sotf")


def test_parameters_reach_only_the_methods_that_have_them():
    assert make_seeded("mim", 3, 7, task="regression").task == "regression"
    assert make_seeded("mim", 3, 7).task == "auto"
    assert make_seeded("dfs", 3, 7, network="mlp").network == "mlp"
    assert make_seeded("random", 3, 7).random_state == 7
    assert make_seeded("mrmr", 3, 0, relevance="mutual_info").relevance == "mutual_info"
    assert type(make_seeded("e2efs", 3, 0, task="regression")).__name__ == "E2EFSRegressor"
    assert make_seeded("e2efs", 3, 0).variant == "hard"


def test_one_ranking_for_several_targets_puts_the_best_of_each_first():
    class Fixed:
        def fit(self, X, y):
            self.ranking_ = np.array([1, 2, 3, 4] if y[0] == 0 else [4, 3, 2, 1])
            return self

    ranking = rank_for_targets(Fixed, np.zeros((3, 4)), np.array([[0, 1]] * 3))
    # Columns 0 and 3 are first for one target each, 1 and 2 second for one and third for the other.
    assert set(ranking[[0, 3]]) == {1, 2}
    assert sorted(ranking.tolist()) == [1, 2, 3, 4]
