"""Saved models and ONNX predict as the estimator does; files of former versions load; what does not fit together raises."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pandas
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, E2EFSRegressor, Selection, Training
from tamiz.persistence import ModelFileError, SavedModel, load_model, save_model, to_onnx
from tamiz.persistence.model import pack_model_file, unpack_model_file
from tamiz.tables import TableEncoder, TableError, read_table

SHORT = Training(ramp_steps=50, refinement_epochs=2)
FILES = Path(__file__).parent / "files"


@cache
def data():
    """Numbers with gaps, text, dates and seconds since 1970; targets of two and three classes, one and two numbers."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(50, 20, size=(90, 5)), columns=list("abcde"))
    frame["few"] = rng.integers(0, 3, 90)  # few values: a knot at each
    frame["when"] = pandas.date_range("2024-01-01", periods=90)
    frame["seconds"] = 1.7e9 + 3.0 * rng.permutation(90)
    frame["colour"] = rng.choice(["red", "green", "blue"], 90)
    total = frame["a"] + 20 * (frame["colour"] == "red") + rng.normal(0, 5, 90)
    frame.loc[::7, "a"] = np.nan
    return frame, {
        "two": np.where(total > 55, "ill", "well"),
        "three": np.digitize(total, [45, 65]).astype(str),
        "number": total.to_numpy() * 100 + 1e4,
        "numbers": np.column_stack([total, 1e3 - frame["b"]]),
    }


def fit(kind, **parameters):
    frame, targets = data()
    make = E2EFSClassifier if kind in ("two", "three") else E2EFSRegressor
    encoder = TableEncoder(impute="missing" not in parameters)
    return make_pipeline(encoder, make(6, random_state=0, **parameters)).fit(frame, targets[kind])


@cache
def saved_three():
    model = fit("three")
    return SavedModel.from_estimator(model[1], model[0])


def run_onnx(model, frame, path):
    to_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    frame = frame.assign(when=(frame["when"] - pandas.Timestamp(0)).dt.days)
    feed = {"numbers": frame[columns["numbers"]].to_numpy(float), "texts": frame[columns["texts"]].to_numpy(object)}
    found = session.run(None, {one.name: feed[one.name] for one in session.get_inputs()})
    return {one.name: values for one, values in zip(session.get_outputs(), found, strict=True)}


