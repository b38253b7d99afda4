"""Headline scores in the files of a run."""

from __future__ import annotations

import json
import math

import pytest

from tamiz.paper.protocol import load_protocol
from tamiz.paper.store import HeadlineScore, ProtocolSummary, scores_from_json, scores_to_json


def test_scores_survive_the_file(tmp_path):
    made = [
        HeadlineScore("COLON", "accuracy", "3 splits", "e2efs", "E2E-FS", 0.1 + 0.2, "Naive", "paper", 0.9),
        HeadlineScore("COLON", "accuracy", "3 splits", "mim", "MIM", math.nan),
    ]
    ProtocolSummary("T", "text", [], {"protocol": "p"}, scores=made).write(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text())
    assert scores_from_json(content["scores"]) == made[:1]
    assert scores_to_json([]) == []


@pytest.mark.parametrize("detail", ["", "SVM"])
def test_labels(detail):
    score = HeadlineScore("COLON", "accuracy", "3 splits", "mim", "MIM", 0.5, detail)
    assert score.label == ("MIM, SVM" if detail else "MIM")


def test_a_protocol_says_its_scores():
    protocol = load_protocol("ground-truth")
    plan = protocol.make_plan(["xor"], ["relieff"], [8, 16], n_folds=2)
    cells = protocol.make_cells(plan)
    results = {
        cell.key: {"share": 1.0 if cell.settings["method"] == "relieff" else 0.25, "seconds": 0.0} for cell in cells
    }
    summary = protocol.summarise(plan, cells, results, {})
    assert [(score.dataset, score.method, score.value) for score in summary.scores] == [
        ("xor", "relieff", 1.0),
        ("xor", "random", 0.25),
    ]
    # The published means are over more numbers of columns than these two.
    assert all(score.published is None for score in summary.scores)
    # A failed cell leaves a gap, which is no score.
    del results[cells[0].key]
    del results[cells[1].key]
    assert len(scores_to_json(protocol.summarise(plan, cells, results, {}).scores)) == 1
