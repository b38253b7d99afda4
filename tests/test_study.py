"""`select` returns a study: one record that command, report and live page show, in columns of the table."""

from __future__ import annotations

import json

import numpy as np
import pandas
import polars as pl
import pytest
import scipy.sparse

from tamiz import KnockoffSelection, compare, select
from tamiz._utils import extras
from tamiz.errors import SourceError, TableError
from tamiz.tables import read_table
from tamiz.tables.passes import file_within_memory, open_large


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(0)
    y = np.resize(["no", "yes"], 90)
    table = pandas.DataFrame(generator.normal(size=(90, 6)), columns=list("abcdef"))
    table["b"] += 1.5 * (y == "yes")
    other = generator.random(90) < 0.2
    table["colour"] = np.where((y == "yes") ^ other, "red", generator.choice(["blue", "green"], 90))
    table["patient"] = np.arange(90) // 3
    table["day"] = pandas.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d")
    table["weight"] = 1000.0 + generator.random(90)
    table["ill"] = y
    return table


FEATURES = [*"abcdef", "colour"]


def test_fdr_counts_columns_of_the_table():
    generator = np.random.default_rng(0)
    table = pandas.DataFrame(generator.normal(size=(200, 30)), columns=[f"c{i}" for i in range(30)])
    table["colour"], table["rare"], table["constant"] = generator.choice(list("abc"), 200), "u", 1.0
    table.loc[0, "rare"] = "v"  # constant in the folds that do not train on this row
    table["y"] = 2 * table[[f"c{i}" for i in range(5)]].sum(axis=1) + 6 * (table["colour"] == "a")
    table["y"] += generator.normal(size=200)
    study = select(table, "y", fdr=0.2, cv=3)
    found = {one["column"] for one in study.kept}
    assert found >= {"colour", "c0", "c1", "c2", "c3", "c4"}
    assert {name for name, q in zip(study.evaluation.names, study.q_values, strict=True) if q <= 0.2} == found
    assert study.evaluation.model == type(study.model).__name__ == "E2EFSRegressor"
    assert study.score.value > 0.9
    assert set(study.selection.names) == found
    assert "Network: linear; what it leaves shows no sign of curves or of columns that act together." in study.notes


def test_fdr_searches_anew_on_the_training_rows_of_each_fold():
    generator = np.random.default_rng(2)
    X = generator.normal(size=(120, 30))
    y = (0.8 * X[:, :6].sum(axis=1) + generator.normal(size=120) > 0).astype(int)
    study = select(X, y, fdr=0.2, cv=3)
    for number, (fold, (train, _)) in enumerate(zip(study.evaluation.folds, study.evaluation.splits, strict=True)):
        alone = KnockoffSelection(fdr=0.2, random_state=number).fit(X[train], y[train])
        assert fold.support.tolist() == alone.get_support().tolist()
    empty = [fold for fold in study.evaluation.folds if not fold.support.any()]
    assert 0 < len(empty) < 3
    assert all(np.unique(fold.predicted).size == 1 for fold in empty)
    assert f"In {len(empty)} of 3 folds no column passed; their score is that of a constant." in study.notes
    with pytest.raises(TableError, match="needs a dense table"):
        select(scipy.sparse.csr_matrix(X), y, fdr=0.2)
    with pytest.raises(ValueError, match="cannot be combined with `budget`"):
        select(X, y, fdr=0.2, budget=3)
    with pytest.raises(ValueError, match="'x0' and 'x1' are perfectly correlated: leave one of them out with `ignore`"):
        select(np.c_[X[:, 0], X[:, 0], X], y, fdr=0.2)


def test_a_study_counts_columns_and_is_plain_data(frame, tmp_path):
    study = select(frame[[*FEATURES, "ill"]], "ill", 2, permutations=19, cv=3)
    assert study.evaluation.names == FEATURES
    assert sorted(study.selection.names) == ["b", "colour"]
    assert study.selection.support.shape == (7,)
    colour = next(one for one in study.kept if one["column"] == "colour")
    assert {level["level"] for level in colour["levels"]} == {"blue", "green", "red"}
    assert colour["weight"] is None
    record = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert (record["k"], record["n_features"], record["task"]) == (2, 7, "classification")
    assert record["verdict"] == study.verdict
    assert record["scores"]["kept"]["value"] == study.score.value
    assert [point["k"] for point in record["curve"]] == [size for size, _ in study.curve]
    assert set(study.models) == {size for size, _ in study.curve} - {2}
    assert all(study.selection_of(model).support.sum() == size for size, model in study.models.items())
    assert np.mean(study.predict(frame) == frame["ill"]) > 0.7
    files = study.save(tmp_path)
    assert {*files.values()} >= {"selected.csv", "selected.json", "model.tamiz"}
    assert all((tmp_path / name).is_file() for name in files.values())


