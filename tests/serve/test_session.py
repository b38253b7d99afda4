"""Tables of the live page: categories, forced columns, folds, and what is held."""

import numpy as np
import pytest

from tamiz.errors import TableArgumentError
from tamiz.serve.code import python_code
from tamiz.serve.fits import Wish, describe_fit, fit_wish, read_wish, score_fold
from tamiz.serve.jobs import JobCancelled
from tamiz.serve.session import MOST_TABLES, LiveError, LiveTable, LiveTables


def test_a_fit_on_prepared_data_is_the_fit_of_the_estimator(small_file):
    from tamiz import E2EFSClassifier

    data = LiveTable(small_file).with_target("ill")
    ours = fit_wish(data, Wish(4))
    direct = E2EFSClassifier(4, network="linear", random_state=0).fit(data.X, data.y)
    assert np.array_equal(ours.ranking_, direct.ranking_)
    assert np.array_equal(ours.coef_, direct.coef_)


def test_the_score_of_a_fold_is_that_of_a_fit_on_its_training_rows(small_file):
    from sklearn.metrics import balanced_accuracy_score

    from tamiz import E2EFSClassifier

    data = LiveTable(small_file).with_target("ill")
    for number, (train, test) in enumerate(data.folds):
        (score,), columns = score_fold(data, Wish(3), number)
        direct = E2EFSClassifier(3, random_state=0).fit(data.X[train], data.y[train])
        assert score == balanced_accuracy_score(data.y[test], direct.predict(data.X[test]))
        assert columns == [data.columns[i] for i in direct.selection_.indices]


@pytest.mark.parametrize("network", ["linear", "additive", "mlp"])
def test_a_fit_ends_when_it_is_no_longer_wanted(csv_of, network):
    data = LiveTable(csv_of(200, 300, "long.csv")).with_target("ill")
    calls = []

    def check(*_):
        calls.append(1)
        if len(calls) == 2:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        fit_wish(data, Wish(5, network=network), check)
    assert len(calls) == 2


def test_a_column_of_categories_is_one_unit(csv_of):
    data = LiveTable(csv_of(60, 6, "mixed.csv", extra=True)).with_target("ill")
    wish = Wish(3, keep=("colour",), drop=("gene 2",))
    fitted = fit_wish(data, wish)
    shown = describe_fit(data, wish, fitted)
    names = [one["name"] for one in shown["kept"]]
    assert len(names) == shown["m"] == 3
    assert shown["columns"] == 7
    assert "colour" in names
    assert "gene 2" not in names + shown["next"]
    assert [one["forced"] for one in shown["kept"]] == [name == "colour" for name in names]


@pytest.mark.parametrize("network", ["linear", "additive"])
def test_the_code_repeats_the_fit_of_a_table_with_categories_and_numbers(
    csv_of, network, tmp_path, monkeypatch, capsys
):
    """A numeric target of 60 rows: l2="auto" would ask the data, the page took the rule."""
    path = csv_of(60, 6, "mixed.csv", extra=True)
    table = LiveTable(path)
    data = table.with_target("gene 5")
    wish = Wish(3, "gene 5", network, keep=("colour",), drop=("gene 1",))
    fitted = fit_wish(data, wish)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed.csv").write_bytes(path.read_bytes())
    code = python_code(table, data, wish, fitted)
    assert ("SelectionL2" in code) == (network == "linear")
    space = {}
    exec(code, space)
    assert np.array_equal(space["selector"].ranking_, fitted.ranking_)
    assert np.array_equal(space["selector"].predict(space["X"]), fitted.predict(data.X))
    assert (tmp_path / "report.html").exists()
    assert "colour" in capsys.readouterr().out


def test_folds_are_fewer_for_a_rare_class(tmp_path):
    path = tmp_path / "rare.csv"
    lines = ["a,b,ill", *(f"{i},{i * 7 % 5},{'yes' if i < 2 else 'no'}" for i in range(20))]
    path.write_text("\n".join(lines))
    assert len(LiveTable(path).with_target("ill").folds) == 2
    path.write_text("\n".join(lines).replace("1,2,yes", "1,2,no"))
    assert LiveTable(path).with_target("ill").folds == []


def test_the_folds_learn_from_their_training_rows_alone(tmp_path):
    """The median that fills a gap comes from the training rows of the fold."""
    from tamiz import E2EFSClassifier

    path = tmp_path / "gaps.csv"
    rows = [f"{'' if i == 3 else i * i},{i * 7 % 5},{'yes' if i % 2 else 'no'}" for i in range(20)]
    path.write_text("\n".join(["a,b,ill", *rows]))
    data = LiveTable(path).with_target("ill")
    for number, (train, test) in enumerate(data.folds):
        if 3 in test:
            _, matrix = data.fold(number, E2EFSClassifier())
            place = int(np.flatnonzero(test == 3)[0])
            assert matrix[place, 0] == np.median([i * i for i in train if i != 3])
            assert data.fold(number, E2EFSClassifier())[1] is matrix


def test_old_tables_go_first_and_their_files_with_them(small_file):
    tables = LiveTables()
    try:
        keys = []
        for _ in range(MOST_TABLES + 1):
            path = tables.new_file("a.csv")
            path.write_bytes(small_file.read_bytes())
            keys.append(tables.add(path)[0])
            if len(keys) > 1:
                tables.get(keys[1])
        with pytest.raises(LiveError, match="Open the file again"):
            tables.get(keys[0])
        assert not (tables._folder / keys[0]).exists()
        assert tables.get(keys[1]).name == "a.csv"
    finally:
        tables.close()
    assert not tables._folder.exists()


def test_a_file_of_the_command_is_checked_before_the_page_is_opened(small_file):
    tables = LiveTables(small_file, "-1")
    assert tables.get("first").target == "ill"
    tables.close()
    with pytest.raises(TableArgumentError, match="no target 'sick'"):
        LiveTables(small_file, "sick")


def test_a_name_is_forced_once():
    assert read_wish({"m": 2, "keep": ["a", "a"]}).keep == ("a",)
