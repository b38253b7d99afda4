"""Files and record of a whole run of ``select``."""

import csv
import json


def test_the_files_agree_with_what_is_printed(tamiz, small_csv, tmp_path):
    words = ("select", small_csv, "-t", "ill", "-k", 2, "--folds", 2, "--permutations", 0, "--json", "-q")
    result = tamiz(*words)
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert {kept["feature"] for kept in record["selected"]} == {"gene 2", "gene 5"}
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    written = {path.name: path for path in folder.iterdir()}
    assert set(record["files"].values()) <= {str(path) for path in written.values()} | {
        str(path.relative_to(tmp_path)) for path in written.values()
    }
    with open(written["selected.csv"], newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert "gene 2" in {value for row in rows for value in row.values()}
