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

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tamiz._files import write_atomic
from tamiz.persistence.container import ModelFileError
from tamiz.persistence.layers import DenseLayer
from tamiz.persistence.model import SavedModel
from tamiz.tables.encode import TableEncoder
from tamiz.tables.messages import list_some, quote

__all__ = ["DenseLayer", "ModelFileError", "SavedModel", "load_model", "save_model"]

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
    if not isinstance(model, SavedModel):
        encoder, estimator = _split_pipeline(model)
        model = SavedModel.from_estimator(estimator, encoder, target)
    write_atomic(path, model.to_bytes())


def _split_pipeline(model: Any) -> tuple[TableEncoder | None, Any]:
    steps: Sequence[Any] = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    encoder = steps[0] if isinstance(steps[0], TableEncoder) else None
    if len(steps) != (1 if encoder is None else 2) or not hasattr(steps[-1], "selection_"):
        raise ModelFileError(
            "Only fitted estimators of tamiz, alone or behind a TableEncoder, can be saved; "
            f"got {list_some([type(step).__name__ for step in steps])}."
        )
    return encoder, steps[-1]


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
        if not path.is_file() and path.exists():
            raise ModelFileError(f"{path} is no file but a device or a pipe, which may never end. Name a file.")
        size = os.path.getsize(path)
        if size > _LARGEST_FILE:
            raise ModelFileError(f"{path.name} has {size:,} bytes: too large for a model.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {path}.") from None
    except OSError as error:
        raise ModelFileError(f"{quote(path)} cannot be read: {error.strerror}.") from None
    return SavedModel.from_bytes(content, path.name)
