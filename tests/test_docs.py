"""What README and docs show is true: code runs and gives what it says, commands work, links lead somewhere."""

import ast
import doctest
import importlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest
import torch
import typer

from tamiz.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
FENCE = re.compile(r"^(?P<mark><!-- checked -->\n)?```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"--8<--\n(examples/(\w+)\.py)\n--8<--\n")
SAYS = re.compile(r"#\s*->\s*(.+)$")
# Large packages that a page may show: where one is missing, its blocks are left out, and the test says so.
OPTIONAL = ("schedulefree", "torch_geometric", "transformers")


@dataclass
class Block:
    """A piece of code on a page."""

    kind: str
    code: str
    line: int


def blocks_of(text):
    """The blocks that are to be run: all Python, and the commands marked with a comment above them."""
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        if found["kind"] == "python" or found["mark"]:
            yield Block(found["kind"], found["code"], line)


def missing_packages(block):
    """The optional packages that a block imports and that are not installed."""
    nodes = [node for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.ImportFrom)]
    imported = {node.module.split(".")[0] for node in nodes}
    return [name for name in OPTIONAL if name in imported and not find_spec(name)]


def run_python(block, namespace, page):
    """Statement by statement; where a line ends in ``# -> value`` its value has to look like that."""
    tree = ast.parse(block.code)
    lines = block.code.splitlines()
    for node in tree.body:
        says = SAYS.search(lines[node.end_lineno - 1])
        ast.increment_lineno(node, block.line - 1)  # so that a traceback points into the page
        if says and isinstance(node, ast.Expr):
            value = repr(eval(compile(ast.Expression(node.value), page, "eval"), namespace))
            same = doctest.OutputChecker().check_output(says[1], value, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert same, f"{page}:{node.lineno}: says {says[1]}, is {value}"
        else:
            assert not says, f"{page}:{node.lineno}: '# ->' belongs behind an expression"
            exec(compile(ast.Module([node], []), page, "exec"), namespace)


def run_commands(block, folder, page):
    """Each ``$ tamiz ...`` as a process of its own."""
    commands = [shlex.split(line[2:]) for line in block.code.splitlines() if line.startswith("$ ")]
    assert commands, f"{page}:{block.line}: no command to check"
    for command in commands:
        assert command[0] == "tamiz", f"{page}:{block.line}: only tamiz is checked, not {command[0]}"
        run = subprocess.run(
            [sys.executable, "-m", "tamiz.cli.main", *command[1:]], cwd=folder, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{page}:{block.line}: {shlex.join(command)}\n{run.stdout}\n{run.stderr}"


@pytest.fixture
def tidy(tmp_path, monkeypatch):
    """A folder to work in; afterwards everything is as it was."""
    monkeypatch.chdir(tmp_path)
    backend = matplotlib.get_backend()
    matplotlib.use("Agg")
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)
    torch.random.set_rng_state(state)
    matplotlib.pyplot.close("all")
    matplotlib.use(backend)


@pytest.mark.parametrize(
    "path", [path for path in PAGES if list(blocks_of(path.read_text(encoding="utf-8")))], ids=lambda path: path.stem
)
def test_the_code_of_a_page_runs_and_gives_what_it_says(path, tidy, monkeypatch):
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # PyTorch Geometric looks up the module of a class
    namespace = module.__dict__
    left_out = []
    for block in blocks_of(path.read_text(encoding="utf-8")):
        included = INCLUDED.fullmatch(block.code)
        if included:  # run by tests/test_examples.py
            assert (ROOT / included[1]).is_file()
            assert f'"{included[2]}"' in (ROOT / "tests" / "test_examples.py").read_text(encoding="utf-8")
        elif block.kind == "python":
            missing = missing_packages(block)
            left_out += [f"line {block.line} needs {name}" for name in missing]
            if not missing:
                run_python(block, namespace, str(path.relative_to(ROOT)))
        else:
            run_commands(block, tidy, str(path.relative_to(ROOT)))
    if left_out:
        pytest.skip(f"the other blocks of {path.name} ran; not installed: {', '.join(left_out)}")


def test_pages_with_code_are_found():
    with_code = {path.stem for path in PAGES if list(blocks_of(path.read_text(encoding="utf-8")))}
    assert with_code >= {
        "README",
        "tutorial",
        "big-tables",
        "categories",
        "imbalance",
        "leaks",
        "recipes",
        "which-network",
    }


def test_a_false_statement_on_a_page_is_found(tidy):
    with pytest.raises(AssertionError, match="page:12: says 3, is 2"):
        run_python(Block("python", "a = 1\na + a  # -> 3\n", 11), {}, "page")
    with pytest.raises(AssertionError, match="belongs behind an expression"):
        run_python(Block("python", "a = 1  # -> 1\n", 1), {}, "page")
    with pytest.raises(AssertionError, match="absent"):
        run_commands(Block("console", "$ tamiz select absent.csv -t y\n", 1), tidy, "page")


def anchors_of(text):
    """The anchors of the headings of a page, as GitHub and mkdocs make them."""
    plain = FENCE.sub("", text)
    titles = re.findall(r"^#+ (.+)$", plain, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_project_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        assert other.exists(), f"{path.name}: {target} is not there"
        assert not anchor or anchor in anchors_of(other.read_text(encoding="utf-8")), f"{path.name}: no {target}"


def test_options_on_the_pages_exist():
    """Options in commands of tamiz, and in code that is an option alone, are those of some command."""
    known, commands = {"--help", "--version"}, [typer.main.get_command(app)]
    for command in commands:  # grows while it is read: groups add their commands
        known |= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        if hasattr(command, "list_commands"):
            context = typer.Context(command)
            commands += [command.get_command(context, name) for name in command.list_commands(context)]
    assert len(known) > 50
    for path in (path for path in LINKED if path.name != "CHANGELOG.md" and "older" not in path.parts):
        text = path.read_text(encoding="utf-8")
        code = [
            *re.findall(r"`((?:tamiz |--)[^`]*)`", text),
            *re.findall(r"^\$? ?(tamiz .*)$", text, flags=re.MULTILINE),
        ]
        named = {name for line in code for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
        assert named <= known, path.name


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.name != "README.md"]
    assert [page for page in pages if f": {page}\n" not in nav] == []


def test_readme_opens_with_what_it_is_a_picture_and_the_two_commands():
    opening = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.search(r"^# tamiz\n\n.*exactly M.*!\[.*\]\(docs/images/.*make demo.*make test", opening, flags=re.DOTALL)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "images").iterdir()), ids=lambda path: path.name)
def test_pictures_are_small_and_used(path):
    assert path.stat().st_size < (700_000 if path.suffix == ".webp" else 300_000)  # an animation may be larger
    assert any(f"images/{path.name})" in page.read_text(encoding="utf-8") for page in PAGES)


def test_the_pictures_of_the_readme_are_below_a_megabyte():
    names = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert names
    assert sum((ROOT / name).stat().st_size for name in names) < 1_000_000


@pytest.mark.parametrize("module", ["tamiz", "tamiz.torch", "tamiz.baselines", "tamiz.report"])
def test_every_public_name_is_in_the_api_reference(module):
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    listed = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)$", pages, flags=re.MULTILINE)}
    assert set(importlib.import_module(module).__all__) - {"__version__"} <= listed
