"""What columns are good for, what the target is, and what the selector sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer

from tamiz.cli.columns import say_encoding, tidy
from tamiz.cli.encode import Encoder, layout
from tamiz.cli.errors import UserError
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.read import ReadOptions, read_table
from tamiz.cli.table import Table, TextColumn
from tamiz.cli.target import understand_target


def table_of(numbers, texts=None, target=None):
    numbers = numbers if sp.issparse(numbers) else np.asarray(numbers, dtype=np.float32)
    texts = {numbers.shape[1] + i: TextColumn.of(values) for i, values in enumerate(texts or [])}
    names = [f"n{i}" for i in range(numbers.shape[1])] + [f"t{i}" for i in range(len(texts))]
    columns = np.arange(numbers.shape[1])
    return Table(
        Path("t.csv"), "csv", names, numbers.shape[0], numbers, columns, texts, target=target, target_name="goal"
    )


def read_csv(write_csv, text, **options):
    path = write_csv(text)
    return read_table(path, ReadOptions(**{"need_target": False, **options}), MemoryBudget(lambda sentence: None))


def test_useless_columns_are_left_out_and_named(write_csv):
    rows = "".join(f"{i},2024-01-{i + 1:02d},{i % 7 + 1}/12/1999,,id{i},{'<1' if i == 3 else i},a\n" for i in range(12))
    table = read_csv(write_csv, "x,day,odd day,void,id,level,kind\n" + rows)
    said = []
    tidy(table, 5, said.append)
    assert table.number_columns.tolist() == [0]
    assert list(table.texts) == [6]
    text = "\n".join(said)
    assert "'day', 'odd day' (dates)" in text
    assert "'void' (no values at all)" in text
    assert "'id' (text with more than 5 different values)" in text
    assert "'level' (numbers mixed with text (such as '<1' in data row 4))" in text


def test_nothing_left_is_refused(write_csv):
    with pytest.raises(UserError, match="no column left"):
        tidy(read_csv(write_csv, "a,b\nNA,\n,NA\n"), 5, lambda sentence: None)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e300"])
def test_infinities_are_refused_by_name(write_csv, cell):
    with pytest.raises(UserError, match=r"Column 'b' holds an infinity .* in data row 2"):
        tidy(read_csv(write_csv, f"a,b\n1,2\n3,{cell}\n"), 5, lambda sentence: None)


@pytest.mark.parametrize(
    ("values", "task", "labels"),
    [
        ([0.0, 1.0] * 10, "classification", ["0", "1"]),
        ([0.25, 0.75] * 10, "regression", None),
        ([1.0, 2.0, 3.0] * 10, "classification", ["1", "2", "3"]),
        (np.arange(30.0), "regression", None),
        (np.linspace(0, 1, 30), "regression", None),
        ([1.0, 2.0, 3.0, 4.0], "regression", None),  # too few rows for four classes
    ],
)
def test_the_task_of_numbers(values, task, labels):
    said = []
    found = understand_target(table_of(np.ones((len(values), 1)), target=np.asarray(values)), None, said.append)
    assert found.task == task
    assert said[-1].startswith(f"Task: {task}")
    if labels is not None:
        assert sorted(set(found.y)) == labels


def test_text_of_numbers_is_numbers_and_rows_without_target_go():
    target = TextColumn.of(["1.5", None, "2.5", "3.5"])
    said = []
    found = understand_target(table_of(np.ones((4, 1)), target=target), None, said.append)
    assert found.task == "regression"
    assert found.y.tolist() == [1.5, 2.5, 3.5]
    assert found.rows.tolist() == [0, 2, 3]
    assert "1 row(s) without" in said[0]


def test_the_task_can_be_overruled():
    table = table_of(np.ones((4, 1)), target=np.array([0.0, 1.0, 0.0, 1.0]))
    assert understand_target(table, "regression", lambda sentence: None).y.dtype == np.float64
    mixed = table_of(np.ones((4, 1)), target=TextColumn.of(["1", "2", "high", "high"]))
    assert set(understand_target(mixed, "classification", lambda sentence: None).y) == {"1", "2", "high"}


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["1", "2", "high"], None, "mixes numbers and text .*'high'"),
        (["a", "a", "a"], None, "is constant"),
        ([1.0, 1.0], None, "is constant"),
        ([1.0, 1.0], "regression", "is constant"),
        ([np.nan, np.nan], None, "no values at all"),
        ([1.0, np.inf], None, "infinity"),
        (["1", "inf"], None, "infinity"),
        (["2024-01-01", "2024-01-02"], None, "dates"),
        (["a", "b"], "regression", "holds text"),
        ([1.0, 2.0], "ranking", "Unknown task"),
        ([f"name{i}" for i in range(50)], None, "50 classes for 50 rows"),
    ],
)
def test_targets_that_cannot_be_used(values, task, message):
    target = np.array(values) if isinstance(values[0], float) else TextColumn.of(values)
    with pytest.raises(UserError, match=message):
        understand_target(table_of(np.ones((len(values), 1)), target=target), task, lambda sentence: None)


def test_features_of_text_columns():
    table = table_of(np.ones((4, 1)), [["b", "a", "b", "a"], ["x", None, "y", "x"], ["u", "v", "w", "u"]])
    names = [feature.name for feature in layout(table)]
    assert names == ["n0", "t0=b", "t1=x", "t1=y", "t2=u", "t2=v", "t2=w"]
    matrix = Encoder(layout(table)).fit(table).transform(table)
    assert matrix[:, 1:].astype(int).tolist() == [
        [1, 1, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 1],
        [0, 1, 0, 1, 0, 0],
    ]


def test_medians_and_categories_come_from_the_fitted_rows_alone():
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(40, 6)).astype(np.float32)
    numbers[generator.random(numbers.shape) < 0.3] = np.nan
    numbers[:20, 5] = np.nan
    table = table_of(numbers, [["a"] * 20 + ["b"] * 10 + ["c"] * 10])
    rows = np.arange(30)
    encoder = Encoder(layout(table)).fit(table, rows)
    matrix = encoder.transform(table)
    expected = SimpleImputer(strategy="median").fit(numbers[rows]).transform(numbers)
    np.testing.assert_allclose(matrix[:, :6], expected, rtol=1e-6)
    assert matrix[30:, 8].tolist() == [0.0] * 10  # category c was not seen in the fitted rows
    assert np.isfinite(Encoder(layout(table)).fit(table, np.arange(20)).transform(table)).all()


def test_sparse_tables_pass_through():
    table = table_of(sp.random(10, 5, density=0.5, format="csr", dtype=np.float32, random_state=0))
    assert sp.issparse(Encoder(layout(table)).fit(table, np.arange(5)).transform(table, np.arange(3)))
    assert np.isfinite(tidy(table, 5, lambda sentence: None).numbers.data).all()


def test_encoding_and_imputing_are_said_aloud():
    said = []
    say_encoding(table_of([[1.0, np.nan], [2.0, 3.0]], [["a", "b"]]), said.append)
    assert any("'t0'" in sentence and "one-hot" in sentence for sentence in said)
    assert any("1 missing numbers in 1 column(s)" in sentence for sentence in said)
