"""Table "Microarray and FS challenge" of the paper: 3-fold x 20, five numbers of features, mean balanced accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import Comparison, make_seeded
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.numbers import MICROARRAY, MICROARRAY_FILES, STANDS_FOR
from tamiz.paper.protocol import (
    REFERENCES,
    SEED_OPTION,
    Cell,
    Protocol,
    ProtocolOption,
    datasets_option,
    methods_option,
    seed_from,
    units_option,
)
from tamiz.paper.recipes import (
    GRIDS,
    N_FOLDS,
    N_REPEATS,
    RECIPE_OPTION,
    SPLIT_SEED,
    SVM_FOLDS,
    SVM_NORMALIZATION,
    load_checked,
    load_split,
    network_for,
    parameters_of,
    recipe_parameters,
    recipe_sentence,
    recipes_of,
    score_fitted,
    score_network,
    score_svm,
    select_for_all,
)
from tamiz.paper.tables import ProtocolSummary, TableRow, display_name, summarise, with_recipe

#: Columns of the table, in the paper's order; stand-ins are labelled in every output.
MICROARRAY_DATASETS = (
    *("lymphoma", "colon", "leukemia_3571", "leukemia", "lung", "dexter"),
    *("gina_rebuilt", "gisette_rebuilt"),
)
MICROARRAY_METHODS = ("mim", "fisher", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")
M_VALUES = (10, 50, 100, 150, 200)
#: NaiveF: the network that selected. Naive: the same, trained anew on what was selected. SVM: a linear SVM on that.
LEARNERS = ("NaiveF", "Naive", "SVM")


def scored_by(plan: Any, method: str, recipe: str | None) -> list[tuple[str, str | None]]:
    """Return the learners that score a selection, each with its recipe; the SVM of a baseline has none."""
    trains_model = get_method(method).trains_model
    return [
        (learner, its)
        for learner in plan.learners
        if trains_model or learner != "NaiveF"
        for its in ((recipe,) if trains_model else recipes_of(plan) if learner == "Naive" else (None,))
    ]


class Microarray(Protocol):
    """Run every method on every split of the microarrays, scored by three learners."""

    name = "microarray"
    headline = "The table of microarrays."
    description = (
        'The table "Microarray and FS challenge": 3-fold x 20, mean balanced accuracy over five numbers of features.'
    )
    example = "-d colon,lung -m e2efs,e2efs-soft,fisher"
    options = (
        datasets_option(MICROARRAY_DATASETS),
        methods_option(MICROARRAY_METHODS),
        ProtocolOption(
            "learners",
            ("--learners",),
            f"Separated by commas: {', '.join(LEARNERS)}.",
            "words",
            LEARNERS,
            "all",
            choices=LEARNERS,
        ),
        ProtocolOption(
            "m_values",
            ("-k",),
            "Numbers of features, separated by commas.",
            "integers",
            M_VALUES,
            ",".join(map(str, M_VALUES)),
            minimum=1,
        ),
        units_option("n_repeats", "--repeats", "Repeats of the splits.", N_REPEATS),
        ProtocolOption(
            "grid",
            ("--grid",),
            "What the SVM chooses from: small, or full (that of the authors' code, ten times the work).",
            default="small",
            choices=tuple(GRIDS),
        ),
        RECIPE_OPTION,
        SEED_OPTION,
    )

    def check_plan(self, plan: Any) -> None:
        """Raise ValueError for a method that the paper has no recipe for.

        Examples
        --------
        >>> Microarray().make_plan(datasets=["COLON"], methods=["Fisher"]).methods
        ('fisher', 'random', 'all')
        >>> Microarray().make_plan(datasets=["colon"], methods=["fischer"])
        Traceback (most recent call last):
        tamiz.errors.UnknownNameError: Unknown method 'fischer'. Did you mean 'fisher'? ...
        """
        recipes_of(plan)

    def make_cells(self, plan: Any, data_home: str | None = None) -> list[Cell]:
        """Return one cell per data set, method and split, for all numbers of features and learners."""
        svm = {**GRIDS[plan.grid]._asdict(), "folds": SVM_FOLDS, "normalize": SVM_NORMALIZATION}
        cells = []
        for name in sorted(plan.datasets, key=lambda name: -np.prod(find_entry(name).shape)):
            _, checksum = load_checked(name, data_home)
            for method in plan.methods:
                for recipe in recipes_of(plan) if get_method(method).trains_model else (None,):
                    learners = scored_by(plan, method, recipe)
                    settings = {
                        "dataset": name,
                        "data": checksum,
                        "method": method,
                        "recipe": recipe,
                        "parameters": parameters_of(make_seeded(method, 1, 0, **recipe_parameters(recipe))),
                        "sizes": list(plan.m_values),
                        "learners": [list(learner) for learner in learners],
                        "networks": {its or "": parameters_of(network_for(1, its, 0)) for _, its in learners},
                        "svm": svm,
                        "grid": plan.grid,
                        "splits": [N_FOLDS, SPLIT_SEED],
                        "seed": plan.seed,
                    }
                    title = f"{name}, split {{}}, {with_recipe(method, recipe)}"
                    cells += self.repeat(title, settings, N_FOLDS * plan.n_repeats)
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select by one method on one split for every M, and score each selection by every learner."""
        name, method, split, sizes = (settings[key] for key in ("dataset", "method", "unit", "sizes"))
        parts = load_split(name, data_home, settings["data"], split)
        keeps_all = get_method(method).keeps_all
        identity = ("microarray", name, split, settings["seed"])
        parameters = recipe_parameters(settings["recipe"])
        found = select_for_all(method, parts.train, parts.y_train, sizes, identity, parameters=parameters)
        scores = []
        for learner, recipe in settings["learners"]:
            values: list[float] = []
            for m, picked in zip(sizes, found, strict=True):
                if keeps_all and values:  # the same columns for every M
                    values.append(values[0])
                    continue
                seed = seed_from(*identity, method, m, learner.lower())
                if learner == "NaiveF":
                    values.append(score_fitted(picked.model, parts.test, parts.y_test)[0])
                elif learner == "Naive":
                    network = network_for(picked.columns.size, recipe, seed)
                    values.append(score_network(parts, picked.columns, network)[0])
                else:
                    values.append(score_svm(parts, picked.columns, settings["grid"], seed))
            scores.append([learner, recipe, values])
        return {
            "scores": scores,
            "support": None if keeps_all else [parts.columns[picked.columns].tolist() for picked in found],
            "seconds": [picked.seconds for picked in found],
            "converged": [picked.converged for picked in found],
            "n_features": parts.n_features,
        }

    def summarise(
        self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the table, with bold rows, ranks, stability and differences to the paper."""
        solver = "the grid of the authors' code" if plan.grid == "full" else "C from 0.001, 0.1, 1, 100, squared hinge"
        over = f"M = {', '.join(map(str, plan.m_values))} and {N_FOLDS * plan.n_repeats} splits"

        def reasons(row: TableRow) -> list[str]:
            found = []
            if row.dataset in ("leukemia", "leukemia_3571"):
                found.append("the paper's text has 7129 genes, the authors' file 3571")
            if row.recipe == "tamiz":
                found.append("trained by the defaults of tamiz, not by the paper's recipe")
            files = MICROARRAY_FILES.get((row.method, row.detail.lower()), {}).get(
                STANDS_FOR.get(row.dataset, row.dataset)
            )
            if files is not None:
                found.append(f"the authors' result files have {files:.3f}")
            if row.detail == "SVM" and plan.grid == "small":
                found.append("the SVM chose from the small grid")
            if row.method in ("inffs", "ilfs"):
                found.append("see docs/baselines.md for what is known of the method")
            return found

        return summarise(
            self,
            plan,
            cells,
            results,
            failures,
            title="Microarray and FS challenge: " + ", ".join(map(display_name, plan.datasets)),
            introduction=f"Mean balanced accuracy over {over} (3-fold x {plan.n_repeats}), ± the standard deviation over both; "
            f"in brackets the paper's number. SVM: {solver}, by 5-fold accuracy on the training part. "
            f"{recipe_sentence(recipes_of(plan))}",
            measure=BALANCED_ACCURACY.name,
            basis="mean over M = {sizes} and {n} splits",
            published=_published if plan.m_values == M_VALUES else None,
            reasons=reasons,
            n_published=N_FOLDS * N_REPEATS,
            test_share=1 / N_FOLDS,
        )

    def comparisons(self, plan: Any, summary: ProtocolSummary) -> list[Any]:
        """Return the report page of each data set: every row of the table, by the number of features."""
        pages = []
        for dataset in plan.datasets:
            rows = [row for row in summary.rows if row.dataset == dataset]
            if not rows:
                continue
            names = [f"{row.method} / {with_recipe(row.detail, row.recipe)}" for row in rows]
            n_rows, n_features = find_entry(dataset).shape
            comparison = Comparison(
                metric=BALANCED_ACCURACY,
                methods=tuple(names),
                m_values=plan.m_values,
                scores=np.stack([row.scores.T for row in rows]),
                test_share=1 / N_FOLDS,
                references=tuple(name for name, row in zip(names, rows, strict=True) if row.method in REFERENCES),
            )
            page = {"title": display_name(dataset), "n_rows": n_rows, "n_features": n_features, "seed": plan.seed}
            notes = (f"The paper's protocol: {N_FOLDS}-fold x {plan.n_repeats}; method / learner.",)
            pages.append((dataset, comparison, {**page, "notes": (*notes, recipe_sentence(recipes_of(plan)))}))
        return pages


def _published(dataset: str, method: str, detail: str, sizes: Sequence[int]) -> tuple[Any, float | None]:
    """Return the printed mean over the five numbers of features."""
    known = MICROARRAY.get((method, detail.lower()), {}).get(STANDS_FOR.get(dataset, dataset))
    return (), None if known is None else known[0]
