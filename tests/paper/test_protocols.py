"""Wiring of the protocols: which estimator is fitted with which parameters on which rows, by recording every fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from tamiz import E2EFSClassifier, ErfScaler, Training
from tamiz.baselines.base import BaselineSelector
from tamiz.paper import recipes
from tamiz.paper.protocol import load_protocol
from tamiz.paper.recipes import GRIDS, fit_svm, load_checked, load_split, select_for_all, unit_range
from tamiz.paper.runner import execute


@pytest.fixture
def fits(monkeypatch):
    """Every fit of a selector or a learner: class, parameters and rows; the fit itself goes on as it would."""
    recorded = []

    def record(kind):
        original = kind.fit

        def fit(self, X, y, *arguments, **keywords):
            recorded.append((self, X))
            return original(self, X, y, *arguments, **keywords)

        monkeypatch.setattr(kind, "fit", fit)

    for kind in (E2EFSClassifier, BaselineSelector, LinearSVC):
        record(kind)
    return recorded


def run_one(plan, home, method):
    """Run the first cell of a method; return its settings and its result."""
    cell = next(cell for cell in plan.make_cells(home) if cell.settings["method"] == method)
    outcome = execute(cell, home)
    assert "failure" not in outcome, outcome
    return cell.settings, outcome["result"]


#: Parameters of every network of the recipe [paper], and of those on columns that were selected before.
PAPER = recipes.recipe_parameters("paper")
ANEW = {"training": Training.paper(warmup_steps=0)}
TAMIZ = {name: E2EFSClassifier().get_params()[name] for name in PAPER}


@pytest.mark.parametrize(
    ("protocol", "network", "recipe", "method", "expected"),
    [
        # class, M, columns and parameters of each fit, in order
        ("microarray", "linear", "paper", "e2efs-soft", [(2, 12, PAPER), (4, 12, PAPER), (2, 2, ANEW), (4, 4, ANEW)]),
        ("microarray", "linear", "tamiz", "e2efs", [(2, 12, TAMIZ), (4, 12, TAMIZ), (2, 2, TAMIZ), (4, 4, TAMIZ)]),
        ("microarray", "linear", "paper", "fisher", [(2, 2, ANEW), (4, 4, ANEW)]),
        ("three-layer", "mlp", "paper", "e2efs", [*((m, 12, PAPER) for m in (2, 4)), *((m, m, ANEW) for m in (2, 4))]),
        ("three-layer", "mlp", "tamiz", "fisher", [(2, 2, TAMIZ), (4, 4, TAMIZ)]),
        ("three-layer", "mlp", "paper", "fisher", [(2, 2, ANEW), (4, 4, ANEW)]),
    ],
)
def test_every_network_is_trained_by_the_recipe(table, fits, monkeypatch, protocol, network, recipe, method, expected):
    monkeypatch.setattr("tamiz.paper.figures.M_VALUES", (2, 4))
    plan = {"datasets": ["toy"], "methods": [method], "repeats": 1, "recipe": recipe}
    plan |= {"k": [2, 4], "learners": ["NaiveF", "Naive"]} if protocol == "microarray" else {}
    settings, result = run_one(load_protocol(protocol)(**plan), table, method)
    networks = [(fit, X) for fit, X in fits if isinstance(fit, E2EFSClassifier)]
    found = [(fit.n_features_to_select, X.shape[1]) for fit, X in networks]
    assert found == [(m, columns) for m, columns, _ in expected]
    for (fit, X), (_, _, parameters) in zip(networks, expected, strict=True):
        assert fit.network == network
        assert {name: fit.get_params()[name] for name in parameters} == parameters
        assert X.shape[0] == 60
    details = {detail for detail, _, _ in result["scores"]}
    joint = {"microarray": "NaiveF", "three-layer": "joint"}[protocol]
    assert (joint in details) == (method != "fisher")
    assert len(result["converged"]) == len(result["seconds"]) == 2
    assert settings["sizes"] == [2, 4]
    # The network that selects is the variant of the method.
    variants = {fit.variant for fit, X in networks if X.shape[1] == 12}
    assert variants <= {{"e2efs": "hard", "e2efs-soft": "soft"}.get(method)}


def columns_of(wanted, table):
    """Whether every column is one of a table's."""
    return all(any(np.allclose(column, other, atol=1e-6) for other in table.T) for column in wanted.T)


