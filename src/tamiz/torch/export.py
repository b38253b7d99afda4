"""Write and read pruned models: safetensors with a JSON beside it, and ONNX."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from tamiz._utils.extras import require
from tamiz._utils.files import write_atomic
from tamiz.errors import MissingExtraError
from tamiz.torch.pruning import PrunedModel, PrunedNetwork, PruneSpec, assemble, prune

FORMAT = "tamiz.pruned"


def save_pruned(
    path: str | os.PathLike[str], model: nn.Module, *, names: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write the weights of a pruned model as safetensors, and beside them a JSON that says which inputs it reads.

    Parameters
    ----------
    path : path
        File of the weights; the JSON has the same name with ``.json``.
    model : nn.Module
        A :class:`PrunedModel`, or a model with a closed mask, which is pruned first.
    names : sequence of str or None, default=None
        Names of all features, or of the selected ones only, in the order of the columns.

    Returns
    -------
    tuple of Path
        The two files.

    Examples
    --------
    >>> import tempfile, torch
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask, load_pruned, save_pruned
    >>> def build():
    ...     return nn.Sequential(FeatureMask(3, 3), nn.Linear(3, 1))
    >>> model = build()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_pruned(folder + "/small.safetensors", model, names=["age", "dose", "weight"])
    ...     small, names = load_pruned(folder + "/small.safetensors", build())
    >>> names, torch.allclose(small(torch.ones(1, 3)), model(torch.ones(1, 3)))
    (['age', 'dose', 'weight'], True)
    """
    save = require("safetensors.torch", "torch", "save_pruned").save
    pruned = _as_pruned(model)
    weights = Path(path)
    if weights.suffix == ".json":
        raise ValueError("path is that of the weights; give it another ending than .json, for example .safetensors")
    about = {"format": FORMAT, "version": 1, **asdict(pruned.spec), "names": _chosen_names(pruned.spec, names)}
    tensors = {key: value.detach().cpu().clone().contiguous() for key, value in pruned.state_dict().items()}
    weights.parent.mkdir(parents=True, exist_ok=True)
    description = weights.with_suffix(".json")
    write_atomic(weights, save(tensors))
    write_atomic(description, json.dumps(about, indent=1))
    return weights, description


def load_pruned(path: str | os.PathLike[str], model: nn.Module) -> tuple[PrunedModel, list[str] | None]:
    """Read a model that :func:`save_pruned` wrote.

    Parameters
    ----------
    path : path
        File of the weights.
    model : nn.Module
        A model built as the one that was pruned, with its mask; its weights do not matter and it is not changed.

    Returns
    -------
    tuple of PrunedModel and list of str or None
        The model in evaluation mode, and the names of the inputs it reads.
    """
    weights = Path(path)
    description = weights.with_suffix(".json")
    if not description.exists():
        raise FileNotFoundError(f"{description} is missing: it says which inputs the weights in {weights} are for")
    about = json.loads(description.read_text(encoding="utf-8"))
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{description} does not describe a pruned model of tamiz")
    spec = PruneSpec(
        indices=tuple(about["indices"]),
        mask_shape=tuple(about["mask_shape"]),
        sample_shape=tuple(about["sample_shape"]),
        layer=about["layer"],
        keeps_mask=bool(about["keeps_mask"]),
    )
    load_file = require("safetensors.torch", "torch", "load_pruned").load_file
    try:
        pruned = assemble(model, spec)
        pruned.load_state_dict(load_file(str(weights)))
    except (AttributeError, AssertionError, StopIteration, RuntimeError, IndexError) as error:
        raise ValueError(f"the model is not built as the one saved in {weights}: {error}") from error
    return pruned.eval(), about["names"]


def export_onnx(path: str | os.PathLike[str], model: nn.Module, example: torch.Tensor | None = None) -> Path:
    """Write a pruned model as ONNX, with a free number of rows; its input is called ``values``, its output ``output``.

    Parameters
    ----------
    path : path
        The file to write.
    model : nn.Module
        A :class:`PrunedModel`, or a model with a closed mask, which is pruned first.
    example : tensor or None, default=None
        Batch of inputs, see :func:`prune`.

    Returns
    -------
    Path
        The file.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("ONNX export needs onnxscript. Install it with: pip install onnx onnxscript") from error
    pruned = _as_pruned(model, example)
    training = pruned.training
    device, dtype = _kind_of(pruned)
    values = torch.zeros(2, pruned.n_values, device=device, dtype=dtype)
    pruned.eval()
    try:
        torch.onnx.export(
            pruned,
            (values,),
            os.fspath(path),
            input_names=["values"],
            output_names=["output"],
            dynamic_shapes=({0: torch.export.Dim("rows")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    finally:
        pruned.train(training)
    return Path(path)


def _as_pruned(model: nn.Module, example: torch.Tensor | None = None) -> PrunedModel:
    if isinstance(model, PrunedNetwork):
        raise TypeError(
            "a PrunedNetwork takes its arguments as the whole model does: hand it to torch.onnx.export with those of "
            "select(), or save its state_dict()"
        )
    pruned = model if isinstance(model, PrunedModel) else prune(model, example)
    assert isinstance(pruned, PrunedModel)
    return pruned


def _chosen_names(spec: PruneSpec, names: Sequence[str] | None) -> list[str] | None:
    if names is None:
        return None
    texts = [str(name) for name in names]
    n_features = math.prod(spec.mask_shape)
    if len(texts) == len(spec.indices):
        return texts
    if len(texts) == n_features:
        return [texts[i] for i in spec.indices]
    raise ValueError(f"there are {len(texts)} names for {n_features} features, {len(spec.indices)} of them selected")


def _kind_of(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.float32
