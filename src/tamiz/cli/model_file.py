"""The fitted model as a file that is safe to load from a stranger: what it reads, how it normalises, its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._version import __version__
from tamiz.cli.container import pack, unpack
from tamiz.cli.encode import Encoder, Feature
from tamiz.cli.errors import UserError, listed, shorten
from tamiz.cli.table import Table
from tamiz.cli.target import TASKS, Target

#: Raised when the meaning of a field changes; files of later versions are refused.
VERSION = 1
NORMALIZATIONS = ("erf", "standard", "none")


@dataclass(frozen=True)
class Layer:
    """``activation(x @ weights.T + offset)``; ``activation`` is "none" or "relu"."""

    weights: np.ndarray
    offset: np.ndarray
    activation: str = "none"


@dataclass(frozen=True)
class Model:
    """A model that reads M features and predicts.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    target : str
        The name of what it predicts.
    classes : list of str
        The labels; empty for regression.
    features : list of Feature
        What it reads, in the order of the weights. ``Feature.column`` has no meaning here: names count.
    medians : ndarray of float32, shape (M,)
        What a missing number becomes.
    normalization, mean, deviation
        How a feature is normalised.
    layers : list of Layer
        One for a linear model.
    categories : dict of str to list of str
        For each column of text it reads, the values it was trained on; others are said aloud.
    """

    task: str
    target: str
    classes: list[str]
    features: list[Feature]
    medians: np.ndarray
    normalization: str
    mean: np.ndarray
    deviation: np.ndarray
    layers: list[Layer] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns of the table it reads."""
        return list(dict.fromkeys(feature.column_name for feature in self.features))

    @property
    def text_columns(self) -> list[str]:
        """Those of them that hold text."""
        return list(dict.fromkeys(f.column_name for f in self.features if f.category is not None))

    @property
    def is_linear(self) -> bool:
        """Whether there is one layer."""
        return len(self.layers) == 1

    def effects(self) -> np.ndarray:
        """For each feature the weight of its normalised value; with several outputs the largest."""
        weights = self.layers[0].weights
        return weights[np.abs(weights).argmax(axis=0), np.arange(weights.shape[1])].astype(np.float64)

    def encode(self, table: Table, warn: Callable[[str], None] = lambda sentence: None) -> np.ndarray:
        """The matrix (rows, M) of a table; text that was never seen and gaps are said aloud."""
        position = {name: index for index, name in enumerate(table.names)}
        place = {int(column): i for i, column in enumerate(table.number_columns)}
        matrix = np.zeros((table.n_rows, len(self.features)), dtype=np.float32)
        refused = []
        self._say_unknown(table, position, warn)
        for i, feature in enumerate(self.features):
            column = position[feature.column_name]
            if feature.category is not None:
                text = table.texts[column]
                if feature.category in text.categories:
                    matrix[:, i] = text.codes == text.categories.index(feature.category)
            elif column in place:
                matrix[:, i] = _column(table.numbers, place[column])
            else:
                refused.append(feature.column_name)
        if refused:
            raise UserError(f"The model needs numbers in {listed(refused)}, but the table has text or dates there.")
        infinite = np.isinf(matrix)
        if infinite.any():
            row, i = np.argwhere(infinite)[0]
            name = self.features[int(i)].column_name
            raise UserError(
                f"Column {shorten(name)} holds an infinity or a number beyond 3.4e38 in data row {row + 1:,}."
            )
        gaps = np.isnan(matrix)
        if gaps.any():
            warn(f"Imputed: {int(gaps.sum()):,} missing numbers, by the medians of the table the model was made from.")
            np.copyto(matrix, self.medians, where=gaps)
        return matrix

    def _say_unknown(self, table: Table, position: dict[str, int], warn: Callable[[str], None]) -> None:
        """Say which values the model was never shown."""
        for name in self.text_columns:
            known = set(self.categories.get(name, ()))
            strange = [value for value in table.texts[position[name]].categories if value not in known]
            if strange:
                warn(f"Column {shorten(name)}: the model never saw {listed(strange)}; these count as no category.")

    def scores(self, matrix: np.ndarray) -> np.ndarray:
        """What the last layer gives, shape (rows, outputs)."""
        z = normalize(matrix, self.normalization, self.mean, self.deviation)
        for layer in self.layers:
            z = z @ layer.weights.T + layer.offset
            if layer.activation == "relu":
                z = np.maximum(z, 0)
        return z

    def predict(self, matrix: np.ndarray) -> np.ndarray:
        """Class labels, or numbers."""
        scores = self.scores(matrix)
        if self.task == "regression":
            return scores[:, 0]
        labels = np.array(self.classes)
        return labels[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]

    @classmethod
    def from_estimator(cls, estimator: Any, encoder: Encoder, target: Target) -> Model:
        """The model of a fitted estimator, linear or a network of dense layers, with what it needs of the encoder."""
        kept = estimator.selection_.indices
        medians = np.zeros(kept.size, dtype=np.float32)
        numeric = kept < encoder.n_numeric
        medians[numeric] = encoder.medians[kept[numeric]]
        statistics = estimator.statistics_
        text = {encoder.features[index].column for index in kept if encoder.features[index].category is not None}
        names = {feature.column: feature.column_name for feature in encoder.features}
        return cls(
            task=target.task,
            target=target.name,
            classes=[str(label) for label in estimator.classes_] if target.task == "classification" else [],
            features=[encoder.features[index] for index in kept],
            medians=medians,
            normalization=estimator.normalize or "none",
            mean=np.zeros(kept.size) if statistics is None else np.asarray(statistics.mean, dtype=np.float64),
            deviation=np.ones(kept.size) if statistics is None else np.asarray(statistics.deviation, dtype=np.float64),
            layers=_layers(estimator),
            categories={names[column]: sorted(c for i, c in encoder.known if i == column) for column in sorted(text)},
        )

    def to_bytes(self) -> bytes:
        """The content of the file."""
        header = {
            "format": "tamiz-model",
            "version": VERSION,
            "written_by": __version__,
            "task": self.task,
            "target": self.target,
            "classes": self.classes,
            "features": [{"column": f.column_name, "category": f.category} for f in self.features],
            "normalization": self.normalization,
            "categories": self.categories,
            "activations": [layer.activation for layer in self.layers],
        }
        arrays = {"medians": self.medians, "mean": self.mean, "deviation": self.deviation}
        for number, layer in enumerate(self.layers):
            arrays[f"weights_{number}"], arrays[f"offset_{number}"] = layer.weights, layer.offset
        return pack(header, arrays)

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the file") -> Model:
        """The inverse of :meth:`to_bytes`; whatever does not fit together is a :class:`UserError`."""
        header, arrays = unpack(content, name)
        if header.get("format") != "tamiz-model":
            raise UserError(f"{name} is no tamiz model.")
        if header.get("version") != VERSION:
            raise UserError(
                f"{name} has version {header.get('version')!r:.20}; this tamiz reads {VERSION}. Update tamiz."
            )
        try:
            return _build(header, arrays)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise UserError(f"{name} is malformed ({type(error).__name__}: {str(error)[:80]}).") from None


