"""The pages of all results."""

from __future__ import annotations

import pytest

from tamiz.paper.results import PageError, build_page, read_runs, write_page, write_run_record
from tamiz.paper.store import HeadlineScore, ProtocolSummary, StoreError

TIMING = [
    {"dataset": "colon", "method": "mim", "seconds of it": 0.123456},
    {"dataset": "lung", "method": "mim", "seconds of it": 2.0},
    {"dataset": "lung", "method": "all", "seconds of it": 0.0},
]


def score(method, value, recipe=None, dataset="COLON", published=None):
    titles = {"e2efs": "E2E-FS", "e2efs-soft": "E2E-FS-Soft", "fisher": "Fisher", "all": "all features"}
    return HeadlineScore(
        dataset, "accuracy", "3 splits", method, titles[method], value, recipe=recipe, published=published
    )


def make_run(folder, protocol="microarray", scores=(), timing=(), command=None):
    folder.mkdir()
    text = "0.5 ± 0.1 (0.6)\n\n### Differences\n\nText."
    ProtocolSummary(f"Table of {protocol}", text, [{"a": 1}], {"protocol": protocol}, list(timing), list(scores)).write(
        folder
    )
    if command is not None:
        write_run_record(folder, command)
    return folder


def test_a_run_has_a_page_of_its_own_with_pictures_and_seconds(tmp_path):
    folder = make_run(tmp_path / "run", timing=TIMING, command="tamiz reproduce microarray")
    (folder / "masks.png").write_bytes(b"picture")
    written = write_page([folder], tmp_path / "docs" / "results.md")
    assert [str(path.relative_to(tmp_path / "docs")) for path in written] == [
        "results.md",
        "results/microarray.md",
        "images/microarray-masks.png",
    ]
    assert all(path.exists() for path in written)
    text = written[1].read_text()
    assert text.startswith("# Table of microarray\n\nMade by `tamiz reproduce microarray`, tamiz ")
    assert "\n## Differences\n" in text
    assert "0.5\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1 (0.6)" in text
    assert "Text.\n\n![masks of the run](../images/microarray-masks.png)" in text
    assert "## Seconds\n\nSeconds of it.\n\n| method | colon | lung |" in text
    assert "| mim | 0.123 | 2 |\n| all | – | 0 |" in text


def test_the_summary_comes_in_the_papers_order_and_links_to_the_runs(tmp_path):
    scores = [score("fisher", 0.8), score("e2efs", 0.9, published=0.85), score("all", 0.95)]
    folders = [
        make_run(tmp_path / "truth", "ground-truth"),
        make_run(tmp_path / "genes", "microarray", scores),
        make_run(tmp_path / "more", "microarray", [score("e2efs-soft", 0.7, dataset="LUNG")]),
    ]
    written = write_page(folders, tmp_path / "docs" / "page.md")
    names = [str(path.relative_to(tmp_path / "docs")) for path in written]
    assert names == [
        "page.md",
        "page/microarray.md",
        "page/microarray-2.md",
        "page/ground-truth.md",
        "images/page-chart.svg",
    ]
    text = written[0].read_text()
    row = "| [microarray](page/microarray.md) | COLON | E2E-FS: 0.900 (0.850) | 0.900 (0.850) | – | Fisher: 0.800 |"
    assert row in text
    assert "| [microarray](page/microarray-2.md) | LUNG | E2E-FS-Soft: 0.700 | – | 0.700 | – |" in text
    assert "![Scores of each data set: the numbers are those of the table](images/page-chart.svg)" in text
    assert "- microarray: accuracy, 3 splits." in text
    runs = text[text.index("## Runs") :]
    assert runs.index("(page/microarray.md)") < runs.index("(page/microarray-2.md)") < runs.index("(page/ground-truth")
    assert "[Table of ground-truth](page/ground-truth.md). The command of this run is not stored." in runs


def test_both_recipes_have_rows_of_their_own(tmp_path):
    scores = [
        score("e2efs", 0.9, "paper"),
        score("e2efs", 0.8, "tamiz"),
        score("fisher", 0.85),
        score("fisher", 0.84, "tamiz"),
    ]
    text = build_page(read_runs([make_run(tmp_path / "run", scores=scores)]))
    assert "| COLON [paper] | E2E-FS: 0.900 | 0.900 | – | Fisher: 0.850 |" in text
    assert "| COLON [tamiz] | Fisher: 0.850 | 0.800 | – | Fisher: 0.850 |" in text


def test_runs_without_scores_have_no_table_and_no_chart(tmp_path):
    text = build_page(read_runs([make_run(tmp_path / "run", "surfaces")]))
    assert "chart" not in text
    assert "|" not in text
    assert "[Table of surfaces](results/surfaces.md)" in text


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"protocol": "microarray", "scores": [{"value": 1}]}'])
def test_a_folder_that_is_no_run_is_named(tmp_path, content):
    folder = make_run(tmp_path / "run")
    (folder / "results.json").write_text(content)
    with pytest.raises(PageError, match="not the folder of a finished run"):
        write_page([folder], tmp_path / "results.md")
    assert not (tmp_path / "results.md").exists()


def test_a_page_that_cannot_be_written(tmp_path):
    folder = make_run(tmp_path / "run")
    with pytest.raises(PageError, match=r"use .*results\.md"):
        write_page([folder], tmp_path / "results")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="Name another folder"):
        write_page([folder], tmp_path / "file" / "results.md")
