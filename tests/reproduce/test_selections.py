"""Selections of the protocols: one ranking for nested methods, one fit for each M for the others."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.baselines.registry import available
from tamiz.evaluation.comparison import compare_methods, make_candidates, make_seeded
from tamiz.paper.recipes import method_settings, select_for_all, unit_range


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 30)).astype(np.float32)
    y = (X[:, 3] - X[:, 7] + 0.1 * generator.normal(size=300) > 0).astype(np.int64)
    return X[:200], y[:200], X[200:], y[200:]


def test_one_ranking_serves_all_sizes(table):
    train, y, _, _ = table
    small, large = select_for_all("fisher", train, y, [2, 10], ("toy", 0))
    assert set(small.columns) <= set(large.columns)
    assert small.seconds == large.seconds
    sparse = select_for_all("fisher", sp.csr_matrix(np.abs(train)), y, [2, 10], ("toy", 0))
    dense = select_for_all("fisher", np.abs(train), y, [2, 10], ("toy", 0))
    assert [picked.columns.tolist() for picked in sparse] == [picked.columns.tolist() for picked in dense]


def test_random_depends_on_the_split_and_all_keeps_all(table):
    train, y, _, _ = table
    one, again, other = (select_for_all("random", train, y, [5], ("toy", i))[0].columns for i in (0, 0, 1))
    assert one.tolist() == again.tolist() != other.tolist()
    assert select_for_all("all", train, y, [5, 9], ("toy", 0))[1].columns.tolist() == list(range(30))


@pytest.mark.parametrize("method", available())
def test_every_method_can_be_made_and_its_settings_are_data(method):
    settings = json.loads(json.dumps(method_settings(method)))
    assert "random_state" not in settings
    assert make_seeded(method, 3, 0).n_features_to_select == 3


@pytest.mark.parametrize("method", ["fisher", "svm-rfe", "lasso"])
def test_reproduce_and_compare_select_the_same(table, method):
    """Both fit a method at the M that its description says."""
    train, y, _, _ = table
    train = unit_range(train)
    found = select_for_all(method, train, y, [2, 10], ("toy", 0))
    rows = np.arange(len(y))
    compared = compare_methods(
        lambda fit, test: (train[fit], train[test]),
        y,
        make_candidates([method], "classification"),
        [2, 10],
        [(rows, rows)],
        task="classification",
        n_features=train.shape[1],
    )
    for position, picked in enumerate(found):
        assert picked.columns.tolist() == np.flatnonzero(compared.supports[0, position, 0]).tolist()


def test_a_changed_way_of_fitting_is_another_setting():
    assert method_settings("svm-rfe")["fitted"] == "smallest"
    assert "fitted" not in method_settings("lasso")
