"""Every module has a test file of its own name: ``src/tamiz/ROOM/x.py`` and ``tests/ROOM/test_x.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "tamiz"

#: Modules without a file of their own, each with the reason. All are private: nothing but the named modules imports them.
EXCEPTIONS = {
    "_constraints.py": "lists of checks of parameters; the bad-input tests of estimators and baselines go through them",
    "_version.py": "one constant",
    "baselines/_base.py": "base class; test_all_methods.py runs scikit-learn's checks over every subclass",
    "baselines/_mutual_information.py": "kernels of test_mim.py and test_mrmr.py",
    "baselines/_relief_kernels.py": "kernels of test_relieff.py",
    "estimators/_base.py": "base class; test_classifier.py, test_regressor.py and scikit-learn's checks",
    "estimators/_effects.py": "mixin of test_additive_estimators.py and test_pair_estimators.py",
    "estimators/_gating.py": "mixin of test_gated_estimators.py",
    "estimators/_prepared.py": "what a fit does before the engine; test_classifier.py, test_regressor.py and test_path.py",
    "estimators/_training.py": "what a fit does with the engine; test_classifier.py, test_regressor.py and test_path.py",
    "preprocessing/_kernels.py": "kernels of test_scaling.py, compared with test_exact.py",
    "torch/_compiled.py": "the compiled step, compared with the plain one in test_stepping.py",
    "torch/_gated.py": "parts of test_gated_mask.py",
    "torch/_handle.py": "parts of test_watching.py",
    "torch/_mask_parts.py": "parts of test_mask.py",
    "torch/_masks.py": "parts of test_mask.py",
    "torch/_run.py": "parts of test_trainer.py",
    "torch/_selection_run.py": "parts of test_trainer.py",
}


def modules() -> list[str]:
    found = (path.relative_to(SOURCES).as_posix() for path in sorted(SOURCES.rglob("*.py")))
    return [name for name in found if not name.endswith("__init__.py")]


def place_of_tests(module: str) -> Path:
    """Return where the tests of a module stand; the underscore of a private one is left out."""
    place = Path(module)
    return ROOT / "tests" / place.parent / f"test_{place.stem.lstrip('_')}.py"


@pytest.mark.parametrize("module", modules())
def test_a_module_has_a_test_file_of_its_name(module):
    path = place_of_tests(module)
    if module in EXCEPTIONS:
        assert not path.exists(), f"{module} has tests now: take it off the list of exceptions"
    else:
        assert path.exists(), f"tests of {module} belong into {path.relative_to(ROOT)}"
        assert "def test_" in path.read_text(encoding="utf-8")


def test_exceptions_are_private_modules_that_exist():
    assert set(EXCEPTIONS) <= set(modules())
    assert all(Path(name).name.startswith("_") for name in EXCEPTIONS)
