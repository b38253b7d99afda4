"""Predict with a saved model: read M features, scale them, apply its layers; numpy is all it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tamiz._version import __version__
from tamiz.core.losses import LOSSES, get_loss
from tamiz.persistence.container import (
    ModelFileError,
    check_claim,
    malformed_error,
    pack_model_file,
    unpack_model_file,
)
from tamiz.persistence.layers import DenseLayer, extract_layers
from tamiz.preprocessing.exact import DEVIATIONS, normalize_exact
from tamiz.tables.encode import Feature, TableEncoder, collect_values
from tamiz.tables.errors import TableError
from tamiz.tables.frames import as_table
from tamiz.tables.messages import discard, list_some, quote
from tamiz.tables.target import TARGET_TASKS

#: Raised when the meaning of a field changes; files of other versions raise an error.
MODEL_VERSION = 1
_NORMALIZATIONS = (*DEVIATIONS, "none")
_ACTIVATIONS = ("none", "relu", "square")


@dataclass(frozen=True)
class SavedModel:
    """Hold a model that reads M features and predicts; numpy is all it needs.

    Parameters
    ----------
    task : {"classification", "regression"}
        What it predicts.
    targets : list of str
        Name of the target; for regression there may be several, one for each output.
    classes : list of str
        Class labels; empty for regression.
    loss : str
        Name of the loss it was trained with, which says whether scores can be turned into probabilities.
    features : list of Feature
        What it reads, in the order of the weights; columns are found by their names.
    medians : ndarray of float64, shape (M,)
        Replacement of missing numbers.
    normalization : {"erf", "erf2", "standard", "none"}
        How features are scaled.
    mean, deviation : ndarray, shape (M,)
        Mean and standard deviation of each feature in the training data.
    layers : list of DenseLayer
        One for a linear model.
    categories : dict of str to list of str, default={}
        Values of each column of text in the training data; others are reported.
    na_values : list of str or None, default=None
        Cells that meant a missing value in the file it was made from; None stands for the usual words.
    identifiers : list of str, default=[]
        Columns that name the rows; predictions are written beside them where a table has them.
    """

    task: str
    targets: list[str]
    classes: list[str]
    loss: str
    features: list[Feature]
    medians: np.ndarray
    normalization: str
    mean: np.ndarray
    deviation: np.ndarray
    layers: list[DenseLayer]
    categories: dict[str, list[str]] = field(default_factory=dict)
    na_values: list[str] | None = None
    identifiers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        check_claim(self.task in TARGET_TASKS, "task")
        check_claim(self.loss in LOSSES and LOSSES[self.loss].task == self.task, "loss")
        check_claim(0 < len(set(self.targets)) == len(self.targets), "target")
        check_claim(len(self.targets) == 1 or self.task == "regression", "target")
        check_claim(len(self.classes) >= 2 if self.task == "classification" else not self.classes, "number of classes")
        kinds = {(feature.column_name, feature.category is None) for feature in self.features}
        check_claim(bool(kinds) and len(kinds) == len(self.columns), "features")
        check_claim(self.normalization in _NORMALIZATIONS, "normalization")
        width = len(self.features)
        for name, array in (("medians", self.medians), ("mean", self.mean), ("deviation", self.deviation)):
            check_claim(array.shape == (width,) and bool(np.isfinite(array).all()), name)
        check_claim(1 <= len(self.layers) <= 64, "number of layers")
        for layer in self.layers:
            check_claim(layer.activation in _ACTIVATIONS, "activation")
            check_claim(layer.weights.ndim == 2 and layer.weights.shape[1] == width, "shape of weights")
            check_claim(layer.offset.shape == (layer.weights.shape[0],), "shape of offset")
            check_claim(bool(np.isfinite(layer.weights).all() and np.isfinite(layer.offset).all()), "weights")
            width = layer.weights.shape[0]
        n_classes = len(self.classes)
        check_claim(
            width in ({len(self.targets)} if n_classes == 0 else {1, 2} if n_classes == 2 else {n_classes}),
            "number of outputs",
        )

    @property
    def columns(self) -> list[str]:
        """Names of the columns it reads."""
        return list(dict.fromkeys(feature.column_name for feature in self.features))

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns it reads that hold text."""
        return list(dict.fromkeys(f.column_name for f in self.features if f.category is not None))

    @property
    def is_linear(self) -> bool:
        """Check whether there is one layer."""
        return len(self.layers) == 1

    @property
    def gives_probabilities(self) -> bool:
        """Check whether the loss turns scores into probabilities."""
        return get_loss(self.loss).probabilities is not None

    def effects(self) -> np.ndarray:
        """Return the weight of each scaled feature; of several outputs the one of largest size."""
        weights = self.layers[0].weights
        return weights[np.abs(weights).argmax(axis=0), np.arange(weights.shape[1])].astype(np.float64)

    def encode(self, X: Any, report: Callable[[str], None] = discard) -> np.ndarray:
        """Return the features of a table as a matrix.

        Parameters
        ----------
        X : DataTable or data frame
            A table with the columns that the model reads, in any order.
        report : callable, default=discard
            Called with a message about values that the model was not trained on, and about missing numbers.

        Returns
        -------
        ndarray of float64, shape (n_rows, M)
        """
        table = as_table(X, self.text_columns)
        matrix = collect_values(table, self.features)
        position = {name: index for index, name in enumerate(table.names)}
        for name in self.text_columns:
            known = set(self.categories.get(name, ()))
            text = table.texts.get(position[name])  # None for a column without any value
            unknown = [] if text is None else [value for value in text.categories if value not in known]
            if text is not None and unknown and len(unknown) == len(text.categories):
                raise TableError(
                    f"Column {quote(name)}: the model knows none of its values ({list_some(unknown)}); "
                    f"it was made from {list_some(sorted(known))}. Spell them in the same way."
                )
            if unknown:
                report(f"Column {quote(name)}: the model never saw {list_some(unknown)}; these count as no category.")
        infinite = np.argwhere(np.isinf(matrix))
        if infinite.size:
            name = self.features[int(infinite[0, 1])].column_name
            raise TableError(
                f"Column {quote(name)} holds an infinity or a number beyond 3.4e38 in data row {infinite[0, 0] + 1:,}."
            )
        gaps = np.isnan(matrix)
        if gaps.any():
            report(
                f"Imputed: {int(gaps.sum()):,} missing numbers, by the medians of the table the model was made from."
            )
            np.copyto(matrix, self.medians, where=gaps)
        return matrix

    def scores(self, X: Any) -> np.ndarray:
        """Return the outputs of the last layer, shape (n_rows, n_outputs).

        Parameters
        ----------
        X : ndarray of shape (n_rows, M), DataTable or data frame
            An array holds the features in the order of ``features``; other tables are encoded first.
        """
        z = self._scale(X if isinstance(X, np.ndarray) else self.encode(X))
        for layer in self.layers:
            z = z @ layer.weights.T + layer.offset
            if layer.activation == "relu":
                z = np.maximum(z, 0)
            elif layer.activation == "square":
                z = z * z
        return z

    def _scale(self, matrix: np.ndarray) -> np.ndarray:
        """Scale the features; a column that was constant in training gives 0."""
        kind = None if self.normalization == "none" else self.normalization
        return normalize_exact(matrix.astype(np.float64), self.mean, self.deviation, kind)

    def probabilities(self, X: Any) -> np.ndarray:
        """Return the probability of each class, shape (n_rows, n_classes); ``X`` as for :meth:`scores`.

        Raises
        ------
        ValueError
            If the loss gives no probabilities (``gives_probabilities`` is False).
        """
        return get_loss(self.loss).class_probabilities(self.scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return class labels as text, or numbers; ``X`` as for :meth:`scores`.

        Numbers of several targets have the shape (n_rows, n_targets).
        """
        scores = self.scores(X)
        if self.task == "regression":
            return scores[:, 0] if len(self.targets) == 1 else scores
        labels = np.array(self.classes)
        return labels[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        encoder: TableEncoder | None = None,
        target: str | Sequence[str] = "y",
        na_values: list[str] | None = None,
    ) -> SavedModel:
        """Take what predicts out of a fitted estimator.

        Parameters
        ----------
        estimator : E2EFSClassifier or E2EFSRegressor
            Fitted; linear, or a network of dense layers.
        encoder : TableEncoder or None, default=None
            What encoded its training data; None if that was an array of numbers. Then columns without names are called
            x0, x1, ... and missing numbers are replaced by the mean.
        target : str or sequence of str, default="y"
            Name of the target. Several outputs have a name each; from a single name they are called y0, y1, ...
        na_values : list of str or None, default=None
            Cells that mean a missing value in the file of the training data; None stands for the usual words.

        Raises
        ------
        ModelFileError
            If the model is of a kind that the format does not support.
        """
        if getattr(estimator, "multilabel_", False):
            raise ModelFileError("Models of several labels for each row are not supported by the model format.")
        kept = estimator.selection_.indices
        statistics, missing = estimator.statistics_, getattr(estimator, "missing_", None)
        layers, centres = extract_layers(estimator), np.zeros(kept.size)
        n_read = kept.size if missing is None else kept.size + len(missing.indicated)
        mean = np.zeros(n_read) if statistics is None else np.asarray(statistics.mean, dtype=np.float64)
        deviation = np.ones(n_read) if statistics is None else np.asarray(statistics.deviation, dtype=np.float64)
        if encoder is None:
            names = getattr(estimator, "feature_names_in_", None)
            features = [Feature(int(i), f"x{i}" if names is None else str(names[i])) for i in kept]
            medians, categories = mean[: kept.size], {}
        else:
            features = [encoder.features_[i] for i in kept]
            numeric = kept < encoder.medians_.size
            medians = np.zeros(kept.size)
            centres[numeric] = encoder.centres_[kept[numeric]]
            medians[numeric] = encoder.medians_[kept[numeric]] + centres[numeric]
            text = sorted({(f.column, f.column_name) for f in features if f.category is not None})
            categories = {name: sorted(encoder.categories_[name]) for _, name in text}
        if missing is not None:
            is_number = np.array([feature.category is None for feature in features])
            medians = np.where(is_number, missing.fill + centres, 0.0)
            features = [*features, *(replace(features[i], missing=True) for i in missing.indicated)]
            gaps = np.zeros(n_read - kept.size)
            medians, centres = np.concatenate([medians, gaps]), np.concatenate([centres, gaps])
        if statistics is None:  # the first layer reads the numbers as they are
            first = layers[0]
            layers = [DenseLayer(first.weights, first.offset - first.weights @ centres, first.activation), *layers[1:]]
        else:
            mean = mean + centres
        try:
            return cls(
                task="classification" if hasattr(estimator, "classes_") else "regression",
                targets=_name_targets(target, 1 if hasattr(estimator, "classes_") else len(layers[-1].offset)),
                classes=[str(label) for label in getattr(estimator, "classes_", ())],
                loss=estimator.loss_,
                features=features,
                medians=medians,
                normalization=estimator.normalize or "none",
                mean=mean,
                deviation=deviation,
                layers=layers,
                categories=categories,
                na_values=na_values,
            )
        except ValueError as error:
            raise ModelFileError(f"This model is not supported by the model format ({error}).") from None

    def to_bytes(self) -> bytes:
        """Return the content of the file; the same for the same model."""
        header = {
            "format": "tamiz-model",
            "version": MODEL_VERSION,
            "written_by": __version__,
            "task": self.task,
            "target": self.targets[0] if len(self.targets) == 1 else self.targets,
            "classes": self.classes,
            "loss": self.loss,
            "features": [_describe(feature) for feature in self.features],
            "normalization": self.normalization,
            "categories": self.categories,
            "na_values": self.na_values,
            "identifiers": self.identifiers,
            "activations": [layer.activation for layer in self.layers],
        }
        arrays = {"medians": self.medians, "mean": self.mean, "deviation": self.deviation}
        for number, layer in enumerate(self.layers):
            arrays[f"weights_{number}"], arrays[f"offset_{number}"] = layer.weights, layer.offset
        return pack_model_file(header, arrays)

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the file") -> SavedModel:
        """Build a model from the content of a file; raise ModelFileError if anything does not fit together."""
        header, arrays = unpack_model_file(content, name)
        if header.get("format") != "tamiz-model":
            raise ModelFileError(f"{name} is no tamiz model. Give the model.tamiz that tamiz select wrote.")
        if header.get("version") != MODEL_VERSION:
            raise ModelFileError(
                f"{name} has version {header.get('version')!r:.20}; this tamiz reads {MODEL_VERSION}. "
                "Update tamiz, or select again."
            )
        try:
            features = []
            for entry in header["features"]:
                column, category = entry["column"], entry["category"]
                check_claim(isinstance(column, str) and (category is None or isinstance(category, str)), "features")
                missing = entry.get("missing", False)
                check_claim(isinstance(missing, bool) and not (missing and category is not None), "features")
                features.append(Feature(-1, column, category, missing))
            activations = _texts(header["activations"], "activations")
            target = header["target"]
            check_claim(isinstance(target, str) or len(target) > 1, "target")
            return cls(
                task=header["task"],
                targets=[target] if isinstance(target, str) else _texts(target, "target"),
                classes=_texts(header["classes"], "classes"),
                loss=header["loss"],
                features=features,
                medians=arrays["medians"],
                normalization=header["normalization"],
                mean=arrays["mean"],
                deviation=arrays["deviation"],
                layers=[
                    DenseLayer(arrays[f"weights_{number}"], arrays[f"offset_{number}"], activation)
                    for number, activation in enumerate(activations)
                ],
                categories={str(key): _texts(values, "categories") for key, values in header["categories"].items()},
                na_values=None if header.get("na_values") is None else _texts(header["na_values"], "na_values"),
                identifiers=_texts(header.get("identifiers", []), "identifiers"),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise malformed_error(error, name) from None


def _name_targets(target: str | Sequence[str], n_targets: int) -> list[str]:
    if not isinstance(target, str):
        return list(target)
    return [target] if n_targets == 1 else [f"{target}{number}" for number in range(n_targets)]


def _describe(feature: Feature) -> dict[str, Any]:
    about = {"column": feature.column_name, "category": feature.category}
    return {**about, "missing": True} if feature.missing else about


def _texts(values: Any, what: str) -> list[str]:
    check_claim(isinstance(values, list) and all(isinstance(value, str) for value in values), what)
    return values
