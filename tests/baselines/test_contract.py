"""What every method of the registry promises, and the registry itself; methods with networks are tested in tests/paper."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import parametrize_with_checks

import tamiz.baselines
from tamiz.baselines import ILFS, MIM, MRMR, InfFS, ReliefF, available, get_method, make_selector, methods
from tamiz.baselines.registry import BASELINES
from tamiz.core.rule import VARIANTS, Variant, hard_target
from tamiz.selection import Selection

NAMES = [name for name, method in BASELINES.items() if method.engine != "torch"]
SUPERVISED = [name for name in NAMES if BASELINES[name].uses_target]
REGRESSION = [name for name in SUPERVISED if "regression" in BASELINES[name].tasks]
SPARSE = [name for name in NAMES if BASELINES[name].accepts_sparse]
SCORING = [name for name in NAMES if name not in ("random", "all")]


def build(name: str, n_features_to_select=None):
    """Build a small selector of the method, seeded where it has a seed."""
    selector = make_selector(name, n_features_to_select, random_state=0)
    if name == "random-forest":
        selector.set_params(n_estimators=20)
    return selector


@pytest.fixture(scope="module")
def classes():
    return make_classification(60, 12, n_informative=4, n_redundant=0, n_classes=3, shuffle=False, random_state=0)


@pytest.fixture(scope="module")
def numbers():
    X = np.random.default_rng(0).normal(size=(400, 12))
    return X, X[:, 0] + X[:, 1] - X[:, 2]


@parametrize_with_checks([build(name) for name in NAMES])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("wanted", "expected"), [(1, 1), (5, 5), (12, 12), (0.25, 3), (0.01, 1), (None, 6)])
def test_exactly_m_and_a_full_ranking(name, wanted, expected, classes):
    X, y = classes
    expected = 12 if name == "all" else expected
    selector = build(name, wanted).fit(X, y)
    assert selector.get_support().sum() == expected == selector.n_features_to_select_
    assert sorted(selector.ranking_) == list(range(1, 13))
    assert np.array_equal(np.argsort(selector.ranking_), np.argsort(-selector.scores_, kind="stable"))
    assert selector.transform(X).shape == (60, expected)
    assert isinstance(selector.selection_, Selection)
    assert selector.selection_.variant == name
    assert np.array_equal(selector.selection_.support, selector.get_support())


@pytest.mark.parametrize("name", SCORING)
def test_signal_beats_noise_among_classes(name):
    rng = np.random.default_rng(3)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 8))
    X[:, 5] += 3.0 * y
    if name == "inffs":  # knows no classes: prefers what varies, and does not repeat others
        X[:, :5] = X[:, :1] + 1e-3 * X[:, :5]
        X[:, 6:] = X[:, :1] + 1e-3 * X[:, 6:]
    assert build(name, 1).fit(X, np.array(["a", "b", "c"])[y]).ranking_[5] == 1


@pytest.mark.parametrize("name", REGRESSION)
def test_signal_beats_noise_in_regression(name, numbers):
    X, y = numbers
    selector = build(name, 3).fit(X, y)
    assert selector.task_ == "regression"
    assert set(selector.get_support(indices=True)) == {0, 1, 2}
    assert np.array_equal(selector.set_params(task="regression").fit(X, y).ranking_, selector.ranking_)


@pytest.mark.parametrize("name", sorted(set(SCORING) - {"random-forest", "mim"}))
def test_permuting_columns_permutes_scores(name, classes):
    X, y = classes
    order = np.random.default_rng(1).permutation(12)
    scores, permuted = build(name, 4).fit(X, y).scores_, build(name, 4).fit(X[:, order], y).scores_
    # Coordinate descent visits columns in their order, so its last digits change with it.
    np.testing.assert_allclose(permuted, scores[order], rtol=1e-2 if name == "lasso" else 1e-7, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_result_pickles_names_of_columns_and_one_column(name, classes):
    X, y = classes
    table = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    first = build(name, 3).set_output(transform="pandas").fit(table, y)
    again = pickle.loads(pickle.dumps(clone(first).fit(table, y)))
    assert np.array_equal(first.scores_, again.scores_)
    kept = list(first.transform(table).columns)
    assert kept == [f"gene {i}" for i in first.get_support(indices=True)]
    assert set(first.selection_.names) == set(kept)
    assert build(name).fit(X[:, :1], y).get_support().tolist() == [True]


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("format_", ["csr", "csc", "coo"])
def test_sparse_gives_what_dense_gives(name, format_, classes):
    X, y = classes
    X = np.where(X > 0, X, 0.0)
    options = {"degree": 1} if name == "pair-search" else {}  # the degree of sparse tables
    dense = build(name, 4).set_params(**options).fit(X, y)
    sparse = build(name, 4).set_params(**options).fit(sp.coo_array(X).asformat(format_), y)
    assert np.array_equal(dense.get_support(), sparse.get_support())
    # MIM draws other noise among the many ties at zero; the search for pairs works in float32
    tolerance = {"mim": 0.2, "lasso": 1e-2, "pair-search": 1e-3}.get(name, 1e-9)
    np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-9, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_bad_tables_and_impossible_numbers_of_features_are_refused(name, classes):
    X, y = classes
    for wanted, message in (
        (0, "n_features_to_select must be at least 1, got 0"),
        (13, "n_features_to_select=13 is more than the 12"),
        (1.5, "fraction out of range"),
        ("ten", "must be an integer, a fraction"),
    ):
        if not BASELINES[name].keeps_all:
            with pytest.raises(ValueError, match=message):
                build(name, wanted).fit(X, y)
    broken = X.copy()
    broken[3, 4] = np.inf
    with pytest.raises(ValueError, match="contains infinity in column 4"):
        build(name).fit(broken, y)
    broken[3, 4] = np.nan
    if not BASELINES[name].allows_nan:
        with pytest.raises(ValueError, match="contains NaN in column 4"):
            build(name).fit(broken, y)
    with pytest.raises(ValueError, match="Two columns are called 'a'"):
        build(name).fit(pd.DataFrame(X[:, :2], columns=["a", "a"]), y)
    with pytest.raises(ValueError, match="text, or objects, in 'b'"):
        build(name).fit(pd.DataFrame({"a": X[:, 0], "b": ["x"] * 60}), y)


@pytest.mark.parametrize("name", SUPERVISED)
def test_bad_targets_are_refused(name, classes):
    X, y = classes
    for target, message in [
        (None, "requires y to be passed"),
        (3, "one entry for each row"),
        (y[:-1], "inconsistent numbers of samples: 60 rows of X, 59 entries of y"),
        (np.zeros(60, dtype=int), "y holds only one class"),
        (np.full(60, np.nan), "Input y contains NaN"),
        (np.full((60, 2), 1.0), "y should be a 1d array"),
    ]:
        with pytest.raises(ValueError, match=message):
            build(name).fit(X, target)
    with pytest.raises(ValueError, match="1 sample"):
        build(name).fit(X[:1], y[:1])
    if name not in REGRESSION:
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            build(name).fit(X, X[:, 0])


@pytest.mark.parametrize("name", SCORING)
def test_constant_columns_come_last_or_do_no_harm(name, classes):
    X, y = classes
    X = X.copy()
    X[:, 7] = 1.0 if name == "svm-rfe" else 1e6  # an SVM takes a large constant for its intercept
    scores = build(name, 2).fit(X, y).scores_
    assert np.isfinite(scores).all()
    if name in ("fisher", "lasso", "mrmr", "random-forest"):
        assert scores[7] == scores.min()
    if name == "relieff":
        assert scores[7] == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_one_fit_serves_every_m_as_the_method_says(name, classes):
    X, y = classes
    X = np.hstack([X, np.random.default_rng(5).normal(size=(60, 18))])
    sizes = (2, 5, 9)
    nested = BASELINES[name].nested
    if nested == "each" or BASELINES[name].keeps_all:
        return
    for m in {"any": sizes, "largest": sizes[-1:], "smallest": sizes[:1]}[nested]:
        ranking = build(name, m).fit(X, y).ranking_
        for other in sizes:
            np.testing.assert_array_equal(ranking <= other, build(name, other).fit(X, y).get_support())


@pytest.mark.parametrize(("task", "kind"), [("auto", "E2EFSClassifier"), ("regression", "E2EFSRegressor")])
def test_e2efs_is_built_like_any_other_and_pairs_keep_their_network(task, kind):
    selector = make_selector("e2efs-soft", 4, task=task, random_state=3)
    assert type(selector).__name__ == kind
    assert selector.get_params().items() >= {"n_features_to_select": 4, "variant": "soft", "random_state": 3}.items()
    assert make_selector("Pairs", 4, task=task).get_params().items() >= {"variant": "soft", "network": "pairs"}.items()
    assert make_selector("pairs", 4, task=task, network="mlp").network == "pairs"
    assert make_selector("e2efs-soft", 4, task=task, network="mlp").network == "mlp"


def test_listing_loads_neither_torch_nor_numba():
    program = (
        "import sys; from tamiz.baselines import methods; assert [method.title for method in methods().values()]; "
        "loaded = {'torch', 'numba', 'sklearn'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        *((ReliefF(n_neighbors=k), "The 'n_neighbors' parameter of ReliefF must be an int") for k in (0, -1, 2.5)),
        *((MIM(n_neighbors=k), "The 'n_neighbors' parameter of MIM must be an int") for k in (0, "3")),
        *((InfFS(alpha=a), "The 'alpha' parameter of InfFS must be a float") for a in (-0.1, 1.1, "half", np.nan)),
        (ILFS(n_tokens=1), "The 'n_tokens' parameter of ILFS must be"),
        (ILFS(n_rounds=0), "The 'n_rounds' parameter of ILFS must be"),
        (MRMR(relevance="mi"), r"The 'relevance' parameter of MRMR must be a str among .* Got 'mi' instead"),
    ],
)
def test_impossible_parameters(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize("name", list(BASELINES))
def test_every_entry_loads_and_agrees_with_its_class(name):
    method, kind = get_method(name), BASELINES[name].load()
    assert getattr(tamiz.baselines, kind.__name__) is kind
    assert kind.__name__ in dir(tamiz.baselines)
    assert type(make_selector(kind.__name__, 3)) is kind
    assert (method.nested, method.tasks, method.trains_model) == (kind.nested, kind.tasks, False)
    assert set(kind().get_params()) <= set(kind._parameter_constraints)
    with pytest.raises(TypeError, match="positional argument"):
        kind(3, 3)


def test_what_the_tables_of_the_commands_say():
    names = available()
    assert " ".join(names) == (
        "e2efs e2efs-soft e2efs-ranking pairs fisher mim relieff inffs ilfs svm-rfe lasso dfs sfs isfs sfs+dfs "
        "random-forest mrmr pair-search random all"
    )
    assert [methods()[name].title for name in names[:4]] == ["E2E-FS", "E2E-FS-Soft", "E2E-FS-Ranking", "E2E-FS-Pairs"]
    nested = {name: method.nested for name, method in methods().items() if method.nested != "any"}
    own = dict.fromkeys(("e2efs", "e2efs-soft", "e2efs-ranking", "pairs"), "each")
    assert nested == own | {"isfs": "each", "lasso": "each", "svm-rfe": "smallest", "mrmr": "largest"}
    facts = {fact: [name for name in names if getattr(get_method(name), fact)] for fact in ("keeps_all", "allows_nan")}
    assert facts == {"keeps_all": ["all"], "allows_nan": ["random-forest", "random", "all"]}
    assert [name for name in names if get_method(name).engine == "torch"] == ["dfs", "sfs", "isfs", "sfs+dfs"]
    assert [name for name in names if "regression" not in get_method(name).tasks] == ["fisher", "ilfs"]


def test_a_variant_is_a_method_by_itself(monkeypatch):
    monkeypatch.setitem(VARIANTS, "toy", Variant("toy", "E2E-FS-Toy", hard_target))
    assert available()[:5] == ["e2efs", "e2efs-soft", "e2efs-ranking", "e2efs-toy", "pairs"]
    method = get_method("E2E-FS toy")
    assert (method.title, method.options, method.trains_model) == ("E2E-FS-Toy", {"variant": "toy"}, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_selector("relif"), "Unknown method 'relif'. Did you mean 'relieff'?"),
        (lambda: make_selector("sfsdsf"), r"Unknown method 'sfsdsf'. Did you mean 'sfs\+dfs'?"),
        (
            lambda: make_selector("qqqq"),
            r"Unknown method 'qqqq'\. There are: e2efs, e2efs-soft, e2efs-ranking, pairs, fisher",
        ),
        (lambda: make_selector("fisher", colour="red"), "colour"),
        (lambda: make_selector("ilfs", 3, task="regression"), "The method 'ilfs' does not do regression"),
        (lambda: tamiz.baselines.Fisherscore, "no attribute 'Fisherscore'"),
    ],
)
def test_unknown_names(call, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        call()
