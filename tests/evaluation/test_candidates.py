"""Candidates of a comparison."""

import pytest

from tamiz.baselines.registry import available, get_method
from tamiz.evaluation.comparison import RANDOM_DRAWS, Candidate, make_candidates, warm_up


def test_references_are_marked_and_random_sets_drawn_often():
    found = make_candidates(["fisher", "random", "all"], "classification")
    assert [found[name].is_reference for name in ("fisher", "random", "all")] == [False, True, True]
    assert [found[name].n_draws for name in ("fisher", "random", "all")] == [1, RANDOM_DRAWS, 1]
    assert found["all"].keeps_all


def test_networks_of_torch_do_not_run_in_threads():
    pytest.importorskip("torch")
    assert not make_candidates(["dfs"], "classification")["dfs"].in_threads
    assert make_candidates(["e2efs"], "classification", "mlp")["e2efs"].in_threads


def test_methods_for_classes_are_refused_for_numbers():
    (name, *_) = (name for name in available() if "regression" not in get_method(name).tasks)
    with pytest.raises(ValueError, match=f"'{name}' needs classes"):
        make_candidates([name], "regression")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_warming_up_fits_every_candidate_and_bears_failures(task, sparse):
    fitted = []

    class Selector:
        def __init__(self, fails):
            self.fails = fails

        def fit(self, X, y):
            fitted.append(X.shape)
            if self.fails:
                raise ValueError("no")

    made = {name: Candidate(lambda m, seed, fails=name == "bad": Selector(fails)) for name in ("bad", "good")}
    warm_up(made, task, n_classes=3, sparse=sparse)
    assert len(fitted) == 2
