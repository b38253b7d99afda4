"""The script that repeats a fit."""

import ast
from types import SimpleNamespace

import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.serve.code import python_code
from tamiz.serve.fits import Wish


def code(wish, fitted=None, *, name="table.csv", has_target=False, grouped=False, folds=()):
    table = SimpleNamespace(name=name, has_target=has_target, reading={})
    data = SimpleNamespace(target='the "target"', is_grouped=grouped, folds=folds)
    text = python_code(table, data, wish, fitted or E2EFSClassifier(3))
    ast.parse(text)
    return text


def test_the_script_reads_the_table_with_its_target():
    assert "read_table('table.csv', target='the \"target\"')" in code(Wish(3))
    assert "read_table('x.npz')" in code(Wish(3), name="x.npz", has_target=True)


@pytest.mark.parametrize("kind", [E2EFSClassifier, E2EFSRegressor])
def test_the_script_makes_the_estimator_of_the_page(kind):
    text = code(Wish(4, network="mlp", keep=("it's",), drop=("b",)), kind(4), grouped=True, folds=(1, 2, 3))
    assert f"from tamiz import {kind.__name__}\n" in text
    assert "    4,\n    network='mlp',\n" in text
    assert "groups=columns" in text
    assert """keep=[i for i, name in enumerate(columns) if name in ["it's"]]""" in text
    assert "drop=[i for i" in text
    assert 'path="report.html", cv=3)' in text
