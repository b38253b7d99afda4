"""Save and load models as a user of the library does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.persistence import ModelFileError, load_model, save_model
from tamiz.tables import TableEncoder


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(50, 10, size=(60, 6))
    return X, np.where(X[:, 4] > 50, "ill", "well")


def test_an_estimator_of_arrays(data, tmp_path):
    X, y = data
    estimator = E2EFSClassifier(2, random_state=0).fit(X, y)
    save_model(estimator, tmp_path / "m.tamiz")
    saved = load_model(tmp_path / "m.tamiz")
    kept = estimator.get_support(indices=True)
    assert saved.columns == [f"x{i}" for i in kept]
    assert saved.predict(X[:, kept]).tolist() == estimator.predict(X).tolist()


def test_an_estimator_of_named_columns_reads_them_in_any_order(data, tmp_path):
    X, _ = data
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    estimator = E2EFSRegressor(2, random_state=0).fit(frame, X[:, 4])
    save_model(estimator, tmp_path / "m.tamiz", target="size")
    saved = load_model(str(tmp_path / "m.tamiz"))
    assert saved.targets == ["size"]
    np.testing.assert_allclose(saved.predict(frame[list("fedcba")]), estimator.predict(frame), rtol=1e-5)


def test_a_pipeline_with_text_and_gaps(data, tmp_path):
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame.iloc[::7, 4] = np.nan
    frame["colour"] = np.where(y == "ill", "red", "blue")
    model = make_pipeline(TableEncoder(), E2EFSClassifier(3, random_state=0)).fit(frame, y)
    save_model(model, tmp_path / "m.tamiz")
    saved = load_model(tmp_path / "m.tamiz")
    assert saved.predict(frame).tolist() == model.predict(frame).tolist()
    save_model(saved, tmp_path / "again.tamiz")
    assert (tmp_path / "again.tamiz").read_bytes() == (tmp_path / "m.tamiz").read_bytes()


def test_what_cannot_be_saved_leaves_no_file(data, tmp_path):
    X, y = data
    for model in (
        LogisticRegression(max_iter=1000).fit(X, y),
        make_pipeline(StandardScaler(), E2EFSClassifier(2, random_state=0)).fit(X, y),
        E2EFSClassifier(2),
    ):
        with pytest.raises(ModelFileError, match="can be saved"):
            save_model(model, tmp_path / "m.tamiz")
    several = E2EFSRegressor(2, random_state=0).fit(X, X[:, :2])
    with pytest.raises(ModelFileError, match=r"not supported by the model format \(number of outputs\)"):
        save_model(several, tmp_path / "m.tamiz", target=["a", "b", "c"])
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ModelFileError, match="no file"):
        load_model(tmp_path / "none.tamiz")
    with pytest.raises(ModelFileError, match="is a folder"):
        load_model(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_is_no_model():
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        load_model("/dev/zero")


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read: File name too long"):
        load_model(tmp_path / ("x" * 300))
