"""Tables on the paper's splits, 3-fold x 20: their common part, and the table "Microarray and FS challenge"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tamiz.baselines.registry import get_method, make_selector
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.paper import recipes
from tamiz.paper.datasets import find_entry
from tamiz.paper.numbers import MICROARRAY, MICROARRAY_FILES, STANDS_FOR
from tamiz.paper.protocol import Cell, Protocol, seed_from
from tamiz.paper.tables import TableRow, display_name, with_recipe

M_VALUES = (10, 50, 100, 150, 200)
LEARNERS = ("NaiveF", "Naive", "SVM")
#: Learners of figure 2: the network trained anew on what was selected, and the one that selected.
ANEW, JOINT = CURVES = ("anew", "joint")


class SplitProtocol(Protocol):
    """Base of the protocols that select on the training part of each split and score on its test part."""

    measure = BALANCED_ACCURACY.name
    n_published, test_share = recipes.N_FOLDS * recipes.N_REPEATS, 1 / recipes.N_FOLDS
    choices: ClassVar = {"grid": tuple(recipes.GRIDS), "recipe": (*recipes.RECIPES, "both")}
    #: Network that E2E-FS trains, and that is trained anew.
    network: ClassVar[str]

    datasets: Sequence[str] = ()
    methods: Sequence[str] = ("mim", "fisher", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")
    learners: Sequence[str] = ()
    repeats: int = recipes.N_REPEATS
    recipe: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        recipes.recipes_of(self)

    def sizes_of(self, dataset: str) -> Sequence[int]:
        """Numbers of features on a data set."""
        raise NotImplementedError

    def scored_by(self, method: str, recipe: str | None) -> list[tuple[str, str | None]]:
        """List the learners that score a selection, each with its recipe; the SVM of a baseline has none."""
        if get_method(method).trains_model:
            return [(learner, recipe) for learner in self.learners]
        anew = recipes.recipes_of(self)
        trained: dict[str, Sequence[str | None]] = {"Naive": anew, ANEW: anew, "SVM": (None,)}
        return [(learner, its) for learner in self.learners for its in trained.get(learner, ())]

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """Make one cell per data set, method and split, for all numbers of features and learners."""
        grid = vars(self).get("grid", "small")
        svm = {**recipes.GRIDS[grid], "folds": recipes.SVM_FOLDS, "normalize": recipes.SVM_NORMALIZATION}
        cells = []
        for name in sorted(self.datasets, key=lambda name: -np.prod(find_entry(name).shape)):
            _, checksum = recipes.load_checked(name, data_home)
            for method in self.methods:
                for recipe in recipes.recipes_of(self) if get_method(method).trains_model else (None,):
                    learners = self.scored_by(method, recipe)
                    networks = {its: recipes.network_for(1, its, 0, self.network) for _, its in learners}
                    selector = make_selector(method, 1, network=self.network, **recipes.recipe_parameters(recipe))
                    settings = {
                        "dataset": name,
                        "data": checksum,
                        "method": method,
                        "recipe": recipe,
                        "network": self.network,
                        "parameters": recipes.parameters_of(selector),
                        "sizes": list(self.sizes_of(name)),
                        "learners": [list(learner) for learner in learners],
                        "networks": {its or "": recipes.parameters_of(network) for its, network in networks.items()},
                        "svm": svm,
                        "grid": grid,
                        "splits": [recipes.N_FOLDS, recipes.SPLIT_SEED],
                    }
                    title = f"{name}, split {{}}, {with_recipe(method, recipe)}"
                    cells += self.repeat(title, settings, recipes.N_FOLDS * self.repeats)
        return cells

    @classmethod
    def run_cell(cls, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select by one method on one split for every M, and score each selection by every learner."""
        method, sizes, network = (settings[key] for key in ("method", "sizes", "network"))
        parts = recipes.load_split(settings["dataset"], data_home, settings["data"], settings["unit"])
        keeps_all, parameters = get_method(method).keeps_all, recipes.recipe_parameters(settings["recipe"])
        identity = (cls.name, settings["dataset"], settings["unit"], settings["seed"])
        found = recipes.select_for_all(method, parts.train, parts.y_train, sizes, identity, network, parameters)
        scores, dead = [], []
        for learner, recipe in settings["learners"]:
            values: list[tuple[float, bool]] = []
            for m, picked in zip(sizes, found, strict=True):
                if keeps_all and values:  # the same columns for every M
                    values.append(values[0])
                    continue
                seed = seed_from(*identity, method, m, "network" if learner == ANEW else learner.lower())
                if learner in ("NaiveF", JOINT):
                    values.append(recipes.score_fitted(picked.model, parts.test, parts.y_test))
                elif learner == "SVM":
                    values.append((recipes.score_svm(parts, picked.columns, settings["grid"], seed), False))
                else:
                    model = recipes.network_for(picked.columns.size, recipe, seed, network)
                    model.fit(parts.train[:, picked.columns], parts.y_train)
                    values.append(recipes.score_fitted(model, parts.test[:, picked.columns], parts.y_test))
            scores.append([learner, recipe, [score for score, _ in values]])
            dead.append([learner, recipe, [is_dead for _, is_dead in values]])
        return {
            "scores": scores,
            "dead": dead,
            "support": None if keeps_all else [parts.columns[picked.columns].tolist() for picked in found],
            "seconds": [picked.seconds for picked in found],
            "converged": [picked.converged for picked in found],
            "n_features": parts.n_features,
        }


