"""Choices that a page leaves to the data."""

from __future__ import annotations

import pytest

from tamiz import E2EFSClassifier
from tamiz.serve.fits import Wish, decide_wish
from tamiz.serve.jobs import JobCancelled
from tamiz.serve.session import LiveTable


@pytest.fixture(scope="module")
def data(small_file):
    return LiveTable(small_file).with_target("ill")


def test_what_is_decided_stays(data):
    wish = Wish(3, "ill")
    assert decide_wish(data, wish) == (wish, None)


def test_m_is_that_of_the_estimator(data):
    """The weight decay of 60 rows and two classes is that of the rule in both."""
    decided, said = decide_wish(data, Wish("auto", "ill"))
    fitted = E2EFSClassifier("auto", random_state=0).fit(data.X, data.y)
    assert decided == Wish(fitted.n_features_to_select_, "ill")
    assert said["m"] == fitted.n_features_to_select_


def test_forced_columns_bound_m(data):
    decided, _ = decide_wish(data, Wish("auto", "ill", keep=("gene 0", "gene 1", "gene 3"), drop=("gene 2",)))
    assert 3 <= decided.n_features_to_select <= 11


@pytest.mark.parametrize("wish", [Wish("auto", "ill"), Wish(2, "ill", "auto")])
def test_a_choice_ends_when_it_is_no_longer_wanted(data, wish):
    calls = []

    def check(*_):
        calls.append(1)
        if len(calls) > 20:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        decide_wish(data, wish, check)
    assert len(calls) == 21