@pytest.mark.parametrize("roles", [{"groups": "patient"}, {"time": "day"}, {"weights": "weight"}])
def test_a_file_and_a_frame_give_the_same_study(frame, tmp_path, roles):
    path = tmp_path / "table.csv"
    table = frame[[*FEATURES, *roles.values(), "ill"]]
    table.to_csv(path, index=False)
    shared = {"k": 2, "cv": 3, "permutations": 0, **roles}
    of_file, of_frame = select(path, "ill", test=path, **shared), select(table, "ill", **shared)
    assert of_file.selection.names == of_frame.selection.names
    assert of_file.score.value == pytest.approx(of_frame.score.value)
    assert of_file.test["n_rows"] == 90
    assert of_file.test["low"] < of_file.test["value"] < of_file.test["high"]
    for name in ("groups", "time", "sample_weight"):
        given = getattr(of_file.rows, name)
        assert (given is None) == (getattr(of_frame.rows, name) is None)
    if "weights" in roles:  # the offset of 1000 is not lost
        assert of_file.rows.sample_weight == pytest.approx(frame["weight"])


def test_arrays_budgets_and_several_targets(frame):
    X = frame[list("abcdef")].to_numpy()
    study = select(X, X[:, 0] - X[:, 3], 2, permutations=0, cv=3)
    assert sorted(study.selection.names) == ["x0", "x3"]
    assert study.predict(X).shape == (90,)
    dear = select(frame[[*FEATURES, "ill"]], "ill", budget=3.0, costs={"colour": 5.0}, permutations=0, cv=3)
    assert "colour" not in dear.selection.names
    assert dear.curve == []
    both = select(frame[list("abcdef")], ["a", "b"], 2, permutations=0, cv=3)
    assert both.targets == ["a", "b"]
    assert both.evaluation.names == list("cdef")


def test_progress_can_end_a_study(frame):
    with pytest.raises(ZeroDivisionError):
        select(frame[[*FEATURES, "ill"]], "ill", 2, progress=lambda *_: 1 / 0)


