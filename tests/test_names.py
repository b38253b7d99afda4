"""Names that users type: found whatever their spelling, or a suggestion."""

from __future__ import annotations

import pytest

from tamiz._utils.names import pick, pick_name, plain, suggest
from tamiz.errors import TamizError, UnknownNameError

METHODS = ["fisher", "relieff", "svm-rfe", "inf-fs", "sfs", "sfs+dfs"]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("fisher", "fisher"),
        ("Fisher", "fisher"),
        ("SVM RFE", "svm-rfe"),
        ("svm_rfe", "svm-rfe"),
        ("  inffs ", "inf-fs"),
        ("SFS + DFS", "sfs+dfs"),
    ],
)
def test_spelling_does_not_count(typed, name):
    assert pick_name(typed, METHODS, "method") == name
    assert pick(typed, {one: one.upper() for one in METHODS}, "method") == name.upper()


def test_a_plus_does_count():
    with pytest.raises(UnknownNameError):
        pick_name("sfsdfs", METHODS, "method")


@pytest.mark.parametrize(("typed", "nearest"), [("fischer", "fisher"), ("SVMRFEE", "svm-rfe"), ("relief", "relieff")])
def test_the_nearest_is_suggested_as_it_is_spelt(typed, nearest):
    message = f"Unknown method '{typed}'. Did you mean '{nearest}'? There are: fisher, relieff, svm-rfe"
    with pytest.raises(UnknownNameError, match=message.replace("?", r"\?")):
        pick_name(typed, METHODS, "method")


def test_nothing_near_suggests_nothing():
    with pytest.raises(UnknownNameError, match=r"^Unknown method 'zzzz'\. There are: fisher, "):
        pick_name("zzzz", METHODS, "method")
    assert suggest("zzzz", METHODS) == ""
    assert suggest("fisher", []) == ""


def test_several_suggestions():
    assert suggest("gene_1", ["gene 12", "gene 134", "age"], n=2) == " Did you mean 'gene 12' or 'gene 134'?"


@pytest.mark.parametrize("given", [None, 3, "", ["fisher"], b"fisher"])
def test_what_is_no_name_is_an_error_too(given):
    with pytest.raises(ValueError, match="Unknown method") as caught:
        pick_name(given, METHODS, "method")
    assert isinstance(caught.value, TamizError)


def test_an_exact_name_wins_over_another_with_the_same_plain_spelling():
    columns = ["dose a", "dose_a", "DOSE-A"]
    assert [pick_name(one, columns, "column") for one in columns] == columns
    assert pick_name("Dose A", columns, "column") == "dose a"  # the first


def test_names_may_be_an_iterator():
    assert pick_name("SFS", iter(METHODS), "method") == "sfs"
    with pytest.raises(UnknownNameError, match="There are: fisher"):
        pick_name("zzzz", iter(METHODS), "method")


def test_plain_keeps_letters_of_all_languages():
    assert plain("Größe_1") == "grösse1"
    assert plain("日本 2") == "日本2"
