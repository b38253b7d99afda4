"""``tamiz demo``, run as a user runs it."""

from __future__ import annotations

import json


def test_demo_lets_hardly_any_noise_through(tamiz, tmp_path):
    result = tamiz("demo", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["k"] == len(record["selected"]) == 8
    assert record["n_noise_kept"] <= 1
    assert record["scores"]["kept"]["value"] > 0.9
    assert (tmp_path / "tamiz-demo" / "report.html").exists()
    table = tmp_path / "tamiz-demo" / "breast-cancer-with-noise.csv"
    assert len(table.read_text().splitlines()[0].split(",")) == 331
    before = (tmp_path / "tamiz-demo" / "selected.csv").read_text()
    again = tamiz("demo")  # never touches an earlier folder
    assert again.exit_code == 0
    assert "are noise" in again.stdout
    assert "tamiz-demo-2/report.html" in again.stdout
    assert (tmp_path / "tamiz-demo" / "selected.csv").read_text() == before
