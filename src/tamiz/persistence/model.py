"""Save fitted models to files that are safe to open, whoever wrote them, and load them without torch.

A model file is a safetensors file: arrays, and JSON in its metadata that says what the model reads, how it scales and what its
classes are. Nothing in a file is ever run.

Examples
--------
>>> import tempfile
>>> import pandas
>>> from sklearn.pipeline import make_pipeline
>>> from tamiz import E2EFSClassifier
>>> from tamiz.tables import TableEncoder
>>> frame = pandas.DataFrame({"age": [50.0, None, 70, 30] * 5, "colour": ["red", "blue", "red", "blue"] * 5})
>>> model = make_pipeline(TableEncoder(), E2EFSClassifier(n_features_to_select=1, random_state=0))
>>> _ = model.fit(frame, ["ill", "well", "ill", "well"] * 5)
>>> with tempfile.TemporaryDirectory() as folder:
...     save_model(model, folder + "/model.tamiz")
...     saved = load_model(folder + "/model.tamiz")
>>> saved.columns, saved.predict(frame[:3]).tolist()
(['colour'], ['ill', 'well', 'ill'])
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.files import write_atomic
from tamiz._utils.text import counted, discard, list_some, quote
from tamiz._version import __version__
from tamiz.core.losses import LOSSES, get_loss
from tamiz.errors import TableError, TamizError
from tamiz.rows.exact import DEVIATIONS, normalize_exact
from tamiz.rows.targets import TASKS
from tamiz.tables.encode import Feature, TableEncoder, collect_values
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import as_table

_LARGEST_FILE = 4 * 1024**3


def save_model(model: Any, path: str | os.PathLike[str], *, target: str | Sequence[str] = "y") -> None:
    """Save a fitted model.

    Parameters
    ----------
    model : SavedModel, E2EFSClassifier, E2EFSRegressor or Pipeline
        Fitted. A pipeline must be a :class:`~tamiz.tables.TableEncoder` and one of these estimators.
    path : path
        File to write; it appears whole or not at all.
    target : str or sequence of str, default="y"
        Name of the target, for the predictions; of several numbers per row one name each (from a single name: y0, y1, ...).

    See Also
    --------
    load_model : Load it again.
    """
    write_atomic(path, as_saved(model, target).to_bytes())


def as_saved(model: Any, target: str | Sequence[str]) -> SavedModel:
    """Take what predicts out of an estimator, or out of a pipeline of an encoder and an estimator."""
    if isinstance(model, SavedModel):
        return model
    steps: Sequence[Any] = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    encoder = steps[0] if isinstance(steps[0], TableEncoder) else None
    if len(steps) != (1 if encoder is None else 2) or not hasattr(steps[-1], "selection_"):
        raise ModelFileError(
            "Only fitted estimators of tamiz, alone or behind a TableEncoder, can be saved; "
            f"got {list_some([type(step).__name__ for step in steps])}."
        )
    return SavedModel.from_estimator(steps[-1], encoder, target)


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Load a model that :func:`save_model` or ``tamiz select`` wrote.

    Parameters
    ----------
    path : path
        The file; it may come from anybody, nothing in it is run.

    Returns
    -------
    SavedModel

    Raises
    ------
    ModelFileError
        If the file is no model, or is damaged.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise ModelFileError(f"{path} is a folder; name the model in it, such as {path / 'model.tamiz'}.")
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path} is no file but a device or a pipe, which may never end. Name a file.")
        if path.stat().st_size > _LARGEST_FILE:
            raise ModelFileError(f"{path.name} has {path.stat().st_size:,} bytes: too large for a model.")
        return SavedModel.from_bytes(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {path}.") from None
    except OSError as error:
        raise ModelFileError(f"{quote(path)} cannot be read: {error.strerror}.") from None


_START = b'{"__metadata__":{"tamiz":'
_NO_DIGEST = "0" * 64
_TYPES = ("float32", "float64", "int64")
_LARGEST_HEADER = 100_000_000  # safetensors reads no longer ones


class ModelFileError(TamizError, ValueError):
    """Raise if a file is no model, is damaged, or if a model cannot be written to a file."""


def pack_model_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Pack a header and arrays into the content of a file; the same for the same input.

    Examples
    --------
    >>> header, arrays = unpack_model_file(pack_model_file({"version": 1}, {"x": np.array([1.0, 2.0])}))
    >>> header, arrays["x"].tolist()
    ({'version': 1}, [1.0, 2.0])
    """
    # One entry of metadata only: safetensors writes several in an order that changes from run to run.
    text = json.dumps({"sha256": _NO_DIGEST, "header": header}, ensure_ascii=False, allow_nan=False)
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = require("safetensors.numpy", "cli", "A model file").save(tensors, {"tamiz": text})
    if int.from_bytes(content[:8], "little") > _LARGEST_HEADER:
        raise ModelFileError("The names of the columns and categories are too long for a model file.")
    return content.replace(_NO_DIGEST.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def unpack_model_file(content: bytes, name: str = "the file") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Unpack header and arrays of a file.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str, default="the file"
        Name of the file, for messages.

    Raises
    ------
    ModelFileError
        If the content is anything but a whole, unchanged model file.
    """
    if content[8 : 8 + len(_START)] != _START:
        raise ModelFileError(f"{name} is no tamiz model. Give the model.tamiz that tamiz select wrote.")
    end = 8 + int.from_bytes(content[:8], "little")
    try:
        if end > len(content):
            raise ValueError("the header is longer than the file")
        record = json.loads(json.loads(content[8:end])["__metadata__"]["tamiz"])
        digest, header = record["sha256"].encode(), record["header"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        digest, header = b"", None
    found = hashlib.sha256(content[:end].replace(digest, _NO_DIGEST.encode(), 1) if digest else b"")
    found.update(memoryview(content)[end:])
    if found.hexdigest().encode() != digest:
        raise ModelFileError(f"{name} is cut off or damaged: its checksum does not fit. Get it again.")
    # A checksum proves that a file is whole, not that it is honest: from here on nothing is taken for granted.
    with _refuse_malformed(name):
        arrays = require("safetensors.numpy", "cli", "A model file").load(content)
        _check(isinstance(header, dict), "header")
        for array in arrays.values():
            _check(array.dtype.name in _TYPES and array.ndim <= 2, "type or shape of an array")
    return header, arrays


@contextmanager
def _refuse_malformed(name: str) -> Iterator[None]:
    """Raise ModelFileError for whatever the content of a file that does not fit together raises."""
    fault = require("safetensors", "cli", "A model file").SafetensorError
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, fault) as error:
        detail = f"{type(error).__name__}: {str(error)[:80]}"
        raise ModelFileError(f"{name} is malformed ({detail}). Get it again.") from None


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


@dataclass(frozen=True)
class DenseLayer:
    """Compute ``activation(x @ weights.T + offset)``.

    Parameters
    ----------
    weights : ndarray, shape (n_outputs, n_inputs)
        The weights.
    offset : ndarray, shape (n_outputs,)
        The intercepts.
    activation : {"none", "relu", "square"}, default="none"
        Applied to the result.
    """

    weights: np.ndarray
    offset: np.ndarray
    activation: str = "none"


def extract_layers(model: Any) -> list[DenseLayer]:
    """Extract the layers of a trained model that give its ``scores``; raise ValueError for one that is no chain of layers."""
    if not hasattr(model, "affine_layers"):
        return [DenseLayer(model.coef, model.intercept)]
    layers = model.affine_layers()
    activations = getattr(model, "activations", ("relu",) * (len(layers) - 1))
    return [DenseLayer(w, b, kind) for (w, b), kind in zip(layers, (*activations, "none"), strict=True)]


#: Raised when the meaning of a field changes; files of other versions raise an error.
MODEL_VERSION = 1
_NORMALIZATIONS = (*DEVIATIONS, "none")
_ACTIVATIONS = ("none", "relu", "square")


@dataclass(frozen=True)
class SavedModel:
    """A model that reads M features and predicts; numpy is all it needs.

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
        _check(self.task in TASKS[1:], "task")
        _check(self.loss in LOSSES and LOSSES[self.loss].task == self.task, "loss")
        _check(0 < len(set(self.targets)) == len(self.targets), "target")
        _check(len(self.targets) == 1 or self.task == "regression", "target")
        _check(len(self.classes) >= 2 if self.task == "classification" else not self.classes, "number of classes")
        kinds = {(feature.column_name, feature.category is None) for feature in self.features}
        _check(bool(kinds) and len(kinds) == len(self.columns), "features")
        _check(self.normalization in _NORMALIZATIONS, "normalization")
        width = len(self.features)
        for name, array in (("medians", self.medians), ("mean", self.mean), ("deviation", self.deviation)):
            _check(array.shape == (width,) and bool(np.isfinite(array).all()), name)
        _check(1 <= len(self.layers) <= 64, "number of layers")
        for layer in self.layers:
            _check(layer.activation in _ACTIVATIONS, "activation")
            _check(layer.weights.ndim == 2 and layer.weights.shape[1] == width, "shape of weights")
            _check(layer.offset.shape == (layer.weights.shape[0],), "shape of offset")
            _check(bool(np.isfinite(layer.weights).all() and np.isfinite(layer.offset).all()), "weights")
            width = layer.weights.shape[0]
        n_classes = len(self.classes)
        n_outputs = {len(self.targets)} if n_classes == 0 else {1, 2} if n_classes == 2 else {n_classes}
        _check(width in n_outputs, "number of outputs")

    @property
    def columns(self) -> list[str]:
        """Names of the columns it reads."""
        return list(dict.fromkeys(feature.column_name for feature in self.features))

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns it reads that hold text."""
        return list(dict.fromkeys(f.column_name for f in self.features if f.category is not None))

    @property
    def gives_probabilities(self) -> bool:
        """Whether the loss turns scores into probabilities."""
        return get_loss(self.loss).probabilities is not None

    def encode(self, X: Any, report: Callable[[str], None] = discard) -> np.ndarray:
        """Encode a table as the matrix of the features.

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
        table = as_table(X, options=ReadOptions(columns=self.columns, texts=self.text_columns))
        position = {name: index for index, name in enumerate(table.names)}
        spelt = {position[name]: known for name, known in self.categories.items() if name in position}
        table = replace(table, texts={i: text.align(spelt.get(i, ())) for i, text in table.texts.items()})
        matrix = collect_values(table, self.features)
        matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
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
            n_gaps = counted(int(gaps.sum()), "missing number")
            report(f"Imputed: {n_gaps}, by the medians of the table the model was made from.")
            np.copyto(matrix, self.medians, where=gaps)
        return matrix

    def scores(self, X: Any) -> np.ndarray:
        """Compute the outputs of the last layer, shape (n_rows, n_outputs).

        Parameters
        ----------
        X : ndarray of shape (n_rows, M), DataTable or data frame
            An array holds the features in the order of ``features``; other tables are encoded first.
        """
        matrix = (X if isinstance(X, np.ndarray) else self.encode(X)).astype(np.float64)
        kind = None if self.normalization == "none" else self.normalization
        z = normalize_exact(matrix, self.mean, self.deviation, kind)
        for layer in self.layers:
            z = z @ layer.weights.T + layer.offset
            z = np.maximum(z, 0) if layer.activation == "relu" else z * z if layer.activation == "square" else z
        return z

    def probabilities(self, X: Any) -> np.ndarray:
        """Compute the probability of each class, shape (n_rows, n_classes); ``X`` as for :meth:`scores`.

        Raises
        ------
        ValueError
            If the loss gives no probabilities (``gives_probabilities`` is False).
        """
        return get_loss(self.loss).class_probabilities(self.scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels as text, or numbers; ``X`` as for :meth:`scores`.

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
        n_read = kept.size if missing is None else kept.size + len(missing.indicated)
        mean = np.zeros(n_read) if statistics is None else np.asarray(statistics.mean, dtype=np.float64)
        deviation = np.ones(n_read) if statistics is None else np.asarray(statistics.deviation, dtype=np.float64)
        if encoder is None:
            names = getattr(estimator, "feature_names_in_", None)
            features = [Feature(int(i), f"x{i}" if names is None else str(names[i])) for i in kept]
            medians, categories = mean[: kept.size], {}
        else:
            features = [encoder.features_[i] for i in kept]
            of_numbers = encoder.medians_  # the features of text are behind them
            medians = np.append(of_numbers, 0.0)[np.minimum(kept, of_numbers.size)]
            text = sorted({(f.column, f.column_name) for f in features if f.category is not None})
            categories = {name: sorted(encoder.categories_[name]) for _, name in text}
        if missing is not None:
            is_number = np.array([feature.category is None for feature in features])
            medians = np.where(is_number, missing.fill, 0.0)
            features = [*features, *(replace(features[i], missing=True) for i in missing.indicated)]
            medians = np.concatenate([medians, np.zeros(n_read - kept.size)])
        try:
            layers = extract_layers(estimator.model_)
            n_targets = 1 if hasattr(estimator, "classes_") else len(layers[-1].offset)
            several = isinstance(target, str) and n_targets > 1
            targets = [f"{target}{i}" for i in range(n_targets)] if several else target
            return cls(
                task="classification" if hasattr(estimator, "classes_") else "regression",
                targets=[targets] if isinstance(targets, str) else list(targets),
                classes=[str(label) for label in getattr(estimator, "classes_", ())],
                loss=estimator.loss_,
                features=features,
                medians=medians,
                normalization=estimator.normalize_ or "none",
                mean=mean,
                deviation=deviation,
                layers=layers,
                categories=categories,
                na_values=na_values,
            )
        except ValueError as error:
            raise ModelFileError(f"This model is not supported by the model format ({error}).") from None

    def to_bytes(self) -> bytes:
        """Write the content of the file; the same for the same model."""
        features = []
        for one in self.features:
            more = {"missing": True} if one.missing else {} if one.origin is None else {"origin": one.origin}
            features.append({"column": one.column_name, "category": one.category, **more})
        header = {
            "format": "tamiz-model",
            "version": MODEL_VERSION,
            "written_by": __version__,
            "task": self.task,
            "target": self.targets[0] if len(self.targets) == 1 else self.targets,
            "classes": self.classes,
            "loss": self.loss,
            "features": features,
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
        if header.get("version") != MODEL_VERSION:
            raise ModelFileError(
                f"{name} has version {header.get('version')!r:.20}; this tamiz reads {MODEL_VERSION}. "
                "Update tamiz, or select again."
            )
        with _refuse_malformed(name):
            features = []
            for entry in header["features"]:
                about = entry.get("category"), entry.get("missing", False), entry.get("origin")
                _check(isinstance(entry["column"], str) and isinstance(about[0], str | None), "features")
                _check(isinstance(about[1], bool) and not (about[1] and about[0] is not None), "features")
                _check(about[2] is None or (isinstance(about[2], float) and abs(about[2]) < 4e6), "features")
                features.append(Feature(-1, entry["column"], *about))
            target = header["target"]
            return cls(
                task=header["task"],
                targets=[target] if isinstance(target, str) else _texts(target, "target"),
                classes=_texts(header["classes"], "classes"),
                loss=header["loss"],
                features=features,
                normalization=header["normalization"],
                layers=[
                    DenseLayer(arrays[f"weights_{number}"], arrays[f"offset_{number}"], activation)
                    for number, activation in enumerate(_texts(header["activations"], "activations"))
                ],
                categories={str(key): _texts(values, "categories") for key, values in header["categories"].items()},
                na_values=None if header.get("na_values") is None else _texts(header["na_values"], "na_values"),
                identifiers=_texts(header.get("identifiers", []), "identifiers"),
                **{field: arrays[field] for field in ("medians", "mean", "deviation")},
            )
        raise AssertionError("unreachable")


def _texts(values: Any, what: str) -> list[str]:
    _check(isinstance(values, list) and all(isinstance(value, str) for value in values), what)
    return values
