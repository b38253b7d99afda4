"""The chart of the summary."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tamiz.paper.results import axis_ticks, draw_summary, headline_rows
from tamiz.paper.store import HeadlineScore

SVG = "{http://www.w3.org/2000/svg}"


def score(method, value, dataset, published=None):
    return HeadlineScore(dataset, "accuracy", "3 splits", method, method, value, published=published)


def test_every_score_has_a_mark_inside_the_picture():
    scores = [
        ("microarray", "m.md", score("e2efs", 0.9, "A & <B>", 0.95)),
        ("microarray", "m.md", score("e2efs-soft", 0.8, "A & <B>")),
        ("microarray", "m.md", score("fisher", 0.85, "A & <B>")),
        ("madelon", "d.md", score("fisher", 0.4, "MADELON")),
        ("madelon", "d.md", score("pairs", 0.7, "MADELON")),
    ]
    picture = ElementTree.fromstring(draw_summary(headline_rows(scores)))
    titles = [element.text for element in picture.iter(f"{SVG}title")]
    for words in (
        "e2efs: 0.900",
        "e2efs-soft: 0.800",
        "fisher: 0.850",
        "e2efs, published: 0.950",
        "fisher: 0.400",
        "pairs: 0.700",
    ):
        assert titles.count(words) == 1
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert "A & <B>" in texts
    assert {"microarray: accuracy", "madelon: accuracy"} <= set(texts)
    width, height = (float(picture.attrib[name]) for name in ("width", "height"))
    circles = list(picture.iter(f"{SVG}circle"))
    assert len(circles) == 2  # the legend's and that of E2E-FS
    for element in [*circles, *picture.iter(f"{SVG}text"), *picture.iter(f"{SVG}rect")]:
        x = float(element.attrib.get("x", element.attrib.get("cx", "0")))
        y = float(element.attrib.get("y", element.attrib.get("cy", "0")))
        assert 0 <= x <= width
        assert 0 <= y <= height


def test_marks_lie_where_their_scores_are():
    scores = [
        ("microarray", "m.md", score("e2efs", value, name)) for name, value in (("a", 0.8), ("b", 0.9), ("c", 1.0))
    ]
    picture = ElementTree.fromstring(draw_summary(headline_rows(scores)))
    a, b, c = (float(element.attrib["cx"]) for element in list(picture.iter(f"{SVG}circle"))[1:])
    assert a < b < c
    assert b - a == pytest.approx(c - b, abs=0.2)


def test_the_picture_has_colours_for_dark_pages():
    picture = draw_summary(headline_rows([("microarray", "m.md", score("e2efs", 0.9, "a"))]))
    assert "@media (prefers-color-scheme: dark)" in picture
    assert '<rect class="ground"' in picture


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.0, 0.0), (0.801, 0.802), (0.33, 0.35), (0.2, 0.79)]
)
def test_ticks_enclose_the_range(low, high):
    ticks = axis_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 8
    assert min(ticks) >= 0.0
    assert max(ticks) <= 1.0
    assert ticks == sorted(set(ticks))
