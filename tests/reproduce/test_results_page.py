"""The page of all results."""

from __future__ import annotations

import pytest

from tamiz.reproduce.results_page import PageError, all_pictures, build_page
from tamiz.reproduce.summary import ProtocolSummary

TIMING = [
    {"dataset": "colon", "method": "mim", "seconds of it": 0.123456},
    {"dataset": "lung", "method": "mim", "seconds of it": 2.0},
    {"dataset": "lung", "method": "all", "seconds of it": 0.0},
]


def test_page_has_all_runs_in_the_papers_order(tmp_path):
    for name, timing in (("ground-truth", []), ("microarray", TIMING)):
        (tmp_path / name).mkdir()
        content = {"protocol": name}
        summary = ProtocolSummary(f"Table of {name}", "0.5 ± 0.1 (0.6)\n\nText.", [{"a": 1}], content, timing)
        summary.write(tmp_path / name)
    (tmp_path / "ground-truth" / "masks.png").write_bytes(b"picture")
    text = build_page([tmp_path / "ground-truth", tmp_path / "microarray"])
    assert "0.5\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1 (0.6)" in text
    assert "Text.\n\n![masks of the run](images/ground-truth-masks.png)" in text
    assert all_pictures([tmp_path / "ground-truth"]) == {
        "images/ground-truth-masks.png": tmp_path / "ground-truth" / "masks.png"
    }
    assert text.index("## Table of microarray") < text.index("## Table of ground-truth")
    assert "Seconds of it.\n\n| method | colon | lung |" in text
    assert "| mim | 0.123 | 2 |\n| all | – | 0 |" in text
    (tmp_path / "microarray" / "results.json").write_text("{")
    with pytest.raises(PageError, match="not the folder of a finished run"):
        build_page([tmp_path / "microarray"])
