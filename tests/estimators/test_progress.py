"""The bar of a fit."""

from tamiz.core import Rule
from tamiz.estimators.training import watch_selection


def test_a_quiet_fit_reports_nothing(capsys):
    with watch_selection(0, Rule(10, 2), 100) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_says_what_is_alive_then_that_it_refines(capsys):
    rule = Rule(10, 2, warmup_steps=5, ramp_steps=20)
    for call, words in (((1, 10, 0), "10 alive"), ((30, 2, 5), "refining")):
        with watch_selection(True, rule, 100) as progress:
            progress(*call)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "selecting 2 of 10" in shown.err
        assert words in shown.err
