"""Fitted models as files: safetensors with a JSON header, and ONNX."""

from tamiz.persistence.model import (
    DenseLayer,
    ModelFileError,
    SavedModel,
    load_model,
    pack_model_file,
    save_model,
    unpack_model_file,
)
from tamiz.persistence.onnx import to_onnx

__all__ = [
    "DenseLayer",
    "ModelFileError",
    "SavedModel",
    "load_model",
    "pack_model_file",
    "save_model",
    "to_onnx",
    "unpack_model_file",
]