def test_filters_see_unit_ranges_and_networks_the_rows_as_they_are(table, fits):
    """The SVM sees rows of equation 9, and chooses C by five folds."""
    plan = {"datasets": ["toy"], "methods": ["fisher"], "k": [3], "repeats": 1, "learners": ["Naive", "SVM"]}
    settings, _ = run_one(load_protocol("microarray")(**plan), table, "fisher")
    parts = load_split("toy", table, load_checked("toy", table)[1], 0)
    (scored,) = (X for fit, X in fits if isinstance(fit, BaselineSelector))
    np.testing.assert_array_equal(scored, unit_range(parts.train))
    assert (scored.min(), scored.max()) == pytest.approx((0.0, 1.0))
    (trained,) = (X for fit, X in fits if isinstance(fit, E2EFSClassifier))
    assert columns_of(trained, parts.train)
    machines = [(fit, X) for fit, X in fits if isinstance(fit, LinearSVC)]
    sizes = [len(X) for _, X in machines]
    assert sizes == [48] * 20 + [60], "four values of C in five folds of 60 rows, then all rows"
    assert [fit.C for fit, _ in machines[:4]] == [0.001, 0.1, 1.0, 100.0]
    assert {fit.loss for fit, _ in machines} == {"squared_hinge"}
    assert columns_of(machines[-1][1], ErfScaler(kind="erf2").fit_transform(parts.train))
    assert settings["svm"]["folds"] == 5


def test_the_recipe_of_the_paper_normalises_by_plain_statistics(table):
    """Equation 9 weighs no classes: its mean and deviation are those of all rows."""
    dataset, _ = load_checked("toy", table)
    rows = np.flatnonzero((dataset.target == 0) | (np.arange(90) % 4 == 0))  # classes of unequal size
    X, y = dataset.data[rows], dataset.target[rows]
    fitted = E2EFSClassifier(3, random_state=0, **PAPER).fit(X, y)
    scaled = ErfScaler(kind="erf2").fit_transform(X)
    by_hand = scaled @ fitted.coef_[0] + fitted.intercept_[0]
    np.testing.assert_allclose(fitted.decision_function(X), by_hand, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_svm_picks_what_a_grid_search_picks():
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 6))
    y = (X[:, 1] + 0.5 * generator.normal(size=120) > 0).astype(int)
    grid = {"C": list(GRIDS["small"]["values"])}
    search = GridSearchCV(LinearSVC(dual="auto", random_state=0), grid, cv=StratifiedKFold(5), scoring="accuracy")
    machine = fit_svm(X, y, GRIDS["small"], seed=0)
    assert search.fit(X, y).best_params_["C"] == machine.C
    np.testing.assert_array_equal(machine.coef_, search.best_estimator_.coef_)
    assert len(GRIDS["full"]["solvers"]) * len(GRIDS["full"]["values"]) == 44
    assert np.mean(fit_svm(X, y, GRIDS["full"], seed=0).predict(X) == y) > 0.8
    few = np.array([[0.0], [0.1], [1.0], [0.9], [1.1], [1.2]])
    assert fit_svm(few, np.array([0, 0, 1, 1, 1, 1]), GRIDS["small"], 0).predict([[0.05], [1.0]]).tolist() == [0, 1]
    assert fit_svm(few, np.array([0, 1, 1, 1, 1, 1]), GRIDS["small"], 0).C == 1.0


def test_selections_share_a_ranking_where_the_method_allows_it():
    generator = np.random.default_rng(0)
    X = np.abs(generator.normal(size=(80, 30))).astype(np.float32)
    y = (X[:, 3] > X[:, 7]).astype(int)
    small, large = select_for_all("fisher", X, y, [2, 10], ("toy", 0))
    assert set(small.columns) <= set(large.columns)
    assert small.seconds == large.seconds
    sparse = select_for_all("fisher", sp.csr_matrix(X), y, [2, 10], ("toy", 0))
    assert [picked.columns.tolist() for picked in sparse] == [small.columns.tolist(), large.columns.tolist()]
    assert select_for_all("inffs", sp.csr_matrix(X), y, [2], ("toy", 0))[0].columns.size == 2
    one, again, other = (select_for_all("random", X, y, [5], ("toy", i))[0].columns.tolist() for i in (0, 0, 1))
    assert one == again != other
    assert select_for_all("all", X, y, [5, 9], ("toy", 0))[1].columns.tolist() == list(range(30))


