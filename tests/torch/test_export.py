"""Pruned models on disk: safetensors and JSON, ONNX in its runtime."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, export_onnx, load_pruned, prune, save_pruned, train


def three_layer_net(n_inputs, n_outputs):
    """Dense layers with batch normalisation, which nothing of the mask knows."""
    layers = []
    for n_units in (50, 25, 10):
        layers += [nn.Linear(n_inputs, n_units, bias=False), nn.BatchNorm1d(n_units), nn.ReLU()]
        n_inputs = n_units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))


def build():
    return nn.Sequential(FeatureMask(25, 4), three_layer_net(25, 2))


def build_images():
    return nn.Sequential(
        FeatureMask((1, 5, 5), 4), nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 2)
    )


BUILDERS = {"sliced": (build, (25,)), "scattered": (build_images, (1, 5, 5))}


@pytest.fixture(scope="module", params=BUILDERS, ids=BUILDERS)
def trained(request):
    """A trained model, how it is built, and inputs."""
    builder, shape = BUILDERS[request.param]
    torch.manual_seed(0)
    x = torch.randn(64, *shape)
    y = (x.flatten(1)[:, :4].sum(1) > 0).long()
    model = builder()
    train(model, (x, y), nn.functional.cross_entropy, warmup_steps=5, ramp_steps=120, refinement_steps=5)
    return model, builder, x


def test_saved_and_loaded(trained, tmp_path):
    model, builder, x = trained
    names = [f"gene {i} αβ" for i in range(25)]
    pruned = prune(model)
    files = save_pruned(tmp_path / "new" / "small.safetensors", pruned, names=names)
    assert [file.name for file in files] == ["small.safetensors", "small.json"]
    assert sorted(p.name for p in files[0].parent.iterdir()) == ["small.json", "small.safetensors"]
    about = json.loads(files[1].read_text(encoding="utf-8"))
    assert about["indices"] == pruned.indices.tolist()
    assert about["mask_shape"] == list(model[0].shape)
    loaded, read = load_pruned(files[0], builder())
    assert read == [names[i] for i in about["indices"]]
    assert not loaded.training
    assert torch.equal(loaded(loaded.select(x)), pruned(pruned.select(x)))
    torch.testing.assert_close(loaded(loaded.select(x)), model(x), rtol=1e-6, atol=1e-6)


def test_names_are_optional_or_those_of_the_selected(trained, tmp_path):
    model, builder, _ = trained
    path = tmp_path / "small.safetensors"
    save_pruned(path, model)
    assert load_pruned(path, builder())[1] is None
    save_pruned(path, model, names=list("abcd"))
    assert load_pruned(path, builder())[1] == list("abcd")
    with pytest.raises(ValueError, match="7 names for 25 features, 4 of them selected"):
        save_pruned(path, model, names=list("abcdefg"))


def test_loading_refuses_what_does_not_fit(trained, tmp_path):
    model, builder, _ = trained
    path = tmp_path / "small.safetensors"
    save_pruned(path, model)
    with pytest.raises(ValueError, match="not built as the one saved"):
        load_pruned(path, nn.Sequential(FeatureMask(25, 4), nn.Linear(25, 1)))
    with pytest.raises(ValueError, match="not built as the one saved"):
        load_pruned(path, nn.Linear(25, 1))
    path.with_suffix(".json").write_text("[]")
    with pytest.raises(ValueError, match="does not describe a pruned model"):
        load_pruned(path, builder())
    path.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError, match=r"small.json is missing"):
        load_pruned(path, builder())
    with pytest.raises(ValueError, match=r"another ending than \.json"):
        save_pruned(tmp_path / "small.json", model)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside torch.onnx and onnxscript
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_onnx_runs_with_equal_output(trained, tmp_path):
    model, _, x = trained
    pruned = prune(model)
    path = export_onnx(tmp_path / "small.onnx", pruned)
    assert [p.name for p in tmp_path.iterdir()] == ["small.onnx"]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for rows in (1, 5, 64):
        values = pruned.select(x[:rows])
        (output,) = session.run(None, {"values": values.numpy()})
        np.testing.assert_allclose(output, model(x[:rows]).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_network_pruned_inside_is_told_what_to_do(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), FeatureMask(4, 4), nn.Linear(4, 1))
    small = prune(model, example_args=(torch.ones(2, 3),))
    for write in (save_pruned, export_onnx):
        with pytest.raises(TypeError, match=r"hand it to torch\.onnx\.export"):
            write(tmp_path / "small", small)
