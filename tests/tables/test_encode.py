"""What the selector sees: learnt from the fitted rows alone."""

from __future__ import annotations

import datetime

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from tamiz import E2EFSClassifier
from tamiz.errors import SourceError
from tamiz.report import report
from tamiz.tables import TableEncoder, TableError, as_table, list_features, read_table
from tamiz.tables.columns import drop_unusable_columns


def test_features_of_text_columns(table_of):
    table = table_of(np.ones((4, 1)), [["b", "a", "b", "a"], ["x", None, "y", "x"], ["u", "v", "w", "u"]])
    names = [feature.name for feature in list_features(table)]
    assert names == ["n0", "t0=b", "t1=x", "t1=y", "t2=u", "t2=v", "t2=w"]
    matrix = TableEncoder(features=list_features(table)).fit(table).transform(table)
    assert matrix[:, 1:].astype(int).tolist() == [
        [1, 1, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 1],
        [0, 1, 0, 1, 0, 0],
    ]


def test_medians_and_categories_come_from_the_fitted_rows_alone(table_of):
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(40, 6)).astype(np.float32)
    numbers[generator.random(numbers.shape) < 0.3] = np.nan
    numbers[:20, 5] = np.nan
    table = table_of(numbers, [["a"] * 20 + ["b"] * 10 + ["c"] * 10])
    rows = np.arange(30)
    encoder = TableEncoder(features=list_features(table)).fit(table, rows=rows)
    matrix = encoder.transform(table)
    expected = SimpleImputer(strategy="median").fit(numbers[rows]).transform(numbers)
    np.testing.assert_allclose(matrix[:, :6], expected, rtol=1e-6)
    assert matrix[30:, 8].tolist() == [0.0] * 10  # category c was not seen in the fitted rows
    assert np.isfinite(
        TableEncoder(features=list_features(table)).fit(table, rows=np.arange(20)).transform(table)
    ).all()


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_some_columns_of_all_rows_in_another_order(convert):
    table = as_table(pandas.DataFrame({"a": [1.0, 2, 3], "b": [10.0, 20, 30]}))
    table.numbers, rows = convert(table.numbers), np.array([1, 2, 0])
    found = TableEncoder().fit(table).restricted(np.array([1])).transform(table, rows=rows)
    assert sp.csr_matrix(found).toarray().tolist() == [[20], [30], [10]]


def test_sparse_tables_pass_through(table_of):
    table = table_of(sp.random(10, 5, density=0.5, format="csr", dtype=np.float32, random_state=0))
    assert sp.issparse(
        TableEncoder(features=list_features(table)).fit(table, rows=np.arange(5)).transform(table, rows=np.arange(3))
    )
    assert np.isfinite(drop_unusable_columns(table, 5).numbers.data).all()


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    ill = np.repeat(["no", "yes"], 30)
    numbers = generator.normal(size=(60, 4))
    numbers[:, 1] += 3 * (ill == "yes")
    numbers[generator.random(numbers.shape) < 0.1] = np.nan
    frame = pandas.DataFrame(numbers, columns=list("abcd"))
    frame["colour"] = generator.choice(["red", "green", "blue"], 60)
    frame["when"] = pandas.date_range("2024-01-01", periods=60)[generator.permutation(60)]
    return frame, ill


@pytest.mark.parametrize("convert", [lambda f: f, polars.from_pandas, pyarrow.Table.from_pandas])
def test_data_frames_of_any_library_give_the_same(frame, convert):
    data, _ = frame
    encoder = TableEncoder().fit(convert(data))
    expected = SimpleImputer(strategy="median").fit_transform(data[list("abcd")])
    found = encoder.transform(convert(data))
    np.testing.assert_allclose(found[:, :4], expected, rtol=1e-6)
    assert encoder.get_feature_names_out().tolist() == [*"abcd", "when", "colour=blue", "colour=green", "colour=red"]
    assert found[:, 4].tolist() == (data["when"] - data["when"].min()).dt.days.tolist()
    np.testing.assert_array_equal(found[:, 5:], np.array(["blue", "green", "red"]) == data[["colour"]].to_numpy())


