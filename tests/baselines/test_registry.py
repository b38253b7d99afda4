from __future__ import annotations

import subprocess
import sys

import pytest

import tamiz.baselines
from tamiz.baselines import METHODS, available, get_method, make_selector
from tamiz.baselines.registry import BASELINES, canonical_name
from tamiz.core import VARIANTS, Variant
from tamiz.core.rule import hard_target


@pytest.mark.parametrize("name", list(BASELINES))
def test_every_entry_loads_and_agrees_with_its_class(name):
    method = METHODS[name]
    kind = method.load()
    assert (method.name, kind.method_name, kind.title) == (name, name, method.title)
    assert getattr(tamiz.baselines, kind.__name__) is kind
    assert kind.__name__ in dir(tamiz.baselines)
    assert make_selector(kind.__name__, 3).n_features_to_select == 3
    for fact in ("tasks", "uses_target", "nested", "keeps_all", "accepts_sparse", "allows_nan", "engine"):
        assert getattr(method, fact) == getattr(kind, fact)
    assert not method.trains_model


@pytest.mark.parametrize("name", list(BASELINES))
def test_methods_for_both_tasks_can_be_told_which(name):
    kind = METHODS[name].load()
    both = kind.uses_target and set(kind.tasks) == {"classification", "regression"}
    assert ("task" in kind().get_params()) == both


def test_all_names_of_the_design_are_listed():
    classes = {method.path.partition(":")[2] for method in METHODS.values()}
    assert classes >= {
        "FisherScore",
        "MIM",
        "ReliefF",
        "InfFS",
        "ILFS",
        "SVMRFE",
        "Lasso",
        "DFS",
        "SFS",
        "ISFS",
        "SFSDFS",
    }
    assert classes >= {"RandomForestImportance", "MRMR", "RandomSelection", "AllFeatures", "E2EFSClassifier"}


def test_what_the_tables_of_the_commands_say():
    assert {name: method.title for name, method in METHODS.items()} == {
        "e2efs": "E2E-FS",
        "e2efs-soft": "E2E-FS-Soft",
        "e2efs-ranking": "E2E-FS-Ranking",
        "pairs": "E2E-FS-Pairs",
        "fisher": "Fisher",
        "mim": "MIM",
        "relieff": "ReliefF",
        "inffs": "InfFS",
        "ilfs": "ILFS",
        "svm-rfe": "SVM-RFE",
        "lasso": "Lasso",
        "dfs": "DFS",
        "sfs": "SFS",
        "isfs": "iSFS",
        "sfs+dfs": "SFS+DFS",
        "random-forest": "random forest",
        "mrmr": "mRMR",
        "pair-search": "pair search",
        "random": "random features",
        "all": "all features",
    }
    nested = {name: method.nested for name, method in METHODS.items() if method.nested != "any"}
    own = dict.fromkeys(("e2efs", "e2efs-soft", "e2efs-ranking", "pairs"), "each")
    assert nested == own | {"isfs": "each", "lasso": "each", "svm-rfe": "smallest", "mrmr": "largest"}
    assert [name for name, method in METHODS.items() if method.keeps_all] == ["all"]
    assert [name for name, method in METHODS.items() if method.engine == "torch"] == ["dfs", "sfs", "isfs", "sfs+dfs"]
    assert [name for name, method in METHODS.items() if "regression" not in method.tasks] == ["fisher", "ilfs"]


def test_a_variant_is_a_method_by_itself(monkeypatch):
    monkeypatch.setitem(VARIANTS, "toy", Variant("toy", "E2E-FS-Toy", hard_target))
    assert available()[:6] == ["e2efs", "e2efs-soft", "e2efs-ranking", "e2efs-toy", "pairs", "fisher"]
    method = get_method("E2E-FS toy")
    assert (method.title, method.variant, method.nested, method.trains_model) == ("E2E-FS-Toy", "toy", "each", True)
    monkeypatch.undo()
    assert "e2efs-toy" not in METHODS


@pytest.mark.parametrize(("task", "kind"), [("auto", "E2EFSClassifier"), ("regression", "E2EFSRegressor")])
def test_e2efs_is_built_like_any_other(task, kind):
    selector = make_selector("e2efs-soft", 4, task=task, random_state=3)
    assert type(selector).__name__ == kind
    assert selector.get_params().items() >= {"n_features_to_select": 4, "variant": "soft", "random_state": 3}.items()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_method_with_a_network_of_its_own_keeps_it(task):
    from tamiz.evaluation.comparison import make_seeded

    assert make_selector("Pairs", 4, task=task).get_params().items() >= {"variant": "soft", "network": "pairs"}.items()
    assert make_seeded("pairs", 4, 0, task=task, network="mlp").network == "pairs"
    assert make_seeded("e2efs-soft", 4, 0, task=task, network="mlp").network == "mlp"


def test_variants_are_registered_elsewhere():
    with pytest.raises(TypeError, match=r"registered in tamiz\.core\.VARIANTS"):
        METHODS.maps[-1]["e2efs-toy"] = METHODS["fisher"]


@pytest.mark.parametrize(
    ("asked", "near"), [("relif", "relieff"), ("svmref", "svm-rfe"), ("fischer", "fisher"), ("sfsdsf", "sfs+dfs")]
)
def test_an_unknown_name_suggests_the_nearest(asked, near):
    with pytest.raises(ValueError, match=f"Unknown method '{asked}'. Did you mean '{near.replace('+', '[+]')}'?"):
        make_selector(asked)


def test_a_name_near_nothing_lists_all():
    with pytest.raises(
        ValueError, match=r"Unknown method 'qqqq'\. There are: e2efs, e2efs-soft, e2efs-ranking, pairs, fisher, mim"
    ):
        canonical_name("qqqq")


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="colour"):
        make_selector("fisher", colour="red")


def test_a_task_that_a_method_does_not_do():
    with pytest.raises(ValueError, match="The method 'ilfs' does not do regression"):
        make_selector("ilfs", 3, task="regression")
    assert make_selector("lasso", 3, task="regression").task == "regression"


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Fisherscore'"):
        tamiz.baselines.Fisherscore  # noqa: B018


def test_listing_loads_neither_torch_nor_numba():
    program = (
        "import sys; from tamiz.baselines import METHODS; assert [method.title for method in METHODS.values()]; "
        "loaded = {'torch', 'numba', 'sklearn'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