N, TRUE = 12_000, ["c3", "c7", "colour"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table of 12,000 rows, of which 3 MB hold less than a third; one level stands in two rows only."""
    rng = np.random.default_rng(0)
    X, colour = rng.normal(size=(N, 12)).astype("f4"), rng.choice(["blue", "green", "Red", "red"], N).astype("U6")
    colour[[5, 7000]] = "violet"
    y = X[:, 3] - X[:, 7] + np.isin(colour, ["Red", "red"]) + rng.logistic(size=N) / 2 > 0.5
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(12)}).with_columns(
        colour=pl.Series(colour),
        patient=pl.Series(np.arange(N) // 3),
        day=pl.Series(np.arange(N) // 10),
        ill=pl.Series(y),
    )
    folder = tmp_path_factory.mktemp("large")
    frame.write_parquet(folder / "t.parquet", row_group_size=1000)
    frame.write_csv(folder / "t.csv")
    (folder / "parts").mkdir()
    for part in range(3):
        frame[part * 4000 : (part + 1) * 4000].write_parquet(folder / "parts" / f"{part}.parquet")
    return folder


def select_large(table, **more):
    ignore = [name for name in ("patient", "day") if name not in more.values()]
    options = {"k": 3, "cv": 3, "permutations": 3, "max_memory": 2e6, "ignore": ignore, **more}
    return select(table, "ill", **options)


@pytest.fixture(scope="module")
def reference(large):
    return select_large(large / "t.parquet")


def test_a_table_beyond_memory_is_a_study_of_a_sample_with_a_model_of_all_rows(large, reference, tmp_path):
    frame = pl.read_parquet(large / "t.parquet")
    whole = select_large(large / "parts", max_memory=None)  # a folder that fits is read whole
    assert (whole.rows.n_rows, whole.passes) == (N, ())
    assert sorted(reference.selection.names) == sorted(whole.selection.names) == TRUE
    assert [(one.n_columns, one.n_rows) for one in reference.passes] == [(14, N), (4, N)]
    assert reference.rows.n_rows < reference.passes[0].n_sampled < N / 2
    # The level that the sample lacks is counted, encoded, trained and saved.
    levels = [level.lower() for level in reference.saved_model.categories["colour"]]
    assert sorted(levels) == ["blue", "green", "red", "violet"]
    test = reference.test
    assert test["file"] == "the table, held out by hash"
    assert test["low"] < 0.845 < test["high"]
    right = [np.mean(study.predict(frame) == frame["ill"].cast(str).to_numpy()) for study in (reference, whole)]
    assert right[0] == pytest.approx(right[1], abs=0.003)
    record = reference.to_dict()
    assert record["n_rows"] == N
    assert record["passes"][0]["n_bytes"] > 500_000
    assert "passes within" in record["notes"][0]
    reference.save(tmp_path, report=True)
    assert pl.read_parquet(tmp_path / "reduced.parquet").shape == (N, 4)
    page = (tmp_path / "report.html").read_text()
    assert "is read in passes within" in page
    assert "14 columns of 12,000 rows" in page


@pytest.mark.parametrize("name", ["t.csv", "parts", "parts/*.parquet", "lazy"])
def test_every_source_beyond_memory_gives_the_same_study(large, reference, name):
    found = select_large(pl.scan_parquet(large / "t.parquet") if name == "lazy" else str(large / name))
    assert found.selection.names == reference.selection.names
    assert found.score.value == pytest.approx(reference.score.value, abs=1e-6)
    assert found.test["value"] == pytest.approx(reference.test["value"], abs=1e-6)


def test_rows_of_a_group_and_of_the_future_are_held_out_together(large):
    seen = []
    grouped = select_large(large / "t.parquet", groups="patient", permutations=0, progress=lambda *a: seen.append(a))
    later = select_large(large / "t.parquet", time="day", permutations=0)
    frame = pl.read_parquet(large / "t.parquet")
    big = open_large(large / "t.parquet", 2e6, {})[1]
    for role, name in (("groups", "patient"), ("time", "day")):
        big.name_columns("ill", {role: name}, {})
        sample = big.sample(0, None)
        train, held_out = big.read(["c1"])
        assert not {*train[name]} & {*held_out[name]}
        assert not {*sample[name]} & {*held_out[name]}
        assert len(held_out) == pytest.approx(0.1 * (len(train) + len(held_out)), rel=0.3)
    assert held_out["day"].min() > train["day"].max()
    assert frame.height == later.to_dict()["n_rows"]
    assert later.test["file"] == "the table, held out as the latest"
    assert sorted(grouped.selection.names) == sorted(later.selection.names) == TRUE
    assert [(stage, done == total) for stage, done, total in seen[:1]] == [("reading rows", True)]


def test_the_workers_of_a_scheduler_give_the_same_record(large, reference):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    frame = pl.read_parquet(large / "t.parquet")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        found = select_large(large / "t.parquet", scheduler=cluster.scheduler_address)
        with distributed.Client(cluster):
            collection = select_large(dd.from_pandas(frame.to_pandas(), npartitions=5))
            compared = compare({"fisher": "fisher"}, frame[:, :12].to_numpy(), frame["ill"].to_numpy(), k=[2])
    alone = compare({"fisher": "fisher"}, frame[:, :12].to_numpy(), frame["ill"].to_numpy(), k=[2])
    np.testing.assert_array_equal(compared.scores, alone.scores)
    one, other = found.to_dict(), reference.to_dict()
    assert {name for name in one if one[name] != other[name]} == {"seconds"}
    assert collection.score == reference.score
    assert collection.test == reference.test


BEYOND = [  # files in the folder, arguments, message
    ({"a": {"c1": [1.0], "ill": [1]}, "b": {"c1": [1.0]}}, {}, "b.parquet has other columns or types"),
    ({"a": {"c1": [1.0], "ill": [1]}, "b": {"c1": ["x"], "ill": [1]}}, {}, r"other columns or types .*\(first: c1\)"),
    ({"a": {"c1": [1.0] * 99, "ill": [1] * 99}}, {"max_memory": 100}, "not enough for 50 rows of 2 columns"),
    ({"a": {"c1": [1.0] * 99, "ill": [1] * 99}}, {"max_memory": 100, "target": "il"}, "'ill'"),
    ({"a": {"c1": [1.0] * 99, "ill": [1] * 99}}, {"max_memory": 100, "target": None}, "Name the target"),
    ({"a": {"c1": [1.0] * 99, "ill": [1] * 99}}, {"max_memory": 100, "groups": np.arange(99)}, "give its name"),
    ({"a": {"c1": [], "ill": []}}, {}, "no rows"),
    ({}, {}, "There is no table in the folder"),
    (
        {"a": {"c1": [1.0], "ill": [1]}},
        {"scheduler": "tcp://127.0.0.1:9"},
        "scheduler tcp://127.0.0.1:9 cannot be reached",
    ),
]


@pytest.mark.parametrize(("files", "more", "message"), BEYOND)
def test_what_is_wrong_with_a_folder(files, more, message, tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "CONNECT_SECONDS", 1)
    for name, columns in files.items():
        pl.DataFrame(columns).write_parquet(tmp_path / f"{name}.parquet")
    if "scheduler" in more:
        pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.raises((SourceError, TableError), match=message):
        select(tmp_path, **{"target": "ill", "k": 1, **more})


def test_a_live_page_gets_a_file_that_fits(large):
    said = []
    for path, limit, rows in ((large / "t.parquet", None, N), (large / "parts", None, N), (large / "t.csv", 2e6, 4000)):
        with file_within_memory(path, {}, said.append, limit) as found:
            table = read_table(found)
            assert table.n_rows == rows if limit is None else table.n_rows < rows
    assert (len(said), said[0][:36]) == (1, "12,000 rows do not fit into memory: ")
    assert not found.exists()


def test_a_file_that_changes_between_passes_and_a_table_without_rows(large, tmp_path):
    frame = pl.read_parquet(large / "t.parquet")
    frame.write_parquet(tmp_path / "t.parquet")
    big = open_large(tmp_path / "t.parquet", 2e6, {})[1]
    big.name_columns("ill", {}, {})
    big.sample(0, None)
    frame[:9000].write_parquet(tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="must not change while it is read"):
        big.read(["c1"])
    with pytest.raises(TableError, match="no rows"):
        select(frame.lazy().filter(pl.col("c1") > 99), "ill")


WRONG = [
    ({"target": "illl"}, "illl"),
    ({"target": None}, "Say which column is the target"),
    ({"netwrok": "mlp"}, "select has no option 'netwrok'. Did you mean 'network'"),
    ({"seed": 1}, "select has no option 'seed'. It is 'random_state'."),
    ({"n_features_to_select": 1}, "It is 'k'."),
    ({"permutation": 1}, "Did you mean 'permutations'"),
    ({"k": [1, 2]}, "k must be a number, a fraction or 'auto'"),
    ({"groups": np.zeros(90)}, "All rows are of one group"),
    ({"time": np.zeros(90)}, "All rows are of one time"),
    ({"weights": ["heavy"] * 90}, "must hold numbers"),
    ({"groups": "a", "time": "b"}, "groups or time, not both"),
    ({"keep": ["z"]}, "z"),
    ({"costs": {"a": 2.0}}, "costs need a budget"),
    ({"budget": 3.0, "k": 2}, "budget takes the place of k"),
    ({"missing": "mean"}, "missing must be"),
    ({"n_jobs": 0}, "n_jobs must be at least 1"),
    ({"k": 99}, "`k`=99 is more than the 7"),
]


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_what_is_wrong_is_said_in_one_sentence(frame, more, message):
    with pytest.raises((ValueError, TypeError, TableError), match=message):
        select(frame[[*FEATURES, "ill"]], **{"target": "ill", "k": 2 if "budget" not in more else "auto", **more})


def test_weights_of_an_npz_file_keep_their_centre(frame, tmp_path):
    numbers = frame[["a", "b", "weight"]].to_numpy()
    np.savez(tmp_path / "t.npz", X=numbers, y=frame["ill"].to_numpy(dtype=str), names=np.array(["a", "b", "weight"]))
    study = select(tmp_path / "t.npz", k=1, weights="weight", permutations=0)
    np.testing.assert_allclose(study.rows.sample_weight, frame["weight"], rtol=1e-6)


def test_a_frame_without_columns_is_refused():
    with pytest.raises(TableError, match="The table has no columns"):
        select(pandas.DataFrame(), "ill")


def test_a_selection_that_hangs_on_the_random_state_is_named():
    rng = np.random.default_rng(0)
    study = select(rng.normal(size=(40, 300)), np.repeat([0, 1], 20), k=5, permutations=0)
    (alert,) = [alert for alert in study.alerts if alert.kind == "seed"]
    assert set(alert.columns) < set(study.selection.names)
