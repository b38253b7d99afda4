"""Recipes of the networks that the protocols of the paper train: the paper's own, and the defaults of this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tamiz._names import pick, pick_name
from tamiz.baselines.registry import get_method
from tamiz.engines.schedule import PAPER_RAMP_EPOCHS
from tamiz.reproduce.protocol import ProtocolOption


@dataclass(frozen=True)
class NetworkRecipe:
    """Describe how the networks of a protocol are trained.

    Parameters
    ----------
    name : str
        Name in tables, in brackets.
    sentence : str
        What a table says of it.
    parameters : dict, default={}
        Parameters of :class:`~tamiz.E2EFSClassifier` that make it.
    """

    name: str
    sentence: str
    parameters: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    "paper": NetworkRecipe(
        "paper",
        "[paper]: trained by the paper's recipe (rates, weight decay, epochs, T, 2 standard deviations in the normalisation)",
        {"schedule": "paper", "normalize": "erf2"},
    ),
    "tamiz": NetworkRecipe("tamiz", "[tamiz]: trained by the defaults of tamiz, which differ from the paper's"),
}
BOTH = "both"

RECIPE_OPTION = ProtocolOption(
    "recipe",
    ("--recipe",),
    "How networks are trained: paper (as the paper says), tamiz (the defaults of the estimators), or both.",
    default="paper",
)


def pick_recipes(name: str, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the recipes of a run.

    Parameters
    ----------
    name : str
        A name in :data:`RECIPES`, or "both".
    methods : sequence of str
        Methods of the run, as the registry spells them.

    Raises
    ------
    ValueError
        If the name is unknown, or if the paper has no recipe for a method that trains a network.

    Examples
    --------
    >>> pick_recipes("both", ["e2efs-soft", "fisher"])
    ('paper', 'tamiz')
    >>> pick_recipes("paper", ["e2efs-ranking"])
    Traceback (most recent call last):
    ValueError: The paper has no recipe for the method 'e2efs-ranking': leave it out, or use --recipe tamiz.
    """
    chosen = pick_name(name, (*RECIPES, BOTH), "recipe")
    names = tuple(RECIPES) if chosen == BOTH else (chosen,)
    for method in methods if "paper" in names else ():
        info = get_method(method)
        if info.trains_model and info.options.get("variant") not in PAPER_RAMP_EPOCHS:
            raise ValueError(
                f"The paper has no recipe for the method {info.name!r}: leave it out, or use --recipe tamiz."
            )
    return names


def recipe_parameters(name: str | None) -> dict[str, Any]:
    """Return the parameters of :class:`~tamiz.E2EFSClassifier` that make a recipe; none without a recipe.

    Examples
    --------
    >>> recipe_parameters("paper"), recipe_parameters(None)
    ({'schedule': 'paper', 'normalize': 'erf2'}, {})
    """
    return {} if name is None else dict(pick(name, RECIPES, "recipe").parameters)


def with_recipe(text: str, recipe: str | None) -> str:
    """Return a name with its recipe in brackets, if it has one.

    Examples
    --------
    >>> with_recipe("E2E-FS", "paper"), with_recipe("Fisher", None)
    ('E2E-FS [paper]', 'Fisher')
    """
    return text if recipe is None else f"{text} [{recipe}]"


def recipe_sentence(recipes: Sequence[str]) -> str:
    """Return what a table says of the recipes of its rows.

    Examples
    --------
    >>> recipe_sentence(["tamiz"])
    "Networks: [tamiz]: trained by the defaults of tamiz, which differ from the paper's."
    """
    return f"Networks: {'; '.join(RECIPES[name].sentence for name in recipes)}."
