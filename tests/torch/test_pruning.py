"""prune: the same predictions from the selected values alone, smaller layers, files, and every reason why not."""

import copy
import json
import math
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune as torch_prune

from tamiz.torch import FeatureMask, PrunedModel, PrunedNetwork, load_pruned, prune, save_pruned

KEPT = [1, 5, 18]


def settled(model):
    """The model in evaluation mode, with normalisations that have seen data."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model.eval()


def n_weights(model):
    return sum(p.numel() for p in model.parameters() if p.is_floating_point())


class Wrapped(nn.Module):
    """Modules by name, and a forward."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._run = forward

    def forward(self, *args, **kwargs):
        return self._run(self, *args, **kwargs)


def last(hidden):
    return hidden[0][:, -1]


def block(chosen):
    """A residual block written in functions, with a mask on its inner channels."""

    def forward(self, x):
        inner = self.mask(F.relu(self.norm(self.first(x))))
        return F.relu(x + self.second(inner)).mean((2, 3))

    mask = chosen((8, 1, 1), [0, 3, 6])
    parts = {"first": nn.Conv2d(4, 8, 3, padding=1), "second": nn.Conv2d(8, 4, 3, padding=1)}
    return Wrapped(forward, mask=mask, norm=nn.BatchNorm2d(8), **parts)


# name: (model, shape of the example, how many weights are left of how many)
SMALLER = {
    "linear": (lambda c: nn.Sequential(c(20, KEPT), nn.Linear(20, 3)), (20,), (3 * 3 + 3, 63)),
    "no bias": (lambda c: nn.Sequential(c(20, KEPT), nn.Linear(20, 3, bias=False)), (20,), (9, 60)),
    "nested": (lambda c: nn.Sequential(nn.Sequential(c(20, KEPT)), nn.Sequential(nn.Linear(20, 3))), (20,), (12, 63)),
    "dropout between": (lambda c: nn.Sequential(c(20, KEPT), nn.Dropout(0.5), nn.Linear(20, 3)), (20,), (12, 63)),
    "flatten first": (lambda c: nn.Sequential(nn.Flatten(), c(20, KEPT), nn.Linear(20, 3)), (4, 5), (12, 63)),
    "leading dimensions": (lambda c: nn.Sequential(c(20, KEPT), nn.Linear(20, 3)), (7, 20), (12, 63)),
    "norm behind": (lambda c: nn.Sequential(c(20, KEPT), nn.BatchNorm1d(20), nn.Linear(20, 3)), (20,), (6 + 12, 103)),
    "norm before": (lambda c: nn.Sequential(nn.BatchNorm1d(20), c(20, KEPT), nn.Linear(20, 3)), (20,), (18, 103)),
    "sigmoid": (lambda c: nn.Sequential(c(20, KEPT), nn.Sigmoid(), nn.Linear(20, 3, bias=False)), (20,), (9 + 3, 60)),
    "convolution": (lambda c: nn.Sequential(c((6, 1), [1, 4]), nn.Conv1d(6, 4, 3)), (6, 9), (28, 76)),
    "images": (lambda c: nn.Sequential(c((3, 1, 1), [2]), nn.Conv2d(3, 4, 3), nn.ReLU()), (3, 8, 8), (40, 112)),
    "lstm": (
        lambda c: Wrapped(
            lambda self, x: last(self.lstm(self.mask(x))), mask=c(6, [1, 4]), lstm=nn.LSTM(6, 4, 2, batch_first=True)
        ),
        (9, 6),
        (4 * 4 * 2 + 4 * 4 * 4 + 32 + 160, 352),
    ),
    "gru of channels": (
        lambda c: Wrapped(
            lambda self, x: last(self.gru(self.mask(x).transpose(1, 2))),
            mask=c((6, 1), [1, 4]), gru=nn.GRU(6, 4, batch_first=True, bidirectional=True),
        ),
        (6, 9),
        (2 * (12 * 2 + 12 * 4 + 24), 2 * (12 * 6 + 12 * 4 + 24)),
    ),
    "hidden units": (
        lambda c: nn.Sequential(nn.Linear(4, 10), nn.BatchNorm1d(10), nn.Sigmoid(), c(10, [0, 2, 7]), nn.Linear(10, 2)),
        (4,),
        (5 * 3 + 6 + 8, 50 + 20 + 22),
    ),
    "both": (
        lambda c: nn.Sequential(c(8, [1, 5]), nn.Linear(8, 10), nn.ReLU(), c(10, [0, 2, 7]), nn.Dropout(), nn.Linear(10, 2)),
        (8,),
        (3 * 3 + 8, 90 + 22),
    ),
    "channels, pooled and flattened": (
        lambda c: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), c((8, 1, 1), [0, 3]), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 2)
        ),
        (3, 8, 8),
        (2 * 28 + 2 * 18 + 2, 8 * 28 + 146),
    ),
    "residual block": (block, (4, 5, 5), (3 * 37 + 6 + 4 * 27 + 4, 8 * 37 + 16 + 4 * 73)),
    "behind attention": (
        lambda c: Wrapped(
            lambda self, x: self.out(self.mask(self.attention(x, x, x)[0])),
            attention=nn.MultiheadAttention(8, 2, batch_first=True), mask=c(8, [0, 5]), out=nn.Linear(8, 3),
        ),
        (5, 8),
        (288 + 9, 288 + 27),
    ),
    "embedding": (
        lambda c: Wrapped(
            lambda self, x: self.out(self.mask(self.table(x.long().abs() % 10)).sum(1)),
            table=nn.Embedding(10, 8), mask=c(8, [0, 5]), out=nn.Linear(8, 3),
        ),
        (6,),
        (20 + 9, 80 + 27),
    ),
    "token positions": (
        lambda c: Wrapped(
            lambda self, x: self.out(self.mask(self.up(x[..., None])).flatten(1)),
            up=nn.Linear(1, 4), mask=c((6, 1), [0, 5]), out=nn.Linear(24, 3),
        ),
        (6,),
        (8 + 27, 8 + 75),
    ),
}  # fmt: skip


