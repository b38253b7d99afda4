"""Summaries as files."""

from __future__ import annotations

import json

from tamiz.paper.store import ProtocolSummary, csv_lines


def test_files_are_read_back(tmp_path):
    outcome = ProtocolSummary(
        "T", "text", [{"a": 0.1, "b": None}, {"a": 2, "c": 'x,"y"'}], {"protocol": "p", "x": [1.5]}
    )
    files = outcome.write(tmp_path)
    assert set(files) == {"md", "csv", "json"}
    assert json.loads((tmp_path / "results.json").read_text()) == outcome.content
    assert csv_lines(outcome.records) == 'a,b,c\n0.1,,\n2,,"x,""y"""\n'
