"""Write and read pruned models: safetensors with a JSON beside it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from tamiz._utils.extras import require
from tamiz._utils.files import write_atomic
from tamiz.torch.pruning import MaskPlan, PrunedModel, PrunedNetwork, assemble, prune

FORMAT, VERSION = "tamiz.pruned", 3


def save_pruned(
    path: str | os.PathLike[str], model: nn.Module, *, names: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write the weights of a pruned model as safetensors, and beside them a JSON that says which inputs it reads.

    Parameters
    ----------
    path : path
        File of the weights; the JSON has the same name with ``.json``.
    model : nn.Module
        What :func:`prune` returned, or a model with one closed mask, which is pruned first.
    names : sequence of str or None, default=None
        Names of all features, or of the selected ones only, in the order of the columns; of the first mask.

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
    pruned = model if isinstance(model, PrunedNetwork) else prune(model)
    weights = Path(path)
    if weights.suffix == ".json":
        raise ValueError("path is that of the weights; give it another ending than .json, for example .safetensors")
    plan, chosen = pruned.plans[0], None if names is None else [str(name) for name in names]
    n_features, n_kept = math.prod(plan.shape), len(plan.kept)
    if chosen is not None and len(chosen) != n_kept:
        if len(chosen) != n_features:
            raise ValueError(f"there are {len(chosen)} names for {n_features} features, {n_kept} of them selected")
        chosen = [chosen[i] for i in plan.kept]
    content = save({key: value.detach().cpu().clone().contiguous() for key, value in pruned.state_dict().items()})
    about = {
        "format": FORMAT,
        "version": VERSION,
        "single": isinstance(pruned, PrunedModel),
        "plans": pruned.plans,
        "names": chosen,
    }
    weights.parent.mkdir(parents=True, exist_ok=True)
    description = weights.with_suffix(".json")
    write_atomic(weights, content)
    write_atomic(description, json.dumps({**about, "digest": _digest(about, content)}, indent=1))
    return weights, description


def load_pruned(path: str | os.PathLike[str], model: nn.Module) -> tuple[PrunedNetwork, list[str] | None]:
    """Read a model that :func:`save_pruned` wrote.

    Parameters
    ----------
    path : path
        File of the weights.
    model : nn.Module
        A model built as the one that was pruned, with its mask; its weights do not matter and it is not changed.

    Returns
    -------
    tuple of PrunedNetwork and list of str or None
        The model in evaluation mode, and the names of the inputs it reads.
    """
    weights = Path(path)
    description = weights.with_suffix(".json")
    if not description.exists():
        raise FileNotFoundError(f"{description} is missing: it says which inputs the weights in {weights} are for")
    try:
        about = json.loads(description.read_text(encoding="utf-8"))
    except ValueError:
        about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{description} does not describe a pruned model of tamiz")
    if about.get("version") != VERSION:
        raise ValueError(f"{description} has version {about.get('version')!r}, this version of tamiz reads {VERSION}")
    content, digest = weights.read_bytes(), about.pop("digest", None)
    if digest != _digest(about, content):
        raise ValueError(f"{weights} and {description} do not belong together, or one of them was changed")
    load = require("safetensors.torch", "torch", "load_pruned").load
    try:
        pruned = assemble(model, [MaskPlan(*plan) for plan in about["plans"]], about["single"])
        pruned.load_state_dict(load(content))
    except (AttributeError, AssertionError, RuntimeError, IndexError, ValueError) as error:
        raise ValueError(f"the model is not built as the one saved in {weights}: {error}") from error
    return pruned.eval(), about["names"]


def _digest(about: Mapping[str, Any], content: bytes) -> str:
    """Hash the weights with their description."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode() + content).hexdigest()