@pytest.mark.filterwarnings("ignore:The network removes")  # too short a ramp to learn anything
@pytest.mark.parametrize("kind", ["two", "three", "number", "numbers"])
@pytest.mark.parametrize(
    "parameters",
    [
        *({"network": name, "training": SHORT} for name in ("linear", "additive", "pairs", "mlp")),
        *({"loss": name} for name in ("logistic", "softmax")),
        *({"normalize": name} for name in ("erf2", "standard")),
        {"normalize": None, "training": Training(learning_rate=1e-5)},
        {"missing": "indicator", "training": SHORT},
    ],
    ids=lambda parameters: "-".join(str(value) for value in parameters.values() if isinstance(value, str | None)),
)
def test_a_file_and_a_graph_predict_as_the_estimator(kind, parameters, tmp_path):
    if "loss" in parameters and kind not in ("two", "three"):
        pytest.skip("a loss of classes")
    frame, _ = data()
    model = fit(kind, **parameters)
    save_model(model, tmp_path / "m.tamiz")
    saved = load_model(tmp_path / "m.tamiz")
    assert saved.to_bytes() == SavedModel.from_bytes(saved.to_bytes()).to_bytes()
    shuffled = frame[frame.columns[::-1]]  # columns are found by their names
    graph = run_onnx(saved, frame, tmp_path / "m.onnx")
    if kind in ("two", "three"):
        scores = model.decision_function(frame).reshape(90, -1)
        # The engines compute in float32; a gap filled with a value at a knot of a steep curve shows it.
        scale = (1e-4 if parameters.get("network") in ("additive", "pairs") else 1e-5) * max(1, np.abs(scores).max())
        np.testing.assert_allclose(saved.scores(shuffled), scores, atol=scale)
        np.testing.assert_allclose(saved.probabilities(shuffled), model.predict_proba(frame), atol=scale)
        np.testing.assert_allclose(graph["scores"], saved.scores(frame), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(graph["probabilities"], saved.probabilities(frame), atol=1e-5)
        assert saved.predict(shuffled).tolist() == graph["label"].tolist() == model.predict(frame).tolist()
    else:
        expected = model.predict(frame).reshape(90, -1)
        for found in (saved.predict(shuffled).reshape(90, -1), graph["prediction"]):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_files_of_former_versions_load(version):
    i = np.arange(60)
    frame = pandas.DataFrame({"dose": (i * 37 % 41) / 10, "noise": (i * 53 % 59) / 59.0})
    frame["colour"] = np.array(["red", "green", "blue"])[i * 7 % 3]
    saved = load_model(FILES / f"{version}.tamiz")
    assert saved.columns == ["dose", "noise", "colour"]
    expected = np.where(frame["dose"] + (frame["colour"] == "red") > 2.5, "ill", "well")
    assert np.mean(saved.predict(frame) == expected) > 0.95
    assert np.allclose(saved.scores(frame)[:3, 0], [0.99244, -1.043232, -0.837684], atol=1e-5)
    selection = Selection.from_json((FILES / f"{version}.json").read_text())
    assert selection.n_features_to_select == 3
    assert selection.history["loss"].size == 3


def test_estimators_of_arrays_sparse_tables_and_changed_parameters(tmp_path):
    X = np.random.default_rng(0).normal(50, 10, size=(60, 6))
    y = np.where(X[:, 4] > 50, "ill", "well")
    model = E2EFSClassifier(2, random_state=0).fit(X, y)
    expected = model.decision_function(X)
    model.set_params(normalize="standard")  # what counts is the normalisation of the fit
    save_model(model, tmp_path / "m.tamiz", target="state")
    saved = load_model(str(tmp_path / "m.tamiz"))
    kept = model.get_support(indices=True)
    assert (saved.columns, saved.targets) == ([f"x{i}" for i in kept], ["state"])
    np.testing.assert_allclose(saved.scores(X[:, kept])[:, 0], expected, atol=1e-5)
    lines = (
        f"{int(label == 'ill')} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row, label in zip(X, y)
    )
    (tmp_path / "t.svm").write_text("\n".join(lines))
    table = read_table(tmp_path / "t.svm")
    assert sp.issparse(table.numbers)
    sparse = make_pipeline(TableEncoder(), E2EFSClassifier(2, random_state=0)).fit(table, table.y)
    saved = SavedModel.from_estimator(sparse[1], sparse[0])
    np.testing.assert_allclose(saved.scores(table)[:, 0], sparse.decision_function(table), atol=1e-5)


@pytest.mark.parametrize("residual", [False, True])
def test_networks_of_torch_are_chains_of_layers(residual):
    nn = pytest.importorskip("torch.nn")

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first = nn.Linear(width, 4)
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
            self.last = nn.Linear(4, 1)

        def forward(self, x):
            x = self.first(x)
            return self.last(self.inner(x) + (x if residual else 0))

    X = np.random.default_rng(0).normal(size=(80, 6))
    model = E2EFSClassifier(3, network=lambda n_in, n_out: Block(n_in), training=SHORT, random_state=0).fit(
        X, X[:, 2] > 0
    )
    if residual:
        with pytest.raises(ModelFileError, match="no plain chain of layers"):
            SavedModel.from_estimator(model)
    else:
        saved = SavedModel.from_estimator(model)
        np.testing.assert_allclose(saved.scores(X[:, model.get_support()])[:, 0], model.decision_function(X), atol=1e-5)


def test_names_of_several_targets():
    model = fit("numbers")
    for target, names in (("goal", ["goal0", "goal1"]), (["a", "b"], ["a", "b"])):
        assert SavedModel.from_estimator(model[1], model[0], target).targets == names
    with pytest.raises(ModelFileError, match=r"not supported by the model format \(number of outputs\)"):
        SavedModel.from_estimator(model[1], model[0], ["a", "b", "c"])


def test_unknown_categories_gaps_and_wrong_kinds():
    saved = saved_three()
    frame = data()[0]
    text = [i for i, feature in enumerate(saved.features) if feature.category is not None]
    said = []
    encoded = saved.encode(frame.assign(colour=["violet"] * 89 + ["RED"]), said.append)
    assert not encoded[:89, text].any()
    assert encoded[89, text].sum() == 1  # another case is another spelling
    assert any("'violet'" in sentence for sentence in said)
    assert any("missing numbers" in sentence for sentence in said)
    assert not saved.encode(frame.assign(colour=None))[:, text].any()
    for wrong, message in (
        (frame.assign(a=np.inf), r"Column 'a' holds an infinity .* in data row 1"),
        (frame.assign(a="high"), "needs numbers in 'a'"),
        (frame.assign(colour=1.5), "needs text in 'colour'"),
        (frame.assign(colour="Rot"), r"knows none of its values \('Rot'\); it was made from 'blue'"),
        (frame.drop(columns="a"), r"lacks 1 column that the model needs: 'a'"),
    ):
        with pytest.raises(TableError, match=message):
            saved.encode(wrong)


def test_what_cannot_be_saved_leaves_no_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5))
    for model, message in (
        (LogisticRegression().fit(X, X[:, 0] > 0), "can be saved"),
        (make_pipeline(StandardScaler(), E2EFSClassifier(2, random_state=0)).fit(X, X[:, 0] > 0), "can be saved"),
        (E2EFSClassifier(2), "can be saved"),
        (E2EFSClassifier(2, random_state=0).fit(X, (X[:, :3] > 0).astype(int)), "several labels"),
    ):
        for write in (save_model, to_onnx):
            with pytest.raises(ModelFileError, match=message):
                write(model, tmp_path / "m.tamiz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.tamiz", "no file"),
        ("", "is a folder"),
        ("x" * 300, "cannot be read: File name too long"),
        ("/dev/zero", "a device"),
    ],
)
def test_files_that_are_no_files(tmp_path, name, message):
    if name.startswith("/dev") and not Path(name).exists():
        pytest.skip("needs /dev/zero")
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / name)


