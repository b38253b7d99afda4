"""The house: a room imports only rooms above it, and `import tamiz` loads nothing heavy."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tamiz

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tamiz"
ROOMS = (
    "core",
    "selection",
    "rows",
    "pairs",
    "engines",
    "torch",
    "estimators",
    "baselines",
    "tables",
    "persistence",
    "evaluation",
    "study",
    "report",
    "serve",
    "paper",
    "cli",
)
HELPERS = ("errors", "_utils", "_version")
# Loaded when called only: a picture of a selection, and the methods of the paper that the registry names.
WHEN_CALLED = {
    ("selection", "tamiz.report.plots"),
    ("study", "tamiz.report"),
    ("study", "tamiz.report.page"),
    ("study", "tamiz.report.text"),
}
REGISTERED = {("baselines", "tamiz.paper.deep")}
# The package's own __init__ is the front door: it hands out names of all rooms, when they are asked for.
MODULES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"})


def home_of(name):
    """What `from tamiz import name` reaches: a room, or the room that a public name lives in."""
    return next((f"tamiz.{module}" for module, names in tamiz._HOMES.items() if name in names), f"tamiz.{name}")


def imports_of(tree):
    """(line, module, whether inside a function) of everything of ours that a module names, also as text for a registry."""
    for outer in ast.walk(tree):
        inside = isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(outer) if inside else [outer]:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level:
                names = ["." * node.level + (node.module or "")]
            elif isinstance(node, ast.ImportFrom):
                names = [home_of(alias.name) for alias in node.names] if node.module == "tamiz" else [node.module]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                path = re.fullmatch(r"(tamiz\.\w+[\w.]*)(:\w+)?", node.value)
                names = [path.group(1)] if path and path.group(1).split(".")[1] in ROOMS else []
            else:
                continue
            yield from ((node.lineno, name, inside) for name in names)


def violations(room, text):
    """What a module of a room may not import, as 'line: module'."""
    # What stands inside a function is seen twice: with it, and on its own.
    found = {}
    for line, name, inside in imports_of(ast.parse(text)):
        found[line, name] = found.get((line, name), False) or inside
    wrong = []
    for (line, name), inside in sorted(found.items()):
        if name.startswith("."):
            wrong.append(f"{line}: relative import of {name}")
        if not name.startswith("tamiz."):
            continue
        other = name.split(".")[1]
        if other in HELPERS or (inside and (room, name) in WHEN_CALLED) or (room, name) in REGISTERED:
            continue
        if room in HELPERS or other not in ROOMS or ROOMS.index(other) > ROOMS.index(room):
            wrong.append(f"{line}: {name}")
    return wrong


def test_modules_import_only_rooms_above_their_own():
    for path in MODULES:
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        assert room in ROOMS + HELPERS, "a new room: put it into ROOMS here and into docs/architecture.md"
        assert violations(room, path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    ("room", "text", "wrong"),
    [
        ("core", "import tamiz.engines.linear", ["1: tamiz.engines.linear"]),
        ("engines", "from tamiz import torch", ["1: tamiz.torch"]),
        ("torch", "from tamiz import E2EFSPath", ["1: tamiz.estimators.path"]),
        ("engines", "def f():\n    from tamiz.torch.mask import FeatureMask", ["2: tamiz.torch.mask"]),
        ("paper", "from .loading import load", ["1: relative import of .loading"]),
        ("engines", "HOME = 'tamiz.estimators.path:E2EFSPath'", ["1: tamiz.estimators.path"]),
        ("selection", "from tamiz.report.plots import plot_selection", ["1: tamiz.report.plots"]),
        ("selection", "def plot():\n    from tamiz.report.plots import plot_selection", []),
        ("_utils", "from tamiz.core import unit", ["1: tamiz.core"]),
        ("cli", "from tamiz.core import unit\nfrom tamiz._version import __version__\nimport torch", []),
    ],
)
def test_the_check_sees_what_is_wrong_and_only_that(room, text, wrong):
    assert violations(room, text) == wrong


def private_names(room, text):
    """Return what a module takes of the private names and modules of other rooms, as 'line: name'."""
    wrong = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tamiz."):
            continue
        path = node.module.split(".")[1:]
        if path[0] == room or path[0] in HELPERS:
            continue
        names = [*path, *(alias.name for alias in node.names)]
        wrong += [f"{node.lineno}: {name}" for name in names if name.startswith("_")]
    return wrong


def test_modules_use_no_private_names_of_another_room():
    for path in MODULES:
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        assert private_names(room, path.read_text(encoding="utf-8")) == [], path


def test_the_check_sees_private_names():
    assert private_names("cli", "from tamiz.baselines._own import TASK") == ["1: _own"]
    assert private_names("cli", "def f():\n    from tamiz.core.step import _unbiased") == ["2: _unbiased"]
    assert private_names("cli", "from tamiz.cli._own import x\nfrom tamiz._utils.text import pick") == []


def test_a_public_name_is_defined_in_one_module():
    """One name for one thing: functions and classes of different modules do not share a public name."""
    homes = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if path.parent.name == "cli" and getattr(node, "name", None) in tamiz.__all__:
                continue  # a command of the name of the function that it calls
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_the_page_on_architecture_lists_the_rooms_in_this_order():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, flags=re.MULTILINE) == list(ROOMS)


def test_an_import_loads_nothing_heavy():
    """One process: each statement adds to what the ones before it have loaded."""
    heavy = {"torch", "matplotlib", "tamiz.report.page", "tamiz.torch"}
    statements = {
        "import tamiz": heavy | {"numba", "sklearn", "tamiz.report"},
        "import tamiz.cli.main": heavy | {"numba", "sklearn", "scipy", "pandas", "polars"},
        "from tamiz import E2EFSClassifier, Selection": heavy,
        "from tamiz.baselines import FisherScore": heavy,
    }
    code = "import sys\n" + "".join(f"{statement}\nprint(*sys.modules)\n" for statement in statements)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for (statement, forbidden), loaded in zip(statements.items(), done.stdout.splitlines(), strict=True):
        assert "tamiz" in loaded.split()
        assert set(loaded.split()) & forbidden == set(), statement
