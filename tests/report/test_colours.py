"""Colours of methods."""

from tamiz.baselines.registry import available
from tamiz.report.colours import method_positions


def test_a_method_keeps_its_colour_beside_others():
    alone = method_positions(["relieff"])
    assert method_positions(["fisher", "relieff", "mine"])[1:2] == alone


def test_no_two_methods_share_a_place():
    names = [*available(), "mine", "yours", "mine / svm"]
    positions = method_positions(names)
    assert len(set(positions)) == len(names)
    assert min(positions[-3:]) >= len(available())


def test_spellings_of_one_method_do_not_share_a_place():
    first, second = method_positions(["svm-rfe", "SVM_RFE"])
    assert first != second
