"""Export of fitted models to ONNX."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.files import write_atomic
from tamiz.core.losses import get_loss
from tamiz.persistence.model import as_saved
from tamiz.rows.exact import DEVIATIONS, WITH_ERF


def to_onnx(model: Any, path: str | os.PathLike[str], *, target: str | Sequence[str] = "y") -> None:
    """Write a fitted model as ONNX, its imputation, one-hot encoding and scaling included.

    The graph reads at most two inputs, whose columns are listed as JSON in the metadata of the file, under ``columns``:
    ``numbers`` (float64, NaN where missing; dates as days since 1970) and ``texts`` (strings, spelt as in the training data).
    It computes ``prediction`` for numbers; ``label``, ``scores`` and, where the loss has them, ``probabilities`` for classes.

    Parameters
    ----------
    model : SavedModel, E2EFSClassifier, E2EFSRegressor or Pipeline
        Fitted, as for :func:`save_model`.
    path : path
        File to write; it appears whole or not at all.
    target : str or sequence of str, default="y"
        Name of the target, for the metadata.

    Examples
    --------
    >>> import tempfile
    >>> from tamiz import E2EFSRegressor
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = E2EFSRegressor(1, random_state=0).fit(X, 3 * X[:, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(model, folder + "/model.onnx")
    ...     os.path.getsize(folder + "/model.onnx") < 2000
    True
    """
    helper = require("onnx.helper", "onnx", "Export to ONNX")
    from onnx import TensorProto, numpy_helper

    saved = as_saved(model, target)
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(values: Any, dtype: Any = np.float64) -> str:
        constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), f"constant_{len(constants)}"))
        return constants[-1].name

    def add(kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [name or f"value_{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    columns = {"texts": saved.text_columns, "numbers": [c for c in saved.columns if c not in saved.text_columns]}
    shapes = ["category" if f.category is not None else "missing" if f.missing else "number" for f in saved.features]
    parts, order = [], []
    for kind, source in (("number", "numbers"), ("missing", "numbers"), ("category", "texts")):
        places = [(i, f) for i, f in enumerate(saved.features) if shapes[i] == kind]
        if not places:
            continue
        order += [i for i, _ in places]
        read = [columns[source].index(f.column_name) for _, f in places]
        taken = add("Gather", source, constant(read, np.int64), axis=1)
        if kind == "category":
            taken = add("Equal", taken, constant([[f.category for _, f in places]], object))
        elif kind == "missing":
            taken = add("IsNaN", taken)
        else:
            days = add("Sub", taken, constant([f.origin or 0.0 for _, f in places]))
            taken = add("Where", add("IsNaN", days), constant(saved.medians[[i for i, _ in places]]), days)
        parts.append(add("Cast", taken, to=TensorProto.DOUBLE))
    z = add("Gather", add("Concat", *parts, axis=1), constant(np.argsort(order), np.int64), axis=1)
    if saved.normalization != "none":
        width = np.where(saved.deviation > 0, saved.deviation, np.inf) * DEVIATIONS[saved.normalization]
        z = add("Div", add("Sub", z, constant(saved.mean)), constant(width))
        if saved.normalization in WITH_ERF:  # onnxruntime has it for float32 only
            z = add("Cast", add("Erf", add("Cast", z, to=TensorProto.FLOAT)), to=TensorProto.DOUBLE)
    for number, layer in enumerate(saved.layers):
        last = number == len(saved.layers) - 1
        name = None if not last else "prediction" if saved.task == "regression" else "scores"
        z = add("Add", add("MatMul", z, constant(layer.weights.T)), constant(layer.offset), name=name)
        z = add("Relu", z) if layer.activation == "relu" else add("Mul", z, z) if layer.activation == "square" else z
    outputs = [(z, TensorProto.DOUBLE, [None, len(saved.layers[-1].offset)])]
    if saved.task == "classification":
        loss, two = get_loss(saved.loss), len(saved.layers[-1].offset) == 1
        if two:
            is_second = add("Cast", add("Greater", z, constant(0.0)), to=TensorProto.INT64)
            best = add("Squeeze", is_second, constant([1], np.int64))
        else:
            best = add("ArgMax", z, axis=1, keepdims=0)
        outputs.append((add("Gather", constant(saved.classes, object), best, name="label"), TensorProto.STRING, [None]))
        if saved.loss in ("squared_hinge", "logistic", "softmax"):
            scaled = add("Mul", z, constant(loss.slope))
            if two:
                chances = add("Sigmoid", add("Concat", add("Neg", scaled), scaled, axis=1))
            else:
                chances = add("Softmax", z, axis=1) if loss.exclusive else add("Sigmoid", scaled)
            total = add("ReduceSum", chances, constant([1], np.int64), keepdims=1)
            shape = [None, len(saved.classes)]
            outputs.append((add("Div", chances, total, name="probabilities"), TensorProto.DOUBLE, shape))
    kinds = {"numbers": TensorProto.DOUBLE, "texts": TensorProto.STRING}
    graph = helper.make_graph(
        nodes,
        "tamiz",
        [helper.make_tensor_value_info(k, kinds[k], [None, len(names)]) for k, names in columns.items() if names],
        [helper.make_tensor_value_info(*output) for output in outputs],
        constants,
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9, producer_name="tamiz")
    helper.set_model_props(found, {"columns": json.dumps(columns), "targets": json.dumps(saved.targets)})
    require("onnx.checker", "onnx", "Export to ONNX").check_model(found)
    write_atomic(path, found.SerializeToString())
