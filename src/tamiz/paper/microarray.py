"""Table "Microarray and FS challenge" of the paper: 3-fold x 20, five numbers of features, mean balanced accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamiz._utils.names import pick_name
from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import pick_methods
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.microarray_table import (
    M_VALUES,
    MICROARRAY_DATASETS,
    MICROARRAY_METHODS,
    MicroarrayPlan,
    comparison_pages,
    summarise_microarray,
)
from tamiz.paper.protocol import (
    DATASETS_OPTION,
    METHODS_OPTION,
    REPEATS_OPTION,
    SEED_OPTION,
    ComparisonPage,
    Protocol,
    ProtocolOption,
    with_references,
)
from tamiz.paper.recipes import (
    GRIDS,
    LEARNERS,
    N_FOLDS,
    N_REPEATS,
    RECIPE_OPTION,
    SPLIT_SEED,
    learner_settings,
    load_checked,
    load_split,
    method_settings,
    pick_datasets,
    pick_recipes,
    recipe_parameters,
    score_learner,
    select_for_all,
    with_recipe,
)
from tamiz.paper.store import Cell, ProtocolSummary, seed_from


class Microarray(Protocol):
    """Run every method on every split of the microarrays, scored by three learners."""

    name = "microarray"
    headline = "The table of microarrays."
    description = (
        'The table "Microarray and FS challenge": 3-fold x 20, mean balanced accuracy over five numbers of features.'
    )
    example = "-d colon,lung -m e2efs,e2efs-soft,fisher"
    options = (
        DATASETS_OPTION,
        METHODS_OPTION,
        ProtocolOption(
            "learners",
            ("--learners",),
            f"Separated by commas: {', '.join(LEARNERS)}.",
            "words",
            shown_default="all",
        ),
        ProtocolOption(
            "m_values",
            ("-k",),
            "Numbers of features, separated by commas.",
            "integers",
            shown_default=",".join(map(str, M_VALUES)),
        ),
        REPEATS_OPTION,
        ProtocolOption(
            "grid",
            ("--grid",),
            "What the SVM chooses from: small, or full (that of the authors' code, ten times the work).",
            default="small",
        ),
        RECIPE_OPTION,
        SEED_OPTION,
    )

    def make_plan(
        self,
        datasets: Sequence[str] = MICROARRAY_DATASETS,
        methods: Sequence[str] = MICROARRAY_METHODS,
        learners: Sequence[str] = LEARNERS,
        m_values: Sequence[int] = M_VALUES,
        n_repeats: int = N_REPEATS,
        grid: str = "small",
        seed: int = 0,
        recipe: str = "paper",
    ) -> MicroarrayPlan:
        """Return a plan with every name checked, and the rows for random and for all features added.

        Examples
        --------
        >>> Microarray().make_plan(["COLON"], ["Fisher"]).methods
        ('fisher', 'random', 'all')
        >>> Microarray().make_plan(["colon"], ["fischer"])
        Traceback (most recent call last):
        tamiz.errors.UnknownNameError: Unknown method 'fischer'. Did you mean 'fisher'? ...
        """
        names = pick_methods(methods)
        if n_repeats < 1:
            raise ValueError(f"At least one repeat is needed, got {n_repeats}.")
        if not m_values or min(m_values) < 1:
            raise ValueError(f"Numbers of features are integers from 1, got {list(m_values)}.")
        return MicroarrayPlan(
            pick_datasets(datasets),
            with_references(names),
            tuple(dict.fromkeys(pick_name(name, LEARNERS, "learner") for name in learners)),
            tuple(sorted(set(m_values))),
            n_repeats,
            pick_name(grid, GRIDS, "grid"),
            seed,
            pick_recipes(recipe, names),
        )

    def make_cells(self, plan: MicroarrayPlan, data_home: str | None = None) -> list[Cell]:
        """Return one cell per data set, method and split, for all numbers of features and learners."""
        cells = []
        for name in sorted(plan.datasets, key=lambda name: -np.prod(find_entry(name).shape)):
            _, checksum = load_checked(name, data_home)
            for method, recipe in plan.selections:
                shared = {
                    "dataset": name,
                    "data": checksum,
                    "method": method,
                    "recipe": recipe,
                    "parameters": method_settings(method, **recipe_parameters(recipe)),
                    "m_values": list(plan.m_values),
                    "learners": {
                        with_recipe(learner, its): {
                            "learner": learner,
                            "recipe": its,
                            **learner_settings(learner, plan.grid, its),
                        }
                        for learner, its in plan.scored_by(method, recipe)
                    },
                    "grid": plan.grid,
                    "folds": N_FOLDS,
                    "split_seed": SPLIT_SEED,
                    "seed": plan.seed,
                }
                cells += [
                    Cell(
                        self.name,
                        f"{name}, split {split + 1}, {with_recipe(method, recipe)}",
                        {**shared, "split": split},
                    )
                    for split in range(plan.n_splits)
                ]
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select by one method on one split for every M, and score each selection by every learner.

        Returns
        -------
        dict
            ``scores[learner with its recipe]``: one number for each M; ``support``: the columns kept for each M
            (None for a method that keeps all); ``seconds``: of each selection; ``converged``; ``n_features``.
        """
        name, method, split = settings["dataset"], settings["method"], settings["split"]
        parts = load_split(name, data_home, settings["data"], split)
        keeps_all = get_method(method).keeps_all
        m_values = settings["m_values"]
        identity = ("microarray", name, split, settings["seed"])
        parameters = recipe_parameters(settings["recipe"])
        found = select_for_all(method, parts.train, parts.y_train, m_values, identity, parameters=parameters)
        scores: dict[str, list[float]] = {learner: [] for learner in settings["learners"]}
        for place, series in scores.items():
            learner, recipe = settings["learners"][place]["learner"], settings["learners"][place]["recipe"]
            for m, picked in zip(m_values, found, strict=True):
                if keeps_all and series:  # the same columns for every M
                    series.append(series[0])
                    continue
                seed = seed_from(*identity, method, m, learner)
                rows = (parts.train, parts.y_train, parts.test, parts.y_test)
                series.append(score_learner(learner, picked, *rows, settings["grid"], seed, recipe))
        return {
            "scores": scores,
            "support": None if keeps_all else [parts.columns[picked.columns].tolist() for picked in found],
            "seconds": [picked.seconds for picked in found],
            "converged": [picked.converged for picked in found],
            "n_features": parts.n_features,
        }

    def summarise(
        self,
        plan: MicroarrayPlan,
        cells: Sequence[Cell],
        results: Mapping[str, Any],
        failures: Mapping[str, str],
    ) -> ProtocolSummary:
        """Make the table, with bold rows, ranks, stability and differences to the paper."""
        return summarise_microarray(plan, cells, results, failures)

    def comparisons(
        self, plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]
    ) -> list[ComparisonPage]:
        """Return the comparison of each data set."""
        return comparison_pages(plan, cells, results)
