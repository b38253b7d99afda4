"""Fitted models as files: safetensors with a JSON header, and ONNX."""

from tamiz.persistence.model import ModelFileError, SavedModel, load_model, save_model
from tamiz.persistence.onnx import to_onnx

__all__ = ["ModelFileError", "SavedModel", "load_model", "save_model", "to_onnx"]