@pytest.mark.parametrize("ramp_steps", [800, 1])
def test_projection_finds_the_columns_and_keeps_exactly_m(ramp_steps, script):
    generator = np.random.default_rng(2)
    X = generator.normal(size=(90, 40))
    y = np.array(["ill", "well"])[(X[:, [5, 9, 30]].sum(axis=1) > 0.7).astype(int)]
    select = script("solvers").select_by_projection
    assert select(X, y, 3, ramp_steps=ramp_steps).tolist() == [5, 9, 30]
    assert select(sp.csr_matrix(X), y, 7, ramp_steps=ramp_steps).size == 7


def test_other_plans_are_other_cells(table):
    microarray = load_protocol("microarray")
    common = {"datasets": ["toy"], "methods": ["e2efs-soft"], "k": [2], "repeats": 1}

    def keys(**more):
        return {cell.key for cell in microarray(**{**common, **more}).make_cells(table)}

    first = keys()
    assert len(first) == 3 * 3
    for change in ({"k": [3]}, {"grid": "full"}, {"seed": 1}, {"learners": ["SVM"]}):
        assert first.isdisjoint(keys(**change))
    assert first < keys(repeats=2)
    cell = microarray(**common).make_cells(table)[0]
    failure = execute(type(cell)(cell.protocol, cell.name, {**cell.settings, "data": "0" * 32}), table)["failure"]
    assert "not the one that the run was planned with" in failure
    many = microarray(**{**common, "k": [5000]}).make_cells(table)[0]
    assert "more than the 12 features" in execute(many, table)["failure"]


def test_splits_are_those_of_scikit_learn():
    from sklearn.model_selection import RepeatedStratifiedKFold

    y = np.repeat([0, 1], [22, 40])
    expected = list(RepeatedStratifiedKFold(n_splits=3, n_repeats=20, random_state=42).split(np.zeros((62, 1)), y))
    for split in (0, 1, 17, 59):
        for mine, theirs in zip(recipes.split_rows(y, split), expected[split], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.data
def test_parts_of_real_sets(data_home):
    dexter, found = load_checked("dexter", data_home)
    parts = load_split("dexter", data_home, found, 1)
    assert parts.n_features == dexter.data.shape[1] > parts.columns.size == parts.train.shape[1]
    assert np.asarray((parts.train != 0).sum(axis=0)).min() > 0
    gina = load_split("gina_rebuilt", data_home, load_checked("gina_rebuilt", data_home)[1], 0)
    assert gina.y_train.size + gina.y_test.size == 3153, "the rows that the paper counts"


# ---- ground truth


def test_ground_truth_finds_what_a_method_is_known_to_find():
    """ReliefF sees a xor of two among eight columns, Fisher cannot: no column says anything alone."""
    truth = load_protocol("ground-truth")
    plan = truth(problems=["xor"], methods=["relieff", "fisher"], sizes=[8, 32], folds=3)
    cells = plan.make_cells()
    summary = plan.summarise(cells, {cell.key: execute(cell)["result"] for cell in cells}, {})
    means = {row.method: row.scores.mean(axis=0) for row in summary.rows}
    assert means["relieff"][0] == 1.0
    assert means["fisher"][1] < 0.5
    assert "| LassoNet (light budget) | 0.780 |" in summary.markdown
    assert "Differences" not in summary.markdown, "published means are over all sizes"


@pytest.mark.parametrize(("method", "problem", "size", "parameter"), [
    ("pairs", "ring+xor", 64, ("network", "'pairs'")),
    ("mrmr", "ring", 16, ("relevance", "'mutual_info'")),
    ("e2efs-soft", "xor", 8, ("network", "'mlp'")),
])  # fmt: skip
def test_methods_get_what_the_problems_need(method, problem, size, parameter):
    truth = load_protocol("ground-truth")
    plan = truth(problems=[problem], methods=[method], sizes=[size], folds=2)
    cell = next(cell for cell in plan.make_cells() if cell.settings["method"] == method)
    assert parameter in cell.settings["parameters"].items()
    assert execute(cell)["result"]["scores"][0][2][0] >= (0.5 if method == "mrmr" else 1.0)


def test_dead_networks_are_told_from_living_ones(table):
    dataset, _ = load_checked("toy", table)
    living = E2EFSClassifier(2, random_state=0).fit(dataset.data, dataset.target)
    score, dead = recipes.score_fitted(living, dataset.data, dataset.target)
    assert (score > 0.8, dead) == (True, False)

    class Dead:
        def decision_function(self, X):
            return np.full(len(X), -0.3)

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    assert recipes.score_fitted(Dead(), dataset.data, dataset.target) == (0.5, True)
