"""Recipes of the networks."""

from __future__ import annotations

import pytest

from tamiz import E2EFSClassifier
from tamiz.errors import UnknownNameError
from tamiz.paper.recipes import (
    RECIPE_OPTION,
    RECIPES,
    pick_recipes,
    recipe_parameters,
    recipe_sentence,
    with_recipe,
)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_made_of_parameters_of_the_estimator(name):
    parameters = recipe_parameters(name)
    made = E2EFSClassifier(3, **parameters)
    assert {key: made.get_params()[key] for key in parameters} == parameters
    parameters["schedule"] = "changed"
    assert recipe_parameters(name) != parameters, "callers get a copy"


def test_recipes_are_picked_by_name():
    assert pick_recipes("both", ["e2efs", "fisher"]) == tuple(RECIPES)
    assert pick_recipes(str(RECIPE_OPTION.default), ["e2efs-soft"]) == ("paper",)
    assert pick_recipes("tamiz", ["e2efs-ranking"]) == ("tamiz",)
    with pytest.raises(UnknownNameError, match="Did you mean 'tamiz'"):
        pick_recipes("tamis", [])
    with pytest.raises(ValueError, match="no recipe for the method 'e2efs-ranking'"):
        pick_recipes("both", ["e2efs-ranking"])


def test_rows_and_sentences_name_their_recipe():
    assert [with_recipe("E2E-FS", name) for name in (*RECIPES, None)] == ["E2E-FS [paper]", "E2E-FS [tamiz]", "E2E-FS"]
    words = recipe_sentence(list(RECIPES))
    assert "[paper]: " in words
    assert "[tamiz]: " in words
