"""Saved models: predict as the estimator does; files whose parts do not fit together raise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.persistence import ModelFileError, SavedModel, pack_model_file, unpack_model_file
from tamiz.tables import DataTable, TableEncoder, TableError, TextColumn


def make_table(n_rows=90, sparse=False):
    generator = np.random.default_rng(0)
    numbers = generator.normal(50, 20, size=(n_rows, 7)).astype(np.float32)
    names = [f"n{i}" for i in range(7)] + ["colour"]
    texts = {}
    if sparse:
        numbers = sp.csr_matrix(np.where(generator.random(numbers.shape) < 0.5, 0, numbers))
        names.pop()
    else:
        numbers[generator.random(numbers.shape) < 0.1] = np.nan
        texts = {7: TextColumn.from_values(generator.choice(["red", "green", "blue"], n_rows).tolist())}
    return DataTable(Path("t.csv"), "csv", names, n_rows, numbers, np.arange(7), texts)


def fitted(y, task, sparse=False, n_features=5, **parameters):
    table = make_table(len(y), sparse)
    encoder = TableEncoder().fit(table)
    matrix = encoder.transform(table)
    kind = E2EFSClassifier if task == "classification" else E2EFSRegressor
    estimator = kind(n_features, random_state=0, **parameters).fit(matrix, y)
    model = SavedModel.from_estimator(estimator, encoder, "goal")
    return table, matrix, estimator, model


def classes(n_classes, n_rows=90):
    return np.array([f"class {i % n_classes}" for i in range(n_rows)])


@pytest.mark.parametrize("normalize", ["erf", "erf2", "standard", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_comes_back_the_same(normalize, n_classes):
    parameters = {} if normalize else {"training": Training(learning_rate=1e-5)}
    table, matrix, estimator, model = fitted(
        classes(n_classes), "classification", normalize=normalize, n_features=10, **parameters
    )
    again = SavedModel.from_bytes(model.to_bytes())
    encoded = again.encode(table)
    np.testing.assert_array_equal(encoded, matrix[:, estimator.selection_.indices])
    expected = estimator.decision_function(matrix).reshape(len(matrix), -1)
    found = again.scores(encoded)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * max(1, np.abs(expected).max()))
    np.testing.assert_array_equal(again.predict(encoded), estimator.predict(matrix))


def test_a_regressor_comes_back_the_same():
    table, matrix, estimator, model = fitted(np.random.default_rng(1).normal(1e4, 300, 90), "regression")
    found = SavedModel.from_bytes(model.to_bytes()).predict(model.encode(table))
    np.testing.assert_allclose(found, estimator.predict(matrix), rtol=1e-6)


@pytest.mark.parametrize(("target", "names"), [("goal", ["goal0", "goal1"]), (["a", "b"], ["a", "b"])])
def test_several_targets_come_back_the_same(target, names):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    estimator = E2EFSRegressor(2, random_state=0).fit(X, np.column_stack([X[:, 1], 1e3 - X[:, 3]]))
    saved = SavedModel.from_bytes(SavedModel.from_estimator(estimator, target=target).to_bytes())
    assert saved.targets == names
    found = saved.predict(X[:, estimator.selection_.indices])
    np.testing.assert_allclose(found, estimator.predict(X), rtol=1e-5, atol=1e-5)
    with pytest.raises(ModelFileError, match="number of outputs"):
        SavedModel.from_estimator(estimator, target=["a", "b", "c"])


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "softmax"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_estimator(loss, n_classes):
    table, matrix, estimator, model = fitted(classes(n_classes), "classification", loss=loss)
    again = SavedModel.from_bytes(model.to_bytes())
    assert again.gives_probabilities
    np.testing.assert_allclose(again.probabilities(table), estimator.predict_proba(matrix), atol=1e-5)


def test_several_labels_for_each_row_are_not_supported():
    X = np.random.default_rng(0).normal(size=(60, 5))
    estimator = E2EFSClassifier(2, random_state=0).fit(X, (X[:, :3] > 0).astype(int))
    with pytest.raises(ModelFileError, match="several labels"):
        SavedModel.from_estimator(estimator)


def test_a_sparse_table_gives_the_same():
    table, matrix, estimator, model = fitted(classes(2), "classification", sparse=True)
    np.testing.assert_allclose(
        model.scores(model.encode(table)).ravel(), estimator.decision_function(matrix), rtol=1e-5, atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:The network removes")  # too short a ramp to learn anything
@pytest.mark.parametrize(("task", "n_classes"), [("classification", 2), ("classification", 3), ("regression", 0)])
def test_a_network_comes_back_the_same_and_needs_no_torch(task, n_classes):
    pytest.importorskip("torch")
    y = classes(n_classes) if n_classes else np.random.default_rng(1).normal(1e4, 300, 90)
    table, matrix, estimator, model = fitted(
        y, task, network="mlp", training=Training(ramp_steps=50, refinement_epochs=2)
    )
    assert len(model.layers) > 1
    again = SavedModel.from_bytes(model.to_bytes())
    encoded = again.encode(table)
    if task == "classification":
        expected = estimator.decision_function(matrix).reshape(90, -1)
        np.testing.assert_allclose(again.scores(encoded), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(again.scores(encoded)[:, 0], estimator._scores(matrix)[:, 0], rtol=1e-5, atol=1e-5)


def test_the_file_is_the_same_for_the_same_model():
    assert fitted(classes(2), "classification")[3].to_bytes() == fitted(classes(2), "classification")[3].to_bytes()


def test_unknown_categories_gaps_and_wrong_kinds():
    model = fitted(classes(3), "classification", n_features=10)[3]
    assert model.text_columns == ["colour"]
    strange = make_table()
    strange.texts[7] = TextColumn.from_values(["violet"] * 89 + ["red"])
    said = []
    encoded = model.encode(strange, said.append)
    text = [i for i, feature in enumerate(model.features) if feature.category is not None]
    assert not encoded[:89, text].any()
    assert any("'violet'" in sentence for sentence in said)
    assert any("missing numbers" in sentence for sentence in said)
    strange.numbers[0, 0] = np.inf
    with pytest.raises(TableError, match=r"Column 'n0' holds an infinity .* in data row 1"):
        model.encode(strange)
    strange.number_columns = np.arange(1, 7)
    strange.numbers = strange.numbers[:, 1:]
    with pytest.raises(TableError, match="needs numbers in 'n0'"):
        model.encode(strange)


def test_a_column_of_unknown_values_raises():
    model = fitted(classes(3), "classification", n_features=10)[3]
    strange = make_table()
    strange.texts[7] = TextColumn.from_values(["Rot", "Blau", None] * 30)
    with pytest.raises(TableError, match=r"knows none of its values \('Blau', 'Rot'\); it was made from 'blue'"):
        model.encode(strange)


def changed(change):
    header, arrays = unpack_model_file(fitted(classes(3), "classification")[3].to_bytes())
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
    with pytest.raises(ModelFileError, match="no tamiz model"):
        SavedModel.from_bytes(pack_model_file({"format": "other"}, {}))


def test_a_column_of_text_without_values_and_one_of_numbers():
    model = fitted(classes(3), "classification", n_features=10)[3]
    table = make_table()
    text = [i for i, feature in enumerate(model.features) if feature.category is not None]
    del table.texts[7]
    table.number_columns = np.arange(8)
    table.numbers = np.column_stack([table.numbers, np.full(90, np.nan, dtype=np.float32)])
    assert not model.encode(table)[:, text].any()
    table.numbers[0, 7] = 1
    with pytest.raises(TableError, match="needs text in 'colour'"):
        model.encode(table)


def test_an_additive_model_comes_back_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    X[:, 4] = rng.integers(0, 3, size=150)  # few values: a knot at each
    y = np.where(np.abs(X[:, 1]) > 0.7, "out", "in")
    clf = E2EFSClassifier(
        3, network="additive", training=Training(ramp_steps=300, refinement_epochs=3), random_state=0
    ).fit(X, y)
    saved = SavedModel.from_bytes(SavedModel.from_estimator(clf).to_bytes())
    kept = X[:, clf.selection_.indices]
    np.testing.assert_allclose(saved.scores(kept)[:, 0], clf.decision_function(X), atol=1e-4)
    assert saved.predict(kept).tolist() == clf.predict(X).tolist()
    far = 100 * kept  # beyond the outer knots a curve is constant
    wide = np.zeros((150, 6))
    wide[:, clf.selection_.indices] = far
    np.testing.assert_allclose(saved.scores(far)[:, 0], clf.decision_function(wide), atol=1e-4)


def test_a_model_file_has_the_normalisation_of_the_fit_not_the_parameter():
    X = np.random.default_rng(0).normal(size=(80, 6))
    clf = E2EFSClassifier(2, training=Training(ramp_steps=300), random_state=0).fit(X, X[:, 2] > 0)
    expected = clf.decision_function(X)
    clf.set_params(normalize="standard")
    saved = SavedModel.from_bytes(SavedModel.from_estimator(clf).to_bytes())
    np.testing.assert_allclose(saved.scores(X[:, clf.get_support()])[:, 0], expected, atol=1e-5)
