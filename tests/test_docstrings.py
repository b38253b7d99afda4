"""Docstrings say what there is to know: every parameter with its default, every fitted attribute; functions begin with a verb."""

from __future__ import annotations

import ast
import re
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor, ErfScaler
from tamiz.baselines.registry import BASELINES

SOURCE = Path(__file__).parents[1] / "src" / "tamiz"
NO_VERBS = re.compile(r"\W*(The|A|An|What|How|One|Where)\b")

ESTIMATORS = [E2EFSClassifier, E2EFSRegressor, ErfScaler, *(method.load() for method in BASELINES.values())]


def section(kind, title):
    """Return names and types of a numpydoc section, of the class or of the classes it derives from."""
    found = {}
    for one in reversed(kind.__mro__):
        text = cleandoc(one.__doc__ or "") if one.__module__.startswith("tamiz") else ""
        part = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
        for names, kind_of in re.findall(r"^(\w[\w, ]*?) : (.*)$", part.group(1), re.MULTILINE) if part else []:
            found.update(dict.fromkeys(names.split(", "), kind_of))
    return found


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_documented_with_its_default(kind):
    documented = section(kind, "Parameters")
    for name, default in kind().get_params().items():
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        assert documented.get(name, "").endswith(f"default={shown}"), (name, documented.get(name))
    assert set(documented) == set(kind().get_params())


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_fitted_attribute_is_documented(kind):
    X = np.random.default_rng(0).normal(size=(30, 4))
    quick = {"epochs": 2} if "epochs" in kind().get_params() else {}
    fitted = kind(**quick).fit(X, (X[:, 0] > 0).astype(int))
    attributes = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert attributes
    assert attributes <= set(section(kind, "Attributes"))


def test_docstrings_of_functions_begin_with_a_verb():
    functions = [
        (path, node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    wrong = {
        (path, node.name): text for path, node in functions if NO_VERBS.match(text := ast.get_docstring(node) or "")
    }
    assert not wrong
