"""The list of mutations keeps up with the source; ``benchmarks/mutations.py`` runs them."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks/mutations.py"


def read_mutations():
    if not SCRIPT.exists():
        return []
    spec = importlib.util.spec_from_file_location("mutations", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    spec.loader.exec_module(module)
    return module.MUTATIONS


@pytest.mark.parametrize("mutation", read_mutations(), ids=lambda mutation: mutation.name)
def test_the_text_to_replace_is_in_the_source_once(mutation):
    source = (ROOT / "src/tamiz" / mutation.file).read_text(encoding="utf-8")
    assert source.count(mutation.before) == 1
    assert mutation.before != mutation.after
    for test in mutation.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