def test_columns_of_a_frame_are_found_by_name(frame):
    data, _ = frame
    encoder = TableEncoder().fit(data)
    other = data[["when", "colour", "d", "c", "b", "a"]].assign(more=1.0)
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(data))
    with pytest.raises(TableError, match=r"lacks 1 column that the model needs: 'a'"):
        encoder.transform(data.drop(columns="a"))
    with pytest.raises(TableError, match="needs numbers in 'a'"):
        encoder.transform(data.assign(a="high"))
    with pytest.raises(TableError, match="needs text in 'colour'"):
        encoder.transform(data.assign(colour=1.5))
    assert not encoder.transform(data.assign(colour=None))[:, 5:].any()


def test_a_pipeline_encodes_inside_the_folds(frame):
    data, ill = frame
    model = make_pipeline(TableEncoder(), E2EFSClassifier(1, random_state=0))
    assert cross_val_score(model, data, ill, cv=3).mean() > 0.8
    model.fit(data, ill)
    assert model[:-1].get_feature_names_out()[model[-1].get_support()].tolist() == ["b"]
    assert clone(model).get_params()["tableencoder__max_categories"] == 50


@pytest.fixture
def coloured(frame):
    """A frame whose text and one number tell the class."""
    data, ill = frame
    random = np.random.default_rng(0)
    yes = (ill == "yes") ^ (random.random(60) < 0.05)
    return data.assign(
        colour=np.where(yes, random.choice(["red", "pink"], 60), random.choice(["blue", "grey"], 60))
    ), ill


@pytest.mark.parametrize("convert", [lambda f: f, polars.from_pandas])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_columns_of_the_table_are_counted_and_named_behind_an_encoder(coloured, convert, output):
    data, ill = convert(coloured[0]), coloured[1]
    model = (
        make_pipeline(TableEncoder(), E2EFSClassifier(2, random_state=0)).set_output(transform=output).fit(data, ill)
    )
    selection = model[-1].selection_
    assert selection.names == selection.group_names[np.argsort(selection.group_ranking)[:2]].tolist()
    assert sorted(selection.names) == ["b", "colour"]
    names = ["b", *(f"colour={level}" for level in ("blue", "grey", "pink", "red"))]
    kept = model.transform(data)
    assert type(kept).__module__.split(".")[0] == {"default": "numpy"}.get(output, output)
    assert output == "default" or list(kept.columns) == names
    assert model.score(data, ill) > 0.9
    assert model[-1].groups is None  # the parameter stays as it was given
    plain = make_pipeline(TableEncoder(), E2EFSClassifier(1, random_state=0)).fit(data[["a", "b", "c"]], ill)
    assert plain[-1].selection_.names == ["b"]
    assert plain[-1].selection_.groups is None


