"""Optional packages: a missing one names its extra, a broken one speaks for itself."""

from __future__ import annotations

import sys

import pytest

from tamiz._utils.extras import require
from tamiz.errors import MissingExtraError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package that can be imported for one test."""

    def write(name: str, content: str, **modules: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text(content)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        for module in (name, *(f"{name}.{one}" for one in modules)):
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(tmp_path)

    yield write
    for name in [name for name in sys.modules if name.startswith("toy_extra")]:
        del sys.modules[name]


def test_an_installed_package_is_returned(package):
    package("toy_extra", "answer = 42", inner="answer = 43")
    assert require("toy_extra", "torch", "DFS").answer == 42
    assert require("toy_extra.inner", "torch", "DFS").answer == 43


@pytest.mark.parametrize("name", ["toy_extra_missing", "toy_extra_missing.inner"])
def test_a_missing_package_names_the_command(name):
    with pytest.raises(MissingExtraError) as caught:
        require(name, "plot", "selection.plot()")
    assert str(caught.value) == f'selection.plot() needs {name}. Install it with: pip install "tamiz[plot]"'
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_package_that_is_switched_off_counts_as_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "toy_extra", None)
    with pytest.raises(MissingExtraError, match="needs toy_extra"):
        require("toy_extra", "torch", "DFS")


def test_an_import_error_inside_an_installed_package_is_not_swallowed(package):
    package("toy_extra", "import toy_extra_dependency")
    with pytest.raises(ModuleNotFoundError, match="toy_extra_dependency") as caught:
        require("toy_extra", "torch", "DFS")
    assert not isinstance(caught.value, MissingExtraError)


def test_a_package_of_another_version_is_not_reported_as_missing(package):
    package("toy_extra", "")
    with pytest.raises(ImportError, match=r"toy_extra\.inner") as caught:
        require("toy_extra.inner", "torch", "DFS")
    assert not isinstance(caught.value, MissingExtraError)


def test_any_other_fault_of_a_package_is_left_alone(package):
    package("toy_extra", "raise OSError('libtoy.so is missing')")
    with pytest.raises(OSError, match=r"libtoy\.so"):
        require("toy_extra", "torch", "DFS")