# name: (model, shape of the example)
PUT_BACK = {
    "pixels": (lambda c: nn.Sequential(c((1, 4, 5), KEPT), nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(24, 2)), (1, 4, 5)),
    "pixels of three channels": (lambda c: nn.Sequential(c((1, 4, 5), KEPT), nn.Conv2d(3, 4, 3)), (3, 4, 5)),
    "mask alone": (lambda c: nn.Sequential(c(20, KEPT)), (20,)),
    "a model that raises KeyError": (
        lambda c: Wrapped(
            lambda self, x: self.out({20: (z := self.mask(x))}.pop(z.shape[1])),
            mask=c(20, KEPT), out=nn.Linear(20, 3),
        ),
        (20,),
    ),
    "unflattened": (lambda c: nn.Sequential(c(20, KEPT), nn.Unflatten(1, (1, 20)), nn.Conv1d(1, 2, 3)), (20,)),
    "normalised over columns": (lambda c: nn.Sequential(c(20, KEPT), nn.LayerNorm(20), nn.Linear(20, 3)), (20,)),
    "tokens under attention": (
        lambda c: Wrapped(
            lambda self, x: self.attention(*[self.mask(x)] * 3)[0].mean(1),
            mask=c((6, 1), [0, 5]), attention=nn.MultiheadAttention(4, 2, batch_first=True),
        ),
        (6, 4),
    ),
}  # fmt: skip


def reload(small, model, folder):
    save_pruned(folder / "small.safetensors", small)
    return load_pruned(folder / "small.safetensors", model)[0]


@pytest.mark.parametrize("name", [*SMALLER, *PUT_BACK])
def test_layers_get_smaller_or_values_are_put_back_with_a_warning_and_predict_the_same(name, chosen, tmp_path):
    make, shape, *weights = {**SMALLER, **PUT_BACK}[name]
    torch.manual_seed(0)
    model = settled(make(chosen))
    x, other = 2 * torch.randn(5, *shape), torch.randn(4, *shape)
    masks = [part for part in model.modules() if isinstance(part, FeatureMask)]
    told = pytest.warns(UserWarning, match=r"prune could not make the network smaller: mask '(0|mask)': .*layer")
    with nullcontext() if weights else told:
        small = prune(model, x)
    assert isinstance(small, PrunedModel)
    if weights:
        assert n_weights(model) - sum(mask.n_features for mask in masks) == weights[0][1]
        assert n_weights(small) == weights[0][0]
        assert small.n_cut == len(masks)
        assert not any(isinstance(part, FeatureMask) for part in small.modules())
    else:
        assert small.n_cut == 0
        assert small.select(x).numel() < x.numel()
    for found in (small, reload(small, model, tmp_path)):
        torch.testing.assert_close(found(found.select(other)), model(other), rtol=1e-5, atol=1e-5)
    if name in ("convolution", "gru of channels", "lstm", "images"):  # what the mask leaves free may have any length
        for length in (12, 7):
            longer = torch.randn(2, *[size if size in (3, 6) else length for size in shape])
            torch.testing.assert_close(small(small.select(longer)), model(longer), rtol=1e-5, atol=1e-5)
        with pytest.raises(ValueError, match=r"the features are \[\d\] values in dimension -\d of the input, got \["):
            small.select(torch.randn(2, *[size + 1 for size in shape]))


