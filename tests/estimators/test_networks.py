"""The table of networks, and parameters that are objects."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tamiz import Auto, Dense, E2EFSClassifier, E2EFSRegressor, Pairs, Training
from tamiz.errors import UnknownNameError
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, find_network


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_says_its_own_name_and_makes_an_engine(name):
    network = find_network(name)
    assert network.name == name
    assert network.title
    assert hasattr(network.engine(Training()), "fit")


def test_the_table_of_networks_and_the_number_of_parameters():
    assert {find_network(one).name for one in AUTOMATIC_NETWORKS.values()} <= set(NETWORKS)
    with pytest.raises(UnknownNameError, match="Did you mean 'additive'"):
        find_network("aditive")
    assert [len(make().get_params(deep=False)) for make in (E2EFSClassifier, E2EFSRegressor)] == [18, 17]


CLF, REG = E2EFSClassifier, E2EFSRegressor
WRONG_NAMES = [  # call, error, message
    (lambda: CLF(ramp_steps=5), TypeError, r"'ramp_steps'. Did you mean training=Training\(ramp_steps=...\)"),
    (lambda: CLF(n_init=5), TypeError, r"Did you mean network=Dense\(n_init=...\)"),
    (lambda: REG(netwerk="mlp"), TypeError, "E2EFSRegressor has no parameter 'netwerk'. Did you mean 'network'"),
    (lambda: REG(class_weight=None), TypeError, "E2EFSRegressor has no parameter 'class_weight'"),
    (lambda: CLF().set_params(varient="hard"), ValueError, "Did you mean 'variant'"),
    (lambda: CLF().set_params(training__ramp_step=5), ValueError, "Training has .*Did you mean 'ramp_steps'"),
    (lambda: CLF(network="mlp").set_params(network__n_inits=5), ValueError, "Dense has .*Did you mean 'n_init'"),
    (lambda: CLF(network="linear").set_params(network__n_init=5), ValueError, "Linear has no parameter 'n_init'"),
    (lambda: Training(ramp_step=5), TypeError, "Did you mean 'ramp_steps'"),
    (lambda: Training().set_params(lerning_rate=5), ValueError, "Did you mean 'learning_rate'"),
    (lambda: Auto(rules="best"), TypeError, "Did you mean 'rule'"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG_NAMES)
def test_a_wrong_name_says_the_nearest_right_one(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_nested_parameters(table):
    model = E2EFSClassifier(2, network="mlp", random_state=0)
    model.set_params(training__ramp_steps=300, network__n_init=1)
    assert repr(model.training) == "Training(ramp_steps=300)"
    assert (model.network.n_init, NETWORKS["mlp"].n_init) == (1, "auto")  # the table of networks stays as it is
    again = clone(model)
    assert again.training is not model.training
    assert again.get_params()["training__ramp_steps"] == 300
    assert again.set_params(network="pairs", network__n_screened=9).network.n_screened == 9
    assert again.set_params(n_features_to_select__rule="best").n_features_to_select.rule == "best"
    search = GridSearchCV(
        E2EFSClassifier(random_state=0), {"training__ramp_steps": [200], "n_features_to_select": [1, 2]}, cv=2
    )
    assert search.fit(*table).best_params_ == {"n_features_to_select": 2, "training__ramp_steps": 200}


def test_an_object_is_the_name_with_its_defaults(table):
    for name, network in (("mlp", Dense()), ("pairs", Pairs())):
        short = {"training": Training(ramp_steps=50, refinement_epochs=2), "random_state": 0}
        named, given = (E2EFSClassifier(2, network=one, **short).fit(*table) for one in (name, network))
        assert named.network_ == given.network_ == name
        assert (named.ranking_ == given.ranking_).all()


OUT_OF_RANGE = [
    (Training(learning_rate=0), r"'learning_rate' parameter of Training .* float in the range \(0"),
    (Training(batch_size=2.5), r"'batch_size' parameter of Training .* int in the range \[1"),
    (Training(warmup_steps=-1), r"'warmup_steps' parameter .* int in the range \[0"),
    (Training(ramp_steps=0), r"'ramp_steps' parameter .* int in the range \[1"),
    (Training(refinement_epochs="many"), r"'refinement_epochs' parameter .* int in the range \[0"),
    (Training(max_steps=None), r"'max_steps' parameter .* int in the range \[1"),
    (Training(mu=0), "'mu' parameter .* float in the range"),
    (Training(rho=1.5), "'rho' parameter .* float in the range"),
    (Training(recipe="papers"), "'recipe' parameter .*'paper'"),
    (Training(mask_optimizer="adma"), "'mask_optimizer' parameter .*'adam'"),
    *((Dense(n_init=value), "'n_init' parameter of Dense must be") for value in (0, -1, 1.5, "three")),
    *((Pairs(n_screened=value), "'n_screened' parameter of Pairs must be") for value in (0, -3, 2.5, "all", None)),
    (Auto(minimum=0), "'minimum' parameter of Auto"),
    *((Auto(rule=value), "'rule' parameter of Auto") for value in (-0.01, float("nan"), "two_se")),
]


@pytest.mark.parametrize(("value", "message"), OUT_OF_RANGE)
def test_values_out_of_range(table, value, message):
    name = {"Training": "training", "Auto": "n_features_to_select"}.get(type(value).__name__, "network")
    model = E2EFSClassifier(2, random_state=0).set_params(**{name: value})
    with pytest.raises(ValueError, match=message):
        model.fit(*table)
    assert not hasattr(model, "selection_")


def test_a_screened_dense_network_keeps_the_columns_of_the_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 9))
    y = X[:, 3] * X[:, 7] > 0
    model = E2EFSClassifier(2, network=Dense(n_screened=1), random_state=0).fit(X, y)
    assert (model.network_, model.get_support(indices=True).tolist()) == ("mlp", [3, 7])
    assert model.score(X, y) > 0.8
    assert sorted(model.selection_.elimination.tolist()) == list(range(1, 10))
    with pytest.raises(ValueError, match="n_screened"):
        E2EFSClassifier(2, network=Dense(n_screened=0)).fit(X, y)
