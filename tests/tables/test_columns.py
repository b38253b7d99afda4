"""What columns mean: numbers in any spelling, dates, categories, the target; which are left out, and what is said."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from tamiz.tables import TableArgumentError, TableError, TextColumn, read_table
from tamiz.tables.columns import drop_unusable_columns, parse_dates, spelt_numbers
from tamiz.tables.read import resolve_target

NUMBERS = [  # cells, whether commas are decimal marks elsewhere in the file, numbers, unit
    (["-0,064", "1,234"], False, [-0.064, 1.234], ""),
    (["1,5", "2,75"], False, [1.5, 2.75], ""),
    (["1,234", "12,500"], False, [1234, 12500], ""),
    (["1,234", "12,500"], True, [1.234, 12.5], ""),
    (["1,234,567", "1,000"], True, [1234567, 1000], ""),
    (["1.234.567", "1.000"], False, [1234567, 1000], ""),
    (["1.234,5", "0,5"], False, [1234.5, 0.5], ""),
    (["1,234.5", "0.5"], False, [1234.5, 0.5], ""),
    (["1'234.5", "12 000", "3\u202f000"], False, [1234.5, 12000, 3000], ""),
    (["0.298", "0.126 kg"], False, None, ""),  # a unit that is mostly left out
    (["-0.298", "0.126", "0.640", "abc"], False, None, ""),
    (["12.34 EUR", "EUR 5", "-3"], False, [12.34, 5, -3], "EUR"),
    (["$5", "-$1,200.50", "$ 7"], False, [5, -1200.5, 7], "$"),
    (["12.34€", "1.200,00€"], False, None, ""),  # two decimal marks
    (["12%", "3.5 %", "0"], False, [12, 3.5, 0], "%"),
    (["12%", "3.5"], False, None, ""),
    (["3.2 kg", "70 kg"], False, [3.2, 70], "kg"),
    (["3 kg", "500 g"], False, None, ""),
    (["1e3 m/s", "2 m/s"], False, [1000, 2], "m/s"),
    (["1.", "a"], False, None, ""),
    (["ID12", "ID13"], False, None, ""),
    (["1-2", "3-4"], False, None, ""),
    (["v1"], False, None, ""),
    (["."], False, None, ""),
    (["10:30", "11:45"], False, None, ""),
]


@pytest.mark.parametrize(("cells", "comma", "numbers", "unit"), NUMBERS)
def test_numbers_in_any_spelling(cells, comma, numbers, unit):
    found = spelt_numbers(cells, comma)
    assert found == (None if numbers is None else (numbers, unit))


@pytest.mark.parametrize(
    ("cells", "days", "ambiguous"),
    [
        (["1970-01-02", "1970-02-01"], [1, 31], False),
        (["1970-01-02 12:00:00", "1970-01-02T00:00:00Z"], [1.5, 1], False),
        (["02.01.1970", "13.01.1970"], [1, 12], False),
        (["02/01/1970", "03/01/1970"], [1, 2], True),
        (["01/13/1970", "01/02/1970"], [12, 1], False),
        (["2 Jan 1970"], [1], False),
        (["19700102"], None, False),
        (["1970-01-02", "soon"], None, False),
    ],
)
def test_dates(cells, days, ambiguous):
    assert parse_dates(cells) == (None if days is None else (days, ambiguous))


def test_a_table_of_many_troubles_is_read_and_each_is_named(tmp_path):
    """Every column is used or left out with a reason, without an option; others are in tests/cli/test_messy_table.py."""
    rng, n = np.random.default_rng(0), 200
    frame = pandas.DataFrame(
        {
            "customer": [f"C-{i:04d}" for i in range(n)],
            "zero": 0.0,
            "price": [f"${v:,.2f}" for v in rng.uniform(500, 9000, n)],
            "signup": pandas.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"),
            "active": rng.choice(["True", "FALSE"], n),
            "sex": rng.choice([" F", "f", "F", "M", "m"], n),
            "city": [f"city {v}" for v in rng.integers(0, 80, n)],
            "zip": rng.choice([10115, 20095, 50667, 80331, 60311], n),
            "rooms": rng.integers(1, 9, n),
            "row": np.arange(n),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", target="row")
    assert table.column_values("price")[3] == pytest.approx(float(frame["price"][3][1:].replace(",", "")))
    assert table.column_values("signup").tolist() == list(range(n))
    assert set(table.column_values("active")) == {0.0, 1.0}
    assert len(table.texts[table.names.index("sex")].categories) == 2
    alerts = {(alert.kind, column): alert.message for alert in table.alerts for column in alert.columns}
    kinds = "identifier customer, constant zero, units price, dates signup, spelling sex, categories city, codes zip"
    assert {*alerts} == {*(tuple(one.split()) for one in kinds.split(", ")), ("running target", "row")}
    for kind, words in (
        ("categories city", "`max_categories`"),
        ("codes zip", "`categorical` 'zip'"),
        ("units price", "'$'"),
    ):
        assert words in alerts[tuple(kind.split())]
    assert "days since the first, 2024-01-01" in alerts["dates", "signup"]
    # Named in `categorical`, values are taken as they are spelt.
    exact = read_table(tmp_path / "t.csv", target="row", categorical=["sex", "zip"])
    assert len(exact.texts[exact.names.index("sex")].categories) == 4
    assert exact.texts[exact.names.index("zip")].categories == ["10115", "20095", "50667", "60311", "80331"]


def test_columns_of_odd_cells_are_left_out_and_named(write_csv):
    rows = "".join(f"{i},{i}.125,,{'<1' if i == 3 else i + 0.125},{i % 2}a\n" for i in range(12))
    messages = []
    table = read_table(
        write_csv("x,code,void,level,kind\n" + rows), max_categories=5, categorical=["code"], report=messages.append
    )
    assert [table.names[i] for i in table.number_columns] == ["x", "kind"]
    text = "\n".join(messages)
    assert "'void' (no values at all)" in text
    assert "'level' (numbers mixed with text, such as '<1' in data row 4; correct it, or name it in `na_values`" in text
    assert "'code' (named in `categorical`, but it holds more than 5 different numbers)" in text


def test_a_target_in_a_foreign_spelling(write_csv):
    table = read_table(write_csv("a,y\n" + "".join(f"{i},{i * i} kg\n" for i in range(30))), target="y")
    assert table.task == "regression"
    assert table.y[:3].tolist() == [0, 1, 4]
    assert [alert.kind for alert in table.alerts] == ["units"]
    assert table.alerts[0].message.endswith("If they are names, set `task` classification.")
    table = read_table(write_csv("a,y\n" + "1,Yes\n2,no\n3,yes\n" * 5), target="y")
    assert sorted(set(table.y)) == ["Yes", "no"]
    assert table.alerts[-1].message.endswith("If not, give the classes other names.")
    table = read_table(write_csv("a;y\n" + "".join(f"{i};{i},5\n" for i in range(9))), target="y")
    assert table.alerts == []  # the file has decimal commas


def test_columns_rows_and_target_are_ready_for_use(write_csv):
    path = write_csv("a,void,late,ill\n1,,,no\n2,,7,\n3,,,yes\n,,,no\n")
    messages = []
    table = read_table(path, target="ill", report=messages.append)
    assert table.y.tolist() == ["no", "yes", "no"]
    assert table.task == "classification"
    assert table.rows.tolist() == [0, 2, 3]
    # The only value of 'late' stood in the row without a target.
    assert [table.names[i] for i in table.number_columns] == ["a"]
    np.testing.assert_array_equal(table.numbers, np.array([[1], [3], [np.nan]], dtype=np.float32))
    assert any(message.startswith("Left out: 1 row ") for message in messages)
    assert any("1 missing number in 1 column," in message for message in messages)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e300"])
def test_what_cannot_be_used_raises_with_the_name_of_the_column(write_csv, cell, read):
    with pytest.raises(TableError, match=r"Column 'b' holds an infinity .* in data row 2"):
        drop_unusable_columns(read(write_csv(f"a,b\n1,2\n3,{cell}\n")), 5)
    with pytest.raises(TableError, match="no column left"):
        drop_unusable_columns(read(write_csv("a,b\nNA,\n,NA\n")), 5)


def test_without_a_target(write_csv):
    path = write_csv("a,b\n1,2\n3,4\n")
    table = read_table(str(path))
    assert table.task is table.y is None
    messages = []
    read_table(write_csv("1,2\n3,4\n"), report=messages.append)
    assert messages[0].startswith("Warning: the first row holds only numbers")
    with pytest.raises(TableArgumentError, match="`target`"):
        read_table(path, need_target=True)


def test_columns_by_name_number_range_and_pattern(write_csv, read):
    path = write_csv("a,2,c\n1,2,3\n4,5,6\n7,8,9\n")
    for target, name in (("c", "c"), ("1", "a"), ("2", "2"), ("-1", "c")):  # a name wins over a number
        assert read(path, target=target).target_name == name
    assert read(path, target="c").number_columns.tolist() == [0, 1]
    wide = write_csv("id,g1,g2,g3,h\n1,2,x,4,5\n", "wide.csv")
    assert read(wide, ignore=["id", "g*"]).number_columns.tolist() == [4]
    assert read(wide, ignore=["2-4"]).number_columns.tolist() == [0, 4]
    chosen = read(wide, columns=["h", "g2"], categorical=["g2"])
    assert (chosen.number_columns.tolist(), list(chosen.texts)) == ([4], [2])
    assert read_table(write_csv("a,void\n1,\n3,\n"), columns=["void"]).number_columns.tolist() == [1]  # all are kept
    for options, message in (
        ({"target": "C1"}, "no target 'C1'"),
        ({"need_target": True}, "`target`"),
        ({"ignore": ["z*"]}, "No column matches"),
        ({"target": "h", "ignore": ["h"]}, "cannot be ignored"),
        ({"columns": ["h", "d", "e"]}, r"lacks 2 columns that the model needs: 'd', 'e'"),
    ):
        with pytest.raises(TableError, match=message):
            read(wide, **options)


def test_text_of_numbers_is_numbers_and_the_task_can_be_overruled(table_of):
    said = []
    for values, task in (([1.0, 2.0, 3.5] * 10, "regression"), ([1.0, 2.0, 3.0] * 10, "classification")):
        found, y, _ = resolve_target(table_of(np.ones((30, 1)), target=np.array(values)), None, said.append)
        assert (found, said.pop()[:6]) == (task, "Task: ")
    assert sorted(set(y)) == ["1", "2", "3"]
    target = TextColumn.from_values(["1.5", None, "2.5", "3.5"])
    task, y, rows = resolve_target(table_of(np.ones((4, 1)), target=target), None, said.append)
    assert (task, y.tolist(), rows.tolist()) == ("regression", [1.5, 2.5, 3.5], [0, 2, 3])
    assert "1 row without" in said[0]
    table = table_of(np.ones((4, 1)), target=np.array([0.0, 1.0, 0.0, 1.0]))
    assert resolve_target(table, "regression")[1].dtype == np.float64
    mixed = table_of(np.ones((4, 1)), target=TextColumn.from_values(["1", "2", "high", "high"]))
    assert set(resolve_target(mixed, "classification")[1]) == {"1", "2", "high"}


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
def test_targets_that_cannot_be_used(values, task, message, table_of):
    target = np.array(values) if isinstance(values[0], float) else TextColumn.from_values(values)
    with pytest.raises(TableError, match=message):
        resolve_target(table_of(np.ones((len(values), 1)), target=target), task, lambda sentence: None)