def test_groups_travel_in_searches_reports_and_with_metadata(coloured, tmp_path):
    data, ill = coloured
    model = make_pipeline(TableEncoder(), E2EFSClassifier(2, random_state=0))
    search = GridSearchCV(model, {"e2efsclassifier__n_features_to_select": [1, 2]}, cv=3).fit(data, ill)
    chosen = search.best_params_["e2efsclassifier__n_features_to_select"]
    assert search.best_estimator_[-1].selection_.group_support.sum() == chosen
    automatic = clone(model).set_params(e2efsclassifier__n_features_to_select="auto").set_output(transform="polars")
    with sklearn.config_context(enable_metadata_routing=True):
        automatic[-1].set_fit_request(sample_weight=True, groups=True)
        automatic.fit(data, ill, sample_weight=np.ones(60), groups=np.arange(60) // 3)
    assert automatic[-1].selection_.group_support.sum() <= 7
    model.fit(data, ill)
    page = report(model, data, ill, path=tmp_path / "report.html").read_text(encoding="utf-8")
    assert "colour" in page
    assert "2 of 6 columns" in page


def test_a_stream_gives_the_same_whatever_its_batches(frame, monkeypatch):
    data, _ = frame
    whole, parts = TableEncoder().fit(data), TableEncoder()
    for start in range(0, 60, 13):
        parts.partial_fit(data[start : start + 13])
    np.testing.assert_array_equal(parts.transform(data), whole.transform(data))
    monkeypatch.setattr("tamiz.tables.encode._SAMPLE_ROWS", 25)
    samples = []
    for step in (7, 60):
        encoder = TableEncoder()
        for start in range(0, 60, step):
            encoder.partial_fit(polars.from_pandas(data[start : start + step]))
        samples.append(encoder.medians_)
    np.testing.assert_array_equal(*samples)
    assert not np.array_equal(samples[0], whole.medians_)
    for other in (data.assign(a="x"), data[["a", "b"]]):
        with pytest.raises(SourceError, match="Parts of the table have other columns or types"):
            encoder.partial_fit(other)


def test_a_table_from_a_file_can_be_cross_validated(frame, tmp_path):
    data, ill = frame
    data.assign(ill=ill).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", target="ill")
    model = make_pipeline(TableEncoder(), E2EFSClassifier(1, random_state=0))
    from_file = cross_val_score(model, table, table.y, cv=3)
    np.testing.assert_allclose(from_file, cross_val_score(model, data, ill, cv=3))


def test_columns_of_numbers_that_name_categories():
    with pytest.raises(NotFittedError):
        TableEncoder().transform(pandas.DataFrame({"a": [1]}))
    data = pandas.DataFrame({"code": [1, 2, 3, 1], "size": [1.0, 2.0, 3.0, 4.0]})
    encoder = TableEncoder(categorical=["code"]).fit(data)
    assert encoder.get_feature_names_out().tolist() == ["size", "code=1", "code=2", "code=3"]
    assert encoder.transform(data)[:, 1].tolist() == [1, 0, 0, 1]


def test_a_gap_in_a_column_that_was_complete_when_fitted_is_filled_with_its_median():
    encoder = TableEncoder().fit(pandas.DataFrame({"age": [50.0, 60.0, 71.0, 80.0], "dose": [1.0, None, 3.0, 9.0]}))
    encoded = encoder.transform(pandas.DataFrame({"age": [None, 10.0], "dose": [None, 2.0]}))
    assert encoded.tolist() == [[65.5, 3.0], [10.0, 2.0]]


def test_dates_and_spellings_mean_the_same_in_other_rows():
    days = pandas.to_datetime(["2024-01-01", "2024-01-05", "2024-01-09", "2024-01-02"])
    frame = pandas.DataFrame({"day": days, "sex": ["F", "M", "F", "M"]})
    encoder = TableEncoder().fit(frame)
    other = pandas.DataFrame({"day": days[1:], "sex": ["m", "f", "m"]})
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(frame)[1:])
    assert encoder.transform(other)[:, 0].tolist() == [4, 8, 1]


def test_features_never_share_a_name():
    frame = pandas.DataFrame({"t": ["u", "v", "w", "w"], "t=u": [1.0, 2.0, 3.0, 4.0]})
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["t=u", "t=u (category)", "t=v", "t=w"]


def test_durations_of_pandas_are_days_as_those_of_polars():
    frame = pandas.DataFrame({"took": pandas.to_timedelta([1.5, None, 3.0], unit="D"), "x": [1.0, 2.0, 4.0]})
    spans = [datetime.timedelta(days=1.5), None, datetime.timedelta(days=3)]
    for table in (frame, polars.DataFrame({"took": spans, "x": [1.0, 2.0, 4.0]})):
        found = TableEncoder(impute=False).fit_transform(table)
        np.testing.assert_allclose(np.asarray(found), [[1.5, 1], [np.nan, 2], [3, 4]])
