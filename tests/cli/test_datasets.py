"""``tamiz datasets``, run as a user runs it."""

from __future__ import annotations

import json


def test_datasets(tamiz, tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIZ_DATA_HOME", str(tmp_path))
    result = tamiz("datasets")
    assert "colon" in result.stdout
    assert "to download" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[:-1])
    record = json.loads(tamiz("datasets", "--json").stdout)
    assert record["data_home"] == str(tmp_path)
    assert {"name", "shape", "origin", "in_data_home"} <= set(record["datasets"][0])
