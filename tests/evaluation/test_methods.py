"""Methods by name: one description each, for every command."""

from __future__ import annotations

import pytest

from tamiz.baselines import registry
from tamiz.errors import UnknownNameError
from tamiz.evaluation.methods import (
    DEFAULT_METHODS,
    OWN_METHODS,
    make_selector,
    method_info,
    method_names,
    pick_method,
    pick_methods,
)


@pytest.mark.parametrize("method", method_names())
def test_every_method_can_be_picked_made_and_has_a_title(method):
    assert pick_method(method.upper()) == method
    assert make_selector(method, 3, 0).n_features_to_select == 3
    assert method_info(method).name == method
    assert method_info(method).title != method or method == "random"


def test_every_baseline_is_described_and_nothing_else_is():
    assert method_names() == [*OWN_METHODS, *registry.available()]
    assert OWN_METHODS == ("e2efs", "e2efs-soft", "e2efs-ranking")
    for task, names in DEFAULT_METHODS.items():
        assert pick_methods(names) == names
        assert all(task in method_info(name).tasks for name in names)


def test_a_new_baseline_takes_part_under_its_own_name():
    assert method_info("toy").title == "toy"
    assert method_info("toy").nested == "any"


def test_unknown_method_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown method 'e2efs-sotf'. Did you mean 'e2efs-soft'\?"):
        pick_method("e2efs-sotf")


def test_parameters_reach_only_the_methods_that_have_them():
    assert make_selector("mim", 3, 7, task="regression").task == "regression"
    assert make_selector("mim", 3, 7).task == "auto"
    assert make_selector("dfs", 3, 7, network="mlp").network == "three_layer"
    assert make_selector("random", 3, 7).random_state == 7
    assert make_selector("mrmr", 3, 0, relevance="mutual_info").relevance == "mutual_info"
    assert type(make_selector("e2efs", 3, 0, task="regression")).__name__ == "E2EFSRegressor"
    assert make_selector("e2efs", 3, 0).variant == "hard"
