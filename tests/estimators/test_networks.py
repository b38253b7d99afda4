"""The table of networks."""

import pytest

from tamiz import E2EFSClassifier
from tamiz.errors import UnknownNameError
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS, find_network, find_schedule


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_says_its_own_name_and_makes_an_engine(name):
    network = find_network(name)
    assert network.name == name
    assert network.title
    if network.compiled:
        assert hasattr(network.engine(E2EFSClassifier(2, network=name)), "fit")


def test_what_is_tried_automatically_is_known():
    assert set(AUTOMATIC_NETWORKS) <= set(NETWORKS)


def test_unknown_names_are_corrected():
    with pytest.raises(UnknownNameError, match="Did you mean 'additive'"):
        find_network("aditive")


@pytest.mark.parametrize(("parameter", "value"), [("device", "cuda"), ("n_init", 3)])
def test_what_a_network_does_not_use_must_be_left_alone(parameter, value):
    with pytest.raises(ValueError, match=f"leave {parameter} at"):
        find_network("additive").engine(E2EFSClassifier(2, network="additive", **{parameter: value}))


def test_the_papers_schedule_is_for_the_papers_networks():
    assert find_schedule(E2EFSClassifier(2)) is not None
    assert find_schedule(E2EFSClassifier(2, schedule="paper")) is not None
    with pytest.raises(ValueError, match="paper"):
        find_schedule(E2EFSClassifier(2, network="pairs", schedule="paper"))