def test_pixels_are_taken_out_of_each_channel(chosen):
    model = nn.Sequential(chosen((1, 4, 5), KEPT), nn.Conv2d(3, 4, 3)).eval()
    with pytest.warns(UserWarning, match="could not make the network smaller"):
        small = prune(model, torch.randn(2, 3, 4, 5))
    x = torch.randn(6, 3, 4, 5)
    assert torch.equal(small.select(x), x.flatten(2)[:, :, KEPT])
    assert small.indices.tolist() == KEPT
    with pytest.raises(ValueError, match="give a batch of your inputs as example"):
        prune(model)


def test_ids_of_tokens_are_selected(chosen):
    torch.manual_seed(0)
    parts = {"table": nn.Embedding(10, 4), "mask": chosen((6, 1), [0, 5]), "out": nn.Linear(24, 3)}
    model = Wrapped(lambda self, ids: self.out(self.mask(self.table(ids)).flatten(1)), **parts).eval()
    ids = torch.randint(10, (7, 6))
    small = prune(model, ids)
    assert torch.equal(small.select(ids), ids[:, [0, 5]])
    assert small.network.out.in_features == 8
    torch.testing.assert_close(small(ids[:, [0, 5]]), model(ids))


def two_inputs(chosen, bypass=False):
    def forward(self, batch, *, image, scale=1.0):
        table = batch["table"][0]
        out = self.dense(self.left(table)) + scale * self.conv(self.right(image)).flatten(1)
        return {"out": out + (table.mean(1, keepdim=True) if bypass else 0)}

    parts = {"left": chosen(6, [0, 4]), "right": chosen((2, 1, 1), [1])}
    return Wrapped(forward, **parts, dense=nn.Linear(6, 3), conv=nn.Conv2d(2, 3, 4)).eval()


@pytest.mark.parametrize("bypass", [False, True])
def test_several_nested_and_keyword_inputs(chosen, bypass, tmp_path):
    torch.manual_seed(0)
    model = two_inputs(chosen, bypass)
    args, kwargs = ({"table": [torch.randn(3, 6)]},), {"image": torch.randn(3, 2, 4, 4), "scale": 2.0}
    small = prune(model, example_args=args, example_kwargs=kwargs)
    assert type(small) is PrunedNetwork
    assert small.n_cut == 2
    (batch,), given = small.select(*args, **kwargs)
    assert batch["table"][0].shape == (3, 6 if bypass else 2), "what is read past the mask stays whole"
    assert given["image"].shape == (3, 1, 4, 4)
    for found in (small, reload(small, model, tmp_path)):
        torch.testing.assert_close(found(batch, **given), model(*args, **kwargs))