def _layers(estimator: Any) -> list[Layer]:
    if hasattr(estimator, "module_"):
        from tamiz.cli.network_layers import layers_of

        return layers_of(estimator)
    return [Layer(np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_))]


def _column(numbers: Any, position: int) -> np.ndarray:
    return numbers[:, [position]].toarray().ravel() if sp.issparse(numbers) else numbers[:, position]


def normalize(matrix: np.ndarray, kind: str, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Normalised values; a column that was constant in training gives 0.

    Examples
    --------
    >>> normalize(np.array([[3.0, 1.0]]), "standard", np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [[1.0, 0.0]]
    """
    values = matrix.astype(np.float64)
    if kind == "none":
        return values
    varies = deviation > 0
    z = np.where(varies, (values - mean) / np.where(varies, deviation, 1.0), 0.0)
    if kind == "erf":
        from scipy.special import erf

        return erf(z / math.sqrt(2.0))
    return z


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _texts(values: Any, what: str) -> list[str]:
    _check(isinstance(values, list) and all(isinstance(value, str) for value in values), what)
    return values


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    """A model from what a file claims, each claim checked."""
    task, classes = header["task"], _texts(header["classes"], "classes")
    _check(task in TASKS, "task")
    _check(isinstance(header["target"], str), "target")
    _check(len(classes) >= 2 if task == "classification" else not classes, "number of classes")
    features = []
    for entry in header["features"]:
        column, category = entry["column"], entry["category"]
        _check(isinstance(column, str) and (category is None or isinstance(category, str)), "features")
        features.append(Feature(-1, column, category))
    n_features = len(features)
    _check(n_features >= 1, "features")
    _check(
        len({(f.column_name, f.category is None) for f in features}) == len({f.column_name for f in features}), "kinds"
    )
    _check(header["normalization"] in NORMALIZATIONS, "normalization")
    for name in ("medians", "mean", "deviation"):
        _check(arrays[name].shape == (n_features,) and bool(np.isfinite(arrays[name]).all()), name)
    layers = []
    width = n_features
    activations = _texts(header["activations"], "activations")
    _check(1 <= len(activations) <= 64, "number of layers")
    for number, activation in enumerate(activations):
        weights, offset = arrays[f"weights_{number}"], arrays[f"offset_{number}"]
        _check(activation in ("none", "relu"), "activation")
        _check(weights.ndim == 2 and weights.shape[1] == width and offset.shape == (weights.shape[0],), "layer")
        _check(bool(np.isfinite(weights).all() and np.isfinite(offset).all()), "weights")
        layers.append(Layer(weights, offset, activation))
        width = weights.shape[0]
    outputs = {1} if task == "regression" else ({1, 2} if len(classes) == 2 else {len(classes)})
    _check(width in outputs, "number of outputs")
    return Model(
        task,
        header["target"],
        classes,
        features,
        arrays["medians"],
        header["normalization"],
        arrays["mean"],
        arrays["deviation"],
        layers,
        {str(name): _texts(values, "categories") for name, values in header["categories"].items()},
    )
