"""Joint effects by the names of what was selected."""

from types import SimpleNamespace

import numpy as np
import pytest

from tamiz.estimators.effects import joint_effects
from tamiz.selection import Selection


def effects(pairs, groups=None, group_names=None, names=None):
    """Stand for a fit that kept columns 1, 3 and 4 of six, with these pairs of kept columns and their strengths."""
    support = np.array([False, True, False, True, True, False])
    if groups is None:
        ranking = np.array([4, 1, 5, 2, 3, 6])
        selection = Selection(support=support, ranking=ranking, n_steps=1, feature_names=names)
    else:  # what the joint effects read of a selection of groups
        selection = SimpleNamespace(indices=np.flatnonzero(support), groups=groups, group_names=group_names)
    model = SimpleNamespace(pair_strengths=lambda: pairs, columns_of_pairs=lambda feature: [feature])
    return joint_effects(model, selection)


def test_the_strongest_comes_first():
    found = effects([(0, 1, 0.5), (0, 2, 2.0), (1, 2, 1.0)])
    assert [effect.indices for effect in found] == [(1, 4), (3, 4), (1, 3)]
    assert found[0][:2] == ("x1", "x4")
    assert effects([(0, 1, 0.5)], names=list("abcdef"))[0][:2] == ("b", "d")


def test_strengths_of_a_group_are_added_up_and_its_own_left_out():
    groups = np.array([0, 1, 0, 1, 2, 0])
    found = effects([(0, 1, 9.0), (0, 2, 3.0), (1, 2, 4.0)], groups, ("p", "q", "r"))
    assert [effect[:3] for effect in found] == [("q", "r", (1, 2))]
    assert found[0].strength == pytest.approx(5.0)
