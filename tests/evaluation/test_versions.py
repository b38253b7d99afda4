"""Versions of packages."""

import platform

import numpy as np

import tamiz
from tamiz.evaluation.stability import library_versions


def test_versions_are_those_that_run():
    found = library_versions()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert found["tamiz"] == tamiz.__version__


def test_what_is_not_installed_is_left_out():
    assert list(library_versions(["no-such-package-at-all"])) == ["python"]
