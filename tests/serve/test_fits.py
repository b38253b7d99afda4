"""What a page may ask for."""

from types import SimpleNamespace

import pytest

from tamiz.serve.fits import Wish, lower_m, make_live_estimator, read_wish
from tamiz.serve.session import LiveError

DATA = SimpleNamespace(
    column_names=["a", "b", "c"],
    is_grouped=False,
    task="regression",
    find_features=lambda names, what: [["a", "b", "c"].index(name) for name in names],
)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"m": 0},
        {"m": True},
        {"m": 1.5},
        {"m": 1, "target": 3},
        {"m": 1, "network": "huge"},
        {"m": 1, "keep": "a"},
        {"m": 1, "drop": [1]},
    ],
)
def test_what_cannot_be_asked_is_named(record):
    with pytest.raises(LiveError):
        read_wish(record)


def test_names_that_are_given_twice_count_once():
    assert read_wish({"m": 2, "keep": ["a", "a"], "drop": ["b"]}) == Wish(2, keep=("a",), drop=("b",))


def test_m_is_lowered_to_the_columns_that_are_left():
    assert lower_m(DATA, Wish(9, drop=("b", "unknown"))).n_features_to_select == 2
    assert lower_m(DATA, Wish(1)).n_features_to_select == 1


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish(4), "3 columns are left"),
        (Wish(1, keep=("a", "b")), "more than M = 1"),
        (Wish(1, keep=("a",), drop=("a",)), "both in and out"),
    ],
)
def test_wishes_that_contradict_themselves(wish, message):
    with pytest.raises(LiveError, match=message):
        make_live_estimator(DATA, wish)


def test_a_wish_becomes_an_estimator():
    made = make_live_estimator(DATA, Wish(2, keep=("c",), drop=("a",)))
    assert type(made).__name__ == "E2EFSRegressor"
    assert (made.n_features_to_select, made.keep, made.drop) == (2, [2], [0])