def test_nothing_is_shared_and_the_model_is_left_as_it_was(chosen):
    torch.manual_seed(0)
    model = nn.Sequential(chosen(20, KEPT), nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.random.get_rng_state()
    small = prune(model)
    assert torch.equal(random, torch.random.get_rng_state())
    assert small.training
    assert model[2].training
    ours = {p.untyped_storage().data_ptr() for p in (*model.parameters(), *model.buffers())}
    theirs = {p.untyped_storage().data_ptr() for p in (*small.parameters(), *small.buffers())}
    assert not ours & theirs
    with torch.no_grad():
        for p in small.parameters():
            p.add_(1.0)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types(chosen, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(chosen(20, KEPT), nn.Linear(20, 2)).to(dtype).eval()
    x = torch.randn(5, 20, dtype=dtype)
    torch.testing.assert_close(prune(model)(x[:, KEPT]), model(x), rtol=1e-2, atol=1e-2)


def test_everything_is_kept():
    torch.manual_seed(0)
    for model, shape in (
        (nn.Sequential(FeatureMask(20, 20), nn.Linear(20, 2)), (20,)),
        (nn.Sequential(FeatureMask((2, 3), 6), nn.Conv1d(2, 1, 3)), (2, 3)),
    ):
        x, small = torch.randn(4, *shape), prune(model.eval())
        torch.testing.assert_close(small(small.select(x)), model(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(torch.jit.script(small)(small.select(x)), model(x))


def sampling(chosen, draw):
    """Draws a code in evaluation mode as well, as variational autoencoders do."""
    return Wrapped(
        lambda self, x: self.layer(self.mask(x)) + draw(len(x)), mask=chosen(20, KEPT), layer=nn.Linear(20, 4)
    )


def test_a_model_that_draws_random_numbers(chosen):
    torch.manual_seed(0)
    model = sampling(chosen, lambda n: torch.randn(n, 4))
    small = prune(model)
    x = torch.randn(6, 20)
    torch.manual_seed(3)
    expected = model(x)
    torch.manual_seed(3)
    torch.testing.assert_close(small(x[:, KEPT]), expected)


def grouped(chosen):
    """Five columns in two groups; the mask sees ones and gates the groups."""
    group = torch.tensor([0, 0, 1, 1, 1])
    return Wrapped(
        lambda self, x: self.layer(x * self.mask(x.new_ones(2))[group]), mask=chosen(2, [1]), layer=nn.Linear(5, 1)
    )


def pruned_by_torch(chosen):
    model = nn.Sequential(chosen(20, KEPT), nn.Linear(20, 3))
    torch_prune.l1_unstructured(model[1], "weight", amount=0.3)
    return model


generator = np.random.default_rng(0)


def one_layer(mask):
    return nn.Sequential(mask, nn.Linear(20, 1))


def unrepeatable(chosen):
    return sampling(chosen, lambda n: torch.from_numpy(generator.standard_normal((n, 4))).float())


def broken(chosen):
    model = one_layer(chosen(20, KEPT))
    nn.init.constant_(model[1].weight, torch.nan)
    return model


TWO_WAYS = {"example": torch.zeros(1, 20), "example_args": ()}
REFUSED = {  # name: (model, arguments, message)
    "no mask": (lambda c: nn.Linear(3, 1), {}, "there is no FeatureMask in this model"),
    "open": (lambda c: one_layer(FeatureMask(20, 3)), {}, "'0' is not closed yet: 20 features are alive, 3"),
    "both examples": (lambda c: one_layer(c(20, KEPT)), TWO_WAYS, "not both"),
    "groups by hand": (grouped, {"example": torch.randn(3, 5)}, "nothing can be cut: mask 'mask'.*network by hand"),
    "other random numbers": (unrepeatable, {}, "gives other outputs for the same input and torch seed"),
    "not finite": (broken, {}, "NaN or infinite outputs for the example"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name, chosen):
    make, arguments, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        prune(make(chosen), **arguments)


def test_a_layer_pruned_by_torch_for_good_is_cut(chosen):
    model, x = pruned_by_torch(chosen), torch.randn(4, 20)
    with pytest.warns(UserWarning, match=r"the weights of 1 are computed .*torch\.nn\.utils\.prune\.remove"):
        torch.testing.assert_close(prune(model)(x[:, KEPT]), model(x))
    torch_prune.remove(model[1], "weight")
    torch.testing.assert_close(prune(model)(x[:, KEPT]), model(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:prune could not make")
@pytest.mark.parametrize("way", ["script", "fx", "export", "trace"])
@pytest.mark.parametrize(
    "first", [nn.Linear(6, 3), nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3))], ids=["cut", "put back"]
)
def test_pruned_models_pass_the_ways_to_capture_them(first, way, chosen):
    model = nn.Sequential(chosen(6, [1, 3]), copy.deepcopy(first), nn.ReLU(), nn.Linear(3, 1)).eval()
    small = prune(model)
    values = small.select(torch.randn(5, 6))
    capture = {
        "script": torch.jit.script,
        "fx": torch.fx.symbolic_trace,
        "export": lambda small: torch.export.export(small, (values,)).module(),
        "trace": lambda small: torch.jit.trace(small, values),
    }
    captured = capture[way](small)
    torch.testing.assert_close(captured(values), small(values))
    if way in ("script", "fx"):
        with pytest.raises((ValueError, torch.jit.Error), match=r"\[2\] values in dimension -1 .*, got \[5, 3\]"):
            captured(torch.randn(5, 3))


# ---- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(chosen, tmp_path):
    """A model, and the file of what was cut from it."""
    torch.manual_seed(0)
    model = nn.Sequential(chosen(20, KEPT), nn.Linear(20, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).eval()
    path, _ = save_pruned(tmp_path / "folder" / "small.safetensors", model, names=[f"gene {i}" for i in range(20)])
    return model, path


def test_saved_with_the_names_and_loaded_into_a_fresh_model(saved, chosen, tmp_path):
    model, path = saved
    torch.manual_seed(1)
    fresh = nn.Sequential(FeatureMask(20, 3), nn.Linear(20, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    small, names = load_pruned(path, fresh)
    assert names == ["gene 1", "gene 5", "gene 18"]
    assert not small.training
    x = torch.randn(4, 20)
    torch.testing.assert_close(small(x[:, KEPT]), model(x))
    assert load_pruned(save_pruned(tmp_path / "a.st", small)[0], model)[1] is None
    assert load_pruned(save_pruned(tmp_path / "b.st", small, names="xyz")[0], model)[1] == ["x", "y", "z"]
    with pytest.raises(ValueError, match="there are 4 names for 20 features, 3 of them selected"):
        save_pruned(tmp_path / "c.st", small, names="wxyz")
    with pytest.raises(ValueError, match=r"another ending than \.json"):
        save_pruned(tmp_path / "c.json", small)


def rewritten(path, change):
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))


ALTERED = {  # name: (what is done to weights and description, message)
    "a name": (lambda w, d: rewritten(d, lambda a: a["names"].reverse()), "do not belong together, or one of them was changed"),
    "a column": (lambda w, d: rewritten(d, lambda a: a["plans"][0][2].__setitem__(0, 2)), "do not belong together"),
    "the digest": (lambda w, d: rewritten(d, lambda a: a.pop("digest")), "do not belong together"),
    "the version": (lambda w, d: rewritten(d, lambda a: a.update(version=1)), "has version 1, this version of tamiz reads 3"),
    "the format": (lambda w, d: rewritten(d, lambda a: a.update(format="x")), "does not describe a pruned model of tamiz"),
    "a list": (lambda w, d: d.write_text("[]"), "does not describe a pruned model of tamiz"),
    "half a description": (lambda w, d: d.write_text(d.read_text()[:50]), "does not describe a pruned model of tamiz"),
    "half the weights": (lambda w, d: w.write_bytes(w.read_bytes()[:-9]), "do not belong together"),
    "a weight": (lambda w, d: w.write_bytes(w.read_bytes()[:-1] + b"\x00"), "do not belong together"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_altered_files_are_refused(name, saved):
    model, path = saved
    change, message = ALTERED[name]
    change(path, path.with_suffix(".json"))
    with pytest.raises(ValueError, match=message):
        load_pruned(path, model)


def test_models_that_do_not_fit_and_missing_files_are_refused(saved, tmp_path):
    _, path = saved
    for other in (
        nn.Sequential(FeatureMask(20, 3), nn.Linear(20, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 2)),
        nn.Sequential(FeatureMask(21, 3), nn.Linear(21, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)),
        nn.Sequential(nn.Linear(20, 8)),
    ):
        with pytest.raises(ValueError, match="not built as the one saved in"):
            load_pruned(path, other)
    path.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError, match="it says which inputs the weights"):
        load_pruned(path, nn.Linear(1, 1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:prune could not make")
@pytest.mark.parametrize("name", ["pixels", "convolution"])
def test_onnx_runs_with_equal_output(name, chosen, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    make, shape = {**SMALLER, **PUT_BACK}[name][:2]
    model = settled(make(chosen))
    x = torch.randn(7, *shape)
    small, path = prune(model, x), tmp_path / "small.onnx"
    rows = {0: torch.export.Dim("rows")}
    torch.onnx.export(small, (small.select(x[:2]),), path, dynamic_shapes=(rows,), verbose=False)
    (found,) = runtime.InferenceSession(path).run(None, {"values": small.select(x).numpy()})
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert math.prod(found.shape) == model(x).numel()