class Microarray(SplitProtocol):
    """The table "Microarray and FS challenge": 3-fold x 20, mean balanced accuracy over five numbers of features.

    NaiveF is the network that selected, Naive the same trained anew on what was selected, SVM a linear SVM on that.

    Examples
    --------
    >>> Microarray(datasets=["COLON"], methods=["Fisher"]).methods
    ('fisher', 'random', 'all')
    >>> Microarray(datasets=["colon"], methods=["fischer"])
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown method 'fischer'. Did you mean 'fisher'? ...
    """

    name = "microarray"
    network = "linear"
    choices: ClassVar = {**SplitProtocol.choices, "learners": LEARNERS}

    #: In the paper's order; stand-ins are labelled in every output.
    datasets: Sequence[str] = (
        *("lymphoma", "colon", "leukemia_3571", "leukemia", "lung", "dexter"),
        *("gina_rebuilt", "gisette_rebuilt"),
    )
    learners: Sequence[str] = LEARNERS
    k: Sequence[int] = M_VALUES
    #: What the SVM chooses from: small, or full (that of the authors' code, ten times the work).
    grid: str = "small"

    def sizes_of(self, dataset: str) -> Sequence[int]:
        """Numbers of features, the same on every data set."""
        return self.k

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        solver = "the grid of the authors' code" if self.grid == "full" else "C from 0.001, 0.1, 1, 100, squared hinge"
        over = f"M = {', '.join(map(str, self.k))} and {recipes.N_FOLDS * self.repeats} splits"
        return (
            "Microarray and FS challenge: " + ", ".join(map(display_name, self.datasets)),
            f"Mean balanced accuracy over {over} (3-fold x {self.repeats}), ± the standard deviation over both; "
            f"in brackets the paper's number. SVM: {solver}, by 5-fold accuracy on the training part. "
            f"{recipes.recipe_sentence(recipes.recipes_of(self))}",
            "mean over M = {sizes} and {units}",
        )

    def published(self, row: TableRow) -> tuple[Sequence[float | None], float | None]:
        """Printed mean over the five numbers of features."""
        known = MICROARRAY.get((row.method, row.detail.lower()), {}).get(STANDS_FOR.get(row.dataset, row.dataset))
        return (), None if known is None or row.sizes != M_VALUES else known[0]

    def reasons(self, row: TableRow) -> list[str]:
        """Known differences to the paper."""
        found = []
        if row.dataset in ("leukemia", "leukemia_3571"):
            found.append("the paper's text has 7129 genes, the authors' file 3571")
        if row.recipe == "tamiz":
            found.append("trained by the defaults of tamiz, not by the paper's recipe")
        files = MICROARRAY_FILES.get((row.method, row.detail.lower()), {}).get(STANDS_FOR.get(row.dataset, row.dataset))
        if files is not None:
            found.append(f"the authors' result files have {files:.3f}")
        if row.detail == "SVM" and self.grid == "small":
            found.append("the SVM chose from the small grid")
        if row.method in ("inffs", "ilfs"):
            found.append("see docs/baselines.md for what is known of the method")
        return found
