"""Rows of the summary of several runs."""

from __future__ import annotations

from tamiz.paper.results import headline_rows, summary_table
from tamiz.paper.store import HeadlineScore


def score(method, value, *, dataset="COLON", basis="3 splits", detail="", recipe=None):
    return HeadlineScore(dataset, "accuracy", basis, method, method.upper(), value, detail, recipe)


def test_runs_of_one_data_set_are_compared_only_on_the_same_basis():
    first = ("microarray", "m.md", score("e2efs", 0.7))
    same = ("microarray", "m.md", score("fisher", 0.8))
    other = ("microarray", "m.md", score("mim", 0.9, basis="60 splits"))
    elsewhere = ("madelon", "d.md", score("relieff", 1.0))
    rows = headline_rows([first, same, other, elsewhere])
    assert [(row.protocol, row.basis, row.best.method) for row in rows] == [
        ("microarray", "3 splits", "fisher"),
        ("microarray", "60 splits", "mim"),
        ("madelon", "3 splits", "relieff"),
    ]
    assert rows[0].variants["e2efs"].value == 0.7
    assert rows[1].variants == {}


def test_each_method_is_shown_by_its_best_row():
    scores = [
        score("e2efs", 0.7, detail="SVM"),
        score("e2efs", 0.8, detail="Naive"),
        score("fisher", 0.6, detail="SVM"),
    ]
    (row,) = headline_rows(("microarray", "m.md", one) for one in scores)
    assert row.variants["e2efs"].detail == "Naive"
    table = summary_table([row])
    assert table.endswith(
        "| [microarray](m.md) | COLON | E2EFS, Naive: 0.800 | Naive: 0.800 | – | FISHER, SVM: 0.600 |"
    )


def test_references_alone_make_no_row():
    assert (
        headline_rows([("microarray", "m.md", score("random", 0.5)), ("microarray", "m.md", score("all", 0.9))]) == []
    )


def test_a_recipe_is_compared_with_what_has_none():
    scores = [score("e2efs", 0.7, recipe="paper"), score("e2efs", 0.9, recipe="tamiz"), score("fisher", 0.8)]
    rows = headline_rows(("microarray", "m.md", one) for one in scores)
    assert [(row.label, row.best.value, row.other.value) for row in rows] == [
        ("COLON [paper]", 0.8, 0.8),
        ("COLON [tamiz]", 0.9, 0.8),
    ]


def test_methods_of_this_package_are_no_other_methods():
    names = ("pairs", "pair-search", "e2efs-ranking", "relieff", "e2efs")
    scores = [score(name, 1.0 - place / 10) for place, name in enumerate(names)]
    (row,) = headline_rows(("ground-truth", "g.md", one) for one in scores)
    assert (row.best.method, row.other.method) == ("pairs", "relieff")
