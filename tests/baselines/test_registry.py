from __future__ import annotations

import subprocess
import sys

import pytest

import tamiz.baselines
from tamiz.baselines import available, make
from tamiz.baselines.registry import METHODS, canonical_name, load


@pytest.mark.parametrize("name", [name for name in available() if name not in {"dfs", "sfs", "isfs", "sfs+dfs"}])
def test_every_entry_loads_and_knows_its_name(name):
    method = load(name)
    assert method.method_name == name
    assert getattr(tamiz.baselines, method.__name__) is method
    assert method.__name__ in dir(tamiz.baselines)
    assert make(method.__name__, n_features_to_select=3).n_features_to_select == 3


def test_all_names_of_the_design_are_listed():
    classes = {path.partition(":")[2] for path in METHODS.values()}
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
    assert classes >= {"RandomForestImportance", "MRMR", "RandomSelection", "AllFeatures"}


@pytest.mark.parametrize(
    ("asked", "near"), [("relif", "relieff"), ("svmref", "svm-rfe"), ("fischer", "fisher"), ("sfsdsf", "sfs+dfs")]
)
def test_an_unknown_name_suggests_the_nearest(asked, near):
    with pytest.raises(ValueError, match=f"Unknown method '{asked}'. Did you mean '{near.replace('+', '[+]')}'?"):
        make(asked)


def test_a_name_near_nothing_lists_all():
    with pytest.raises(ValueError, match=r"Unknown method 'qqqq'\. There are: fisher, mim"):
        canonical_name("qqqq")


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="colour"):
        make("fisher", colour="red")


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Fisherscore'"):
        tamiz.baselines.Fisherscore  # noqa: B018


def test_listing_loads_neither_torch_nor_numba():
    program = (
        "import sys; from tamiz.baselines import available; assert available(); "
        "loaded = {'torch', 'numba', 'sklearn'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