def changed(change):
    header, arrays = unpack_model_file(saved_three().to_bytes())
    change(header, arrays)
    return pack_model_file(header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(task="ranking"),
        lambda header, arrays: header.update(classes=["one"]),
        lambda header, arrays: header.update(classes=[1, 2, 3]),
        lambda header, arrays: header.update(classes=["a", "b", "c", "d"]),
        lambda header, arrays: header.update(target=["x", "y"]),
        lambda header, arrays: header.update(target=7),
        lambda header, arrays: header.update(loss="perceptron"),
        lambda header, arrays: header.update(loss="huber"),
        lambda header, arrays: header.update(loss=["logistic"]),
        lambda header, arrays: header.pop("loss"),
        lambda header, arrays: header.update(features=[]),
        lambda header, arrays: header.update(features=header["features"][:-1]),
        lambda header, arrays: header.update(features="abcde"),
        lambda header, arrays: header["features"][0].update(column=7),
        lambda header, arrays: header.update(normalization="exec"),
        lambda header, arrays: header.update(activations=["none"] * 2),
        lambda header, arrays: header.update(activations=[]),
        lambda header, arrays: header.update(activations=["os.system"]),
        lambda header, arrays: header.pop("task"),
        lambda header, arrays: header.update(categories={"colour": [1]}),
        lambda header, arrays: header.update(categories=["colour"]),
        lambda header, arrays: arrays.pop("weights_0"),
        lambda header, arrays: arrays.update(weights_0=arrays["weights_0"][:, :-1]),
        lambda header, arrays: arrays.update(weights_0=arrays["weights_0"] * np.float32(np.nan)),
        lambda header, arrays: arrays.update(medians=arrays["medians"][:2]),
        lambda header, arrays: arrays.update(offset_0=arrays["offset_0"][:1]),
        lambda header, arrays: arrays.update(mean=arrays["mean"] * np.inf),
    ],
)
def test_whatever_does_not_fit_together_raises(change):
    with np.errstate(all="ignore"):
        content = changed(change)
    with pytest.raises(ModelFileError, match="malformed"):
        SavedModel.from_bytes(content)


def test_other_versions_and_other_files_raise():
    with pytest.raises(ModelFileError, match=r"has version 2; this tamiz reads 1"):
        SavedModel.from_bytes(changed(lambda header, arrays: header.update(version=2)))
    with pytest.raises(ModelFileError, match="has version None"):
        SavedModel.from_bytes(pack_model_file({"format": "other"}, {}))
