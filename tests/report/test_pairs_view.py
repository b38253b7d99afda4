"""The page of a search for pairs."""

import re

import numpy as np
import pytest

from tamiz import find_pairs
from tamiz.report import pairs_report, render, report
from tamiz.report.pairs_view import pair_chart, pairs_view


def search(kind="classes", n_rows=240):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 6))
    product = X[:, 1] * X[:, 4]
    y = {
        "classes": np.where(product > 0, "yes<b>", "no"),
        "several": np.digitize(product, [-0.4, 0.4]),
        "numbers": product + 0.1 * random.normal(size=n_rows),
        "nothing": random.integers(0, 2, n_rows),
    }[kind]
    return find_pairs(X, y, random_state=0, n_permutations=3).with_names(["a", "<script>", "c", "d", "e", "f"])


def test_the_page_shows_the_pairs_and_escapes_names():
    page = render(pairs_report(search(), title="toy", target="ill", command="tamiz pairs toy.csv"))
    assert "&lt;script&gt; × e" in page
    assert "<script> ×" not in page
    assert "significant pair" in page
    assert "larger the share of yes&lt;b&gt;" in page
    assert "tamiz pairs toy.csv" in page


def test_cells_are_darker_where_the_share_is_larger():
    found = pairs_report(search())
    cells = found.pictures[0].cells
    drawn = re.findall(r'class="heat h(\d+)"', pair_chart(found.pictures[0], {}))
    assert len(drawn) == int((cells.counts > 0).sum())
    steps = np.array(drawn, dtype=int)
    np.testing.assert_array_equal(steps, np.round(10 * cells.shares[cells.counts > 0]))
    assert {0, 10} <= set(steps.tolist())


@pytest.mark.parametrize(("kind", "words"), [("several", "commonest class"), ("numbers", "larger the mean of size")])
def test_several_classes_and_numbers(kind, words):
    data = pairs_report(search(kind), target="size")
    page = render(data)
    assert words in page
    assert ("by-class s1" in page) == (kind == "several")


def test_level_names_stand_at_the_axes():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(-1, 2, 200), random.normal(size=200)])
    found = find_pairs(X, (X[:, 0] > 0) ^ (X[:, 1] > 0), categorical=[0], random_state=0, n_permutations=0)
    page = render(pairs_report(found, level_names={"x0": {-1.0: "(missing)", 0.0: "red", 1.0: "blue"}}))
    assert ">red<" in page
    assert "x0 blue" in page


def test_a_table_without_pairs_says_so(tmp_path):
    nothing = pairs_view(pairs_report(search("nothing")))
    assert nothing["verdict"].startswith("No pair says more")
    few = pairs_report(search("classes", n_rows=15))
    assert few.pictures == ()
    path = report(few, path=tmp_path / "report.html")
    assert "cannot be judged on 15 rows" in path.read_text(encoding="utf-8")
