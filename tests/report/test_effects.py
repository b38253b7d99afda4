"""Sizes of the effects of kept features."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.report.describe import find_stand_ins
from tamiz.report.effects import effect_of_weights, measure_effects, order_by_contribution, read_weights
from tamiz.selection import Selection


def keep(*ranking, **parts) -> Selection:
    """A selection of the features of rank 1 and 2."""
    ranks = np.array(ranking)
    return Selection(ranks <= 2, ranks, **parts)


def test_effect_of_two_classes_is_the_standardised_difference():
    X = np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0], [6.0, 5.0]])
    effects, name = measure_effects(X, ["a", "a", "b", "b"], keep(1, 2), "classification")
    assert effects == [
        pytest.approx(4.0),
        None,
    ]  # means 1 and 5, spread within classes 1; the second column is constant
    assert name == "mean of b minus mean of a, in standard deviations"


def test_noise_has_no_stand_ins_and_hardly_an_effect():
    """30 rows, 300 columns of noise: the best correlations are above 0.6, the best effects above 1."""
    stand_ins, effects, raw = 0, [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 300)), np.repeat(["a", "b"], 15)
        gap = X[15:].mean(axis=0) - X[:15].mean(axis=0)
        ranking = np.empty(300, dtype=int)
        ranking[np.argsort(-np.abs(gap))] = np.arange(1, 301)
        selection = Selection(ranking <= 10, ranking)
        stand_ins += sum(len(found) for found in find_stand_ins(X, selection))
        found, name = measure_effects(X, y, selection, "classification")
        effects += found
        raw += gap[selection.ordered].tolist()
    assert "less what the best of so many columns of noise would show" in name
    assert stand_ins <= 1
    assert np.mean(np.abs(raw)) > 0.7
    assert np.mean(np.abs(effects)) < 0.25


def test_a_true_effect_survives_the_shrinking():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 50)), np.repeat(["a", "b"], 50)
    X[50:, 0] += 3
    selection = Selection(np.arange(50) < 1, np.arange(1, 51))
    assert 2 < measure_effects(X, y, selection, "classification")[0][0] < 3.2


def test_effect_of_many_classes_and_of_numbers():
    X = np.array([[0.0, 1.0], [0.2, 0.0], [0.0, 1.0], [0.2, 0.0], [-9.0, 1.0], [-9.2, 0.0]])
    effects, _ = measure_effects(X, list("aabbcc"), keep(1, 2), "classification")
    assert effects[0] < -10
    effects, name = measure_effects(X, X[:, 0] * -3, keep(1, 2), "regression")
    assert (effects[0], name) == (pytest.approx(-1.0), "correlation with the target")
    assert measure_effects(X, np.ones((6, 2)), keep(1, 2), "regression")[0] == [None, None]
    assert measure_effects(X, ["a"] * 6, keep(1, 2), "classification")[0] == [None, None]


class Fitted:
    """Whatever holds coefficients."""

    def __init__(self, coef):
        self.coef_ = coef


def test_weights_of_all_features_or_of_the_kept_ones():
    selection = keep(3, 1, 2)  # kept: columns 1 and 2
    assert read_weights(Fitted(np.array([9.0, -1.0, 2.0])), selection).tolist() == [[-1.0, 2.0]]
    assert read_weights(Fitted(np.array([[-1.0, 2.0], [0.5, -3.0]])), selection).tolist() == [[-1.0, 2.0], [0.5, -3.0]]
    assert read_weights(Fitted(np.zeros(7)), selection) is None
    assert read_weights(Fitted(np.zeros((2, 2, 2))), selection) is None
    assert read_weights(object(), selection) is None


def test_kept_columns_are_ordered_by_the_size_of_their_weights():
    selection = keep(3, 1, 2)
    assert order_by_contribution(None, selection).tolist() == [1, 2]
    assert order_by_contribution(np.array([[0.5, -2.0]]), selection).tolist() == [2, 1]
    assert order_by_contribution(np.array([[3.0, 2.0], [0.0, 3.0]]), selection).tolist() == [2, 1]  # norm over outputs
    assert order_by_contribution(np.array([[1.0, -1.0]]), keep(3, 2, 1)).tolist() == [2, 1]  # a tie goes by rank


def test_one_effect_of_several_outputs():
    assert effect_of_weights(np.array([-0.5])) == -0.5
    assert effect_of_weights(np.array([1.0, 3.0])) == 2.0
    assert effect_of_weights(np.array([2.0, -3.0, 6.0])) == 7.0
