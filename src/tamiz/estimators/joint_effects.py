"""Name the joint effects of a fitted pair network by the columns or groups that were selected."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class PairEffect(NamedTuple):
    """Two selected columns, or groups of columns, and what they add to the scores together, beyond their curves."""

    first: str
    second: str
    indices: tuple[int, int]
    """Numbers of the columns or, where ``groups`` were given, of the groups."""
    strength: float
    """Root of the sum of squared weights of their products, which have variance 1 if the columns are independent."""


def joint_effects(estimator: Any) -> list[PairEffect]:
    """Return the joint effects of a fitted estimator, strongest first.

    A group, and a column with its indicator of missing values, is one: the strengths of all its products with another are
    added up, and those of its own columns with each other are left out.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted, with ``network="pairs"``.

    Examples
    --------
    >>> from tamiz import E2EFSClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 12))
    >>> model = E2EFSClassifier(2, network="pairs", groups={"size": [0, 1]}, random_state=0).fit(X, X[:, 1] * X[:, 7] > 0)
    >>> [effect[:3] for effect in joint_effects(model)]
    [('size', 'x7', (0, 6))]
    """
    selection, model, missing = estimator.selection_, estimator.model_, estimator.missing_
    read = selection.indices
    if missing is not None:
        read = np.concatenate([read, read[missing.indicated]])
    units = read if selection.groups is None else selection.groups[read]
    squares: dict[tuple[int, int], float] = {}
    for first, second, strength in model.pair_strengths():
        one, other = sorted(int(units[model.columns_of_pairs(feature)[0]]) for feature in (first, second))
        if one != other:
            squares[one, other] = squares.get((one, other), 0.0) + strength**2
    names = selection.group_names if selection.groups is not None else getattr(estimator, "feature_names_in_", None)
    effects = []
    for pair, square in squares.items():
        first_name, second_name = (f"x{unit}" if names is None else str(names[unit]) for unit in pair)
        effects.append(PairEffect(first_name, second_name, pair, float(np.sqrt(square))))
    return sorted(effects, key=lambda effect: (-effect.strength, effect.indices))
